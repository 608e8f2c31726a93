"""tools/check_structure.py on small trees: what it finds, and what it lets pass."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path):
    def write(files):
        for name, included in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f'#include "{other}"\n' for other in included))

    return write


def check(folder):
    script = ROOT / "tools/check_structure.py"
    done = subprocess.run([sys.executable, script, folder], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()


def test_a_circle_of_three_rooms_is_found_and_one_of_two_passes(tree, tmp_path):
    tree({"search/a.hpp": ["search/b.hpp"], "search/b.hpp": [], "search/b.cpp": ["search/b.hpp", "search/a.hpp"]})
    assert check(tmp_path) == (0, [])
    tree({"search/b.cpp": ["search/b.hpp", "search/deep/c.hpp"], "search/deep/c.hpp": ["../a.hpp"]})
    status, lines = check(tmp_path)
    assert status == 1
    assert lines[0] == "circle of 3 rooms: search/a search/b search/c"
    assert "    search/b includes search/c in search/b.cpp" in lines


def test_a_module_may_include_only_what_is_allowed(tree, tmp_path):
    tree({"search/a.cpp": ["base/a.hpp"], "base/a.hpp": [], "apps/main.cpp": ["search/b.hpp"], "search/b.hpp": []})
    assert check(tmp_path) == (0, [])
    tree({"base/a.hpp": ["search/b.hpp"]})
    assert check(tmp_path) == (1, ["edge base -> search: base/a.hpp includes search/b.hpp"])


def test_a_public_header_has_a_user_outside_its_module(tree, tmp_path):
    public = "include/pipeweaver/search/"
    tree({public + "entry.hpp": ["pipeweaver/search/words.hpp"], public + "words.hpp": [],
          "tests/search/a_test.cpp": ["pipeweaver/search/entry.hpp"]})
    assert check(tmp_path) == (0, [])
    tree({public + "inner.hpp": [], "search/inner.cpp": ["pipeweaver/search/inner.hpp"]})
    assert check(tmp_path) == (1, [f"public header without a user outside its module: {public}inner.hpp"])


def test_a_folder_has_at_most_40_sources(tree, tmp_path):
    tree({f"search/a{number}.cpp": [] for number in range(40)})
    assert check(tmp_path) == (0, [])
    tree({"search/one_more.cpp": []})
    assert check(tmp_path) == (1, ["folder with 41 sources: search"])


def test_nothing_uses_the_studies_and_they_may_use_all(tree, tmp_path):
    tree({"studies/a.cpp": ["tests/support/a.hpp", "apps/a.hpp"], "tests/support/a.hpp": [], "apps/a.hpp": [],
          "studies/b.hpp": []})
    assert check(tmp_path) == (0, [])
    tree({"apps/b.cpp": ["studies/b.hpp"]})
    assert check(tmp_path) == (1, ["edge apps -> studies: apps/b.cpp includes studies/b.hpp"])


def test_a_link_of_a_page_leads_to_a_file_and_a_heading(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/other.md").write_text("# A `code`, and [a link](../page.md)!\n\n## Twice\n\n## Twice\n\n```\n# none\n```\n")
    good = ["docs/other.md", "docs/other.md#a-code-and-a-link", "docs/other.md#twice-1", "#here", "https://a.b/c.md", "docs"]
    page = tmp_path / "page.md"
    page.write_text("## Here\n" + "".join(f"[x]({link})\n" for link in good) + "`[x](code.md)`\n```\n[x](block.md)\n```\n")
    assert check(tmp_path) == (0, [])
    bad = ["docs/gone.md", "docs/other.md#none", "#there", "docs/other.md#twice-2"]
    page.write_text("## Here\n" + "".join(f"![x]({link})\n" for link in bad))
    assert check(tmp_path) == (1, [f"broken link in page.md: {link}" for link in bad])
