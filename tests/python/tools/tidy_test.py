"""scripts/tidy.py with a clang-tidy that only writes down what it is asked, and with the real one."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from checkout import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import changed  # noqa: E402
import tidy as tool  # noqa: E402

CLANG_TIDY = """#!/bin/sh
[ "$1" = --version ] && exec echo 1
for source; do :; done
echo "$source" >> "$ASKED"
! grep -q wrong "$source"
"""
NINJA = """#!/bin/sh
printf 'a.o: #deps 2, deps mtime 1 (VALID)\\n    %s/a.cpp\\n    %s/a.hpp\\n\\n' "$PWD" "$PWD"
"""


@pytest.fixture
def tidy(tmp_path, monkeypatch):
    for name, text in {"clang-tidy": CLANG_TIDY, "ninja": NINJA}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    for name in ["a.cpp", "a.hpp", "b.cpp"]:
        (tmp_path / name).write_text("fine")
    commands = [{"command": f"c++ {name}", "file": str(tmp_path / name)} for name in ["a.cpp", "b.cpp"]]
    (tmp_path / "compile_commands.json").write_text(json.dumps(commands))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))

    def run():
        (tmp_path / "asked").write_text("")
        done = subprocess.run([sys.executable, ROOT / "scripts/tidy.py", "--each", "--clang-tidy",
                               tmp_path / "clang-tidy", tmp_path], cwd=tmp_path, capture_output=True)
        return done.returncode, sorted(pathlib.Path(line).name
                                       for line in (tmp_path / "asked").read_text().splitlines())

    return run


def test_a_source_is_asked_of_again_once_it_or_a_header_has_changed(tidy, tmp_path):
    assert tidy() == (0, ["a.cpp", "b.cpp"])
    assert tidy() == (0, ["b.cpp"])  # of which nothing says what it includes
    (tmp_path / "a.hpp").write_text("still fine")
    assert tidy() == (0, ["a.cpp", "b.cpp"])
    assert tidy() == (0, ["b.cpp"])


def test_what_was_wrong_is_not_passed_over(tidy, tmp_path):
    (tmp_path / "a.cpp").write_text("wrong")
    assert tidy() == (1, ["a.cpp", "b.cpp"])
    assert tidy() == (1, ["a.cpp", "b.cpp"])


def test_what_is_wrong_in_a_source_of_a_unity_source_is_found(tmp_path):
    folder = tmp_path / "planner"  # as .clang-tidy looks at the project's folders alone
    folder.mkdir()
    (folder / "a.cpp").write_text("bool a(bool b) { if (b) return true; else return false; }\n")
    unity = tmp_path / "unity_0_cxx.cxx"
    unity.write_text('#include "planner/a.cpp"\n')
    entry = {"directory": str(tmp_path), "command": f"c++ -I. -Wno-subobject-linkage -c {unity}", "file": str(unity)}
    (tmp_path / "compile_commands.json").write_text(json.dumps([entry]))
    (tmp_path / ".clang-tidy").write_text((ROOT / ".clang-tidy").read_text())
    (tmp_path / "build.ninja").write_text("ninja_required_version = 1.3\n")
    done = subprocess.run([sys.executable, ROOT / "scripts/tidy.py", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1
    assert "planner/a.cpp:1" in done.stdout and "readability-simplify-boolean-expr" in done.stdout


def test_a_using_declaration_of_a_name_that_its_file_does_not_hold_is_found(tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base/a.cpp").write_text(
        "using std::string;\nusing std::vector;\nvector<int> numbers;\nstd::string text;\n")
    assert tool.unused_using(tmp_path) == ["base/a.cpp:1: using std::string; is not used"]


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A repository of two modules with tests, of eleven commits; tidy.py looks at it."""
    files = {"include/pipeweaver/base/a.hpp": "", "base/a.cpp": '#include "pipeweaver/base/a.hpp"\n',
             "base/b.cpp": '#include "pipeweaver/base/a.hpp"\n', "search/s.hpp": '#include "pipeweaver/base/a.hpp"\n',
             "search/s.cpp": '#include "search/s.hpp"\n', "search/t.cpp": "", "tests/base/a_test.cpp": ""}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def git(*arguments):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "all")
    for number in range(10):
        git("commit", "-q", "--allow-empty", "-m", str(number))
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    return tmp_path, git


def looked_at(root):
    sources = sorted(root.rglob("*.cpp"))
    return [str(path.relative_to(root)) for path in tool.to_look_at(changed.changed(root), sources)]


def test_sources_that_changed_of_late_are_looked_at_and_two_modules_stand_for_a_header(tree):
    root, git = tree
    assert looked_at(root) == []  # what changed last is eleven commits ago
    (root / "search/t.cpp").write_text("int t;\n")
    git("commit", "-qam", "a source")
    (root / "base/b.cpp").write_text("int b;\n")
    assert looked_at(root) == ["base/b.cpp", "search/t.cpp"]
    (root / "include/pipeweaver/base/a.hpp").write_text("int a();\n")
    tool.included.cache_clear()
    tool.all_included.cache_clear()
    assert looked_at(root) == ["base/b.cpp", "search/t.cpp", "base/a.cpp", "search/s.cpp"]


def test_a_file_belongs_to_the_module_that_it_is_of_or_tests(tree):
    root, _ = tree
    assert [changed.module_of(root / name, root) for name in (
        "base/a.cpp", "include/pipeweaver/base/a.hpp", "tests/base/a_test.cpp")] == ["base"] * 3
