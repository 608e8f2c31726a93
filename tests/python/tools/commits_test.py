"""tools/check_commits.py on small histories."""

import subprocess
import sys

import pytest
from checkout import ROOT

WHO = ["-c", "user.name=a", "-c", "user.email=a@b"]


@pytest.fixture
def commit(tmp_path):
    """commit(message, {name: content}) makes one, and gives what is said of it."""
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)

    def make(message, files):
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content)
        subprocess.run(["git", "-C", tmp_path, "add", "."], check=True)
        subprocess.run(["git", "-C", tmp_path, *WHO, "commit", "--quiet", "--message", message], check=True)
        done = subprocess.run([sys.executable, ROOT / "tools/check_commits.py", tmp_path, "--last", "1"],
                              capture_output=True, text=True)
        said = done.stdout.rstrip().split(": ", 1)[-1]
        assert done.returncode == (0 if said == "1 commits say what they are" else 1)
        return said

    return make


def test_a_subject_fits_a_line_and_has_one_topic(commit):
    assert commit("A page says it" + "x" * 58, {"a.md": "1"}) == "1 commits say what they are"
    assert commit("A page says it" + "x" * 59, {"a.md": "2"}) == "subject of 73 characters, allowed are 72"
    assert commit("One thing; another", {"a.md": "3"}).startswith("subject of several topics")


def test_a_change_of_sources_says_why(commit):
    assert commit("A number", {"a.cpp": "1"}).startswith("no body that says why")
    assert commit("A number\n\nIt was wrong.", {"a.cpp": "2"}) == "1 commits say what they are"


def test_what_adds_much_says_what_goes_but_for_tests_and_data(commit):
    lines = "x\n" * 1001
    assert commit("Much\n\nWhy.", {"a.py": lines}).startswith("1001 lines come outside tests/, and the body does not")
    assert commit("Much\n\nWhy. Nothing is deleted.", {"b.py": lines}) == "1 commits say what they are"
    assert commit("Much\n\nWhy.", {"tests/c.py": lines, "d.json": lines}) == "1 commits say what they are"


def test_the_oldest_commit_of_a_shallow_clone_is_not_blamed_for_what_came_before_it(commit, tmp_path):
    commit("Much\n\nWhy. Nothing is deleted.", {"a.py": "x\n" * 1001})
    commit("A number\n\nIt was wrong.", {"a.cpp": "2"})
    clone = ["git", "clone", "--quiet", "--depth", "1", tmp_path.as_uri(), tmp_path / "clone"]
    subprocess.run(clone, check=True, capture_output=True)
    done = subprocess.run([sys.executable, ROOT / "tools/check_commits.py", tmp_path / "clone"], capture_output=True,
                          text=True)
    assert (done.returncode, done.stdout) == (0, "0 commits say what they are\n")


def test_the_history_here_is_so():
    done = subprocess.run([sys.executable, ROOT / "tools/check_commits.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
