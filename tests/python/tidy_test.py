"""scripts/tidy.py with a clang-tidy that only writes down what it is asked, and with the real one."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

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
        done = subprocess.run([sys.executable, ROOT / "scripts/tidy.py", "--each", tmp_path], cwd=tmp_path,
                              capture_output=True)
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
    sys.path.insert(0, str(ROOT / "scripts"))
    import tidy as tool

    (tmp_path / "base").mkdir()
    (tmp_path / "base/a.cpp").write_text(
        "using std::string;\nusing std::vector;\nvector<int> numbers;\nstd::string text;\n")
    assert tool.unused_using(tmp_path) == ["base/a.cpp:1: using std::string; is not used"]
