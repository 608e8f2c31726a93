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
