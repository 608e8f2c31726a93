"""docs/studies/*.md: their commands run beside examples/, print every line that the pages show, and take four minutes
of processor time at most: two on two cores, where nothing else runs."""

import os
import re
import resource
import subprocess

import pytest
from checkout import ROOT

PAGES = sorted(path.name for path in (ROOT / "docs/studies").glob("*.md"))


def blocks(page):
    """The page's code blocks, as (language, text)."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / "docs/studies" / page).read_text(), re.MULTILINE | re.DOTALL)


def processor_seconds():
    """Of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_what_it_shows_in_under_two_minutes(pipeweaver, tmp_path, page):
    environment = {**os.environ, "PATH": f"{pipeweaver.path.resolve().parent}:{os.environ['PATH']}"}
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    printed, begun = "", processor_seconds()
    for language, text in blocks(page):
        if language == "sh":
            done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", text], cwd=tmp_path, env=environment,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, f"{text}{done.stderr}"
            printed = done.stdout
        elif language == "":
            shown = [line for line in text.splitlines() if line != "…"]
            missing = [line for line in shown if line not in printed.splitlines()]
            assert shown and missing == [], f"docs/studies/{page} shows what the command does not print:\n{printed}"
    assert processor_seconds() - begun < 240


def test_there_are_pages():
    assert "nvl72-or-hgx.md" in PAGES
