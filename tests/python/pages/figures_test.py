"""Each figure in prose of docs/ and README.md has an origin (figures.py says which)."""

import subprocess

import pytest
from absent import left_out
from checkout import ROOT
from figures import commits, complaints

PAGES = sorted(str(page.relative_to(ROOT)) for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
BLOCK = "```\nstep 2.5 s, bound 2.0 s\n```\n"


@pytest.mark.parametrize("page", PAGES)
def test_figures_of_a_page_have_an_origin(page):
    assert complaints((ROOT / page).read_text()) == []


def test_commits_that_figures_were_measured_at_are_there():
    asked = sorted({commit for page in PAGES for commit in commits((ROOT / page).read_text())})
    git = ["git", "-C", str(ROOT)]
    shallow = subprocess.run([*git, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True)
    if asked and shallow.stdout != "false\n":
        left_out("the whole history is not here")
    said = subprocess.run([*git, "cat-file", "--batch-check"], input="\n".join(asked), capture_output=True, text=True)
    assert [line for line in said.stdout.splitlines() if line.split()[1] != "commit"] == []


@pytest.mark.parametrize("prose", [
    "It takes 2.5 s, not `3 s`.",
    "It is 25 % more.\n<!-- figures: 25 % = 100 * (2.5 / 2.0 - 1) -->",
    "It was 3 s.\n<!-- figures: 3 s once at 57b3c91: plan on a laptop -->",
    "- A limit of 7 s.\n  <!-- figures: 7 s said: a default; -->\n".replace("; -->", " -->"),
    "Ratios are 1.9 times.\n<!-- figures: 1.9 times in tests/python/pages/figures_test.py: Ratios are -->",
])
def test_an_origin_is_taken(prose):
    assert complaints(BLOCK + prose) == []


@pytest.mark.parametrize("prose", [
    "It takes 2.6 s.",
    "It takes 2 s.",
    "It takes 1.5 to 2.5 s.",
    "It is -3 %.",
    "It is 26 % more.\n<!-- figures: 26 % = 100 * (2.5 / 2.0 - 1) -->",
    "It is 25 % more.\n<!-- figures: 25 % = 100 * (3.75 / 3.0 - 1) -->",
    "It was 3 s.\n<!-- figures: 3 s measured -->",
    "It was 3 s.\n<!-- figures: 4 s said: a default -->",
    "It was 3.14159 s.\n<!-- figures: 3.14159 s in docs/words.md -->",
    "It was 3 s.\n<!-- figures: 3 s in docs/none.md -->",
    "It was 3 s.\n\n<!-- figures: 3 s said: of another paragraph -->",
])
def test_a_wrong_origin_is_not(prose):
    assert complaints(BLOCK + prose) != []
