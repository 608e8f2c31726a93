"""docs/studies/*.md: their commands run beside examples/, print every line that the pages show, and take four minutes
of processor time at most: two on two cores, where nothing else runs."""

import os
import re
import subprocess

import pytest
from checkout import ROOT
from used import seconds_of_children, slowness

PAGES = sorted(path.name for path in (ROOT / "docs/studies").glob("*.md"))


def blocks(page):
    """The page's code blocks, as (language, text)."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / "docs/studies" / page).read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_what_it_shows_in_under_two_minutes(pipeweaver, tmp_path, page):
    environment = {**os.environ, "PATH": f"{pipeweaver.path.resolve().parent}:{os.environ['PATH']}"}
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    printed, begun = "", seconds_of_children()
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
    assert seconds_of_children() - begun < 240 * slowness()


def test_there_are_pages():
    assert "nvl72-or-hgx.md" in PAGES
