"""mkdocs.yml: the pages are a site without a warning, with the package's names, the schemas and what agents read."""

import os
import re
import subprocess
import sys

from absent import needed
from checkout import ROOT

needed("mkdocs")
needed("mkdocstrings")
needed("material")


def test_the_site_is_built_without_a_warning(tmp_path):
    site = tmp_path / "site"
    done = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", site], cwd=ROOT,
                          env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    api = (site / "api/index.html").read_text()
    package = (ROOT / "python/pipeweaver/__init__.py").read_text()
    names = re.findall(r'^    "([A-Za-z]\w+)",$', package.partition("__all__ = [")[2], re.MULTILINE)
    assert len(names) > 10 and [name for name in names if f'id="pipeweaver.{name}"' not in api] == []
    for file in ("llms.txt", "skill/SKILL/index.html", "schema/plan.json"):
        assert (site / file).is_file(), file
