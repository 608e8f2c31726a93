"""Markdown keeps to limits of words (issue 63): of all pages, a page, a paragraph and a cell of a table."""

import re
import subprocess

import pytest
from checkout import ROOT
from figures import BLOCK, COMMENT, of_table

MOST = {"README.md": 700, "docs": 45_000, "all": 65_000}
REFERENCE = {"docs/formats.md", "docs/accuracy-runs.md"}  # looked up, not read
GUIDES = sorted(path for path in (ROOT / "docs").rglob("*.md"))


def pages():
    """Every page that is kept in the repository, or stands where none is."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "*.md"], capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        return [ROOT / name for name in sorted(set(listed.stdout.split("\0"))) if name and (ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*.md") if not {"build", "out", ".venv", ".cache"} & set(path.parts)]


def words(text):
    return len(text.split())


def of(path):
    return words(path.read_text())


def prose(text):
    """Without blocks of code and comments."""
    return BLOCK.sub("\n", COMMENT.sub("", text))


def too_long(text, paragraph=100, cell=60):
    """Paragraphs, points of lists and cells of tables with more words than these."""
    lines = prose(text).splitlines()
    cells = [cell for line in lines if of_table(line) for cell in re.split(r"(?<!\\)\|", line)]
    rest = "\n".join("" if of_table(line) else line for line in lines)
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:- |\d+\. |#))", rest)
    return [part for part in paragraphs if words(part) > paragraph] + [one for one in cells if words(one) > cell]


def test_the_readme_the_guides_and_all_pages_together_are_short():
    assert of(ROOT / "README.md") <= MOST["README.md"]
    assert sum(map(of, GUIDES)) <= MOST["docs"]
    assert sum(map(of, pages())) <= MOST["all"]


@pytest.mark.parametrize("path", [ROOT / "README.md", *GUIDES], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_can_be_read(path):
    assert too_long(path.read_text()) == []
    if str(path.relative_to(ROOT)) not in REFERENCE:
        assert of(path) <= 1800


def test_what_is_too_long_is_found():
    long = "word " * 101
    assert too_long(f"short\n\n{long}\n") and too_long(f"- short\n- {long}\n")
    assert too_long(f"| a | {'word ' * 61}|\n") and not too_long(f"```\n{long}\n```\n| a | {'word ' * 60}|\n")
