"""What run-tests.sh says at its end: where each C++ case ran, and what the run cost."""

import subprocess
import sys

import pytest
from checkout import ROOT

KNOWN = """<?xml version="1.0"?><doctest><TestCase name="one" testsuite="" filename="tests/a_test.cpp"/>
<TestCase name="both" testsuite="both libraries" filename="tests/a_test.cpp"/>
<TestCase name="long" testsuite="long runs" filename="tests/b_test.cpp" skipped="true"/></doctest>"""
RAN = '<testsuites><testsuite><testcase classname="{}" name="{}"/></testsuite></testsuites>'


@pytest.fixture
def build(tmp_path):
    """A build whose test program has three cases."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/pipeweaver_tests"
    program.write_text(f"#!/bin/sh\ncat <<END\n{KNOWN}\nEND\n")
    program.chmod(0o755)

    def ran(folder, number, file, name):
        place = tmp_path / "test-results" / folder
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.xml").write_text(RAN.format(file, name))

    ran("pipeweaver_tests_sanitized", 1, "tests/a_test.cpp", "one/a subcase")
    ran("release_cases", 1, "tests/a_test.cpp", "both")
    return tmp_path, ran


def cases(build, *options):
    done = subprocess.run([sys.executable, ROOT / "scripts/cases.py", build, *options], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_each_case_is_told_with_where_it_ran(build):
    folder, ran = build
    ran("pipeweaver_tests_sanitized", 2, "tests/a_test.cpp", "both")
    status, lines, said = cases(folder)
    assert status == 0 and said.startswith("3 C++ cases: ")
    assert lines == ["a_test.cpp: both -> sanitized, release", "a_test.cpp: one -> sanitized",
                     "b_test.cpp: long -> waits for --all=full"]
    assert cases(folder, "--names")[1] == ["a_test.cpp: both", "a_test.cpp: one", "b_test.cpp: long"]


def test_a_case_that_ran_nowhere_is_a_failure(build):
    folder, _ = build
    (folder / "test-results/pipeweaver_tests_sanitized/1.xml").unlink()
    status, lines, said = cases(folder)
    assert status == 1 and "a_test.cpp: one -> NOWHERE" in lines and "ran nowhere: a_test.cpp: one" in said


def test_a_program_that_fails_though_its_cases_passed_is_counted(build):
    """LeakSanitizer speaks when all cases are through."""
    folder, _ = build
    report = folder / "ctest.junit"
    report.write_text('<testsuite><testcase name="pipeweaver_tests_sanitized/1" status="fail"><failure/></testcase>'
                      '<testcase name="release_cases/1" status="run"/></testsuite>')
    files = sorted((folder / "test-results").rglob("*.xml"))
    done = subprocess.run([sys.executable, ROOT / "scripts/count_tests.py", "--ctest", report, *files],
                          capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "1", "0"] and "pipeweaver_tests_sanitized/1 ended with" in done.stderr


def cost(tmp_path, hits, misses, *options):
    log = tmp_path / "log"
    log.write_text("# a.cpp\n" + "direct_cache_hit\nlocal_storage_hit\n" * hits + "cache_miss\n" * misses)
    command = [sys.executable, ROOT / "scripts/run_cost.py", "--wall", "900", "--cpu", "1500", "--program", "400",
               "--compiles", log, "--landings", tmp_path / "run_cost.txt", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_cost_stands_beside_the_last_landings_with_caches_alike(tmp_path):
    (tmp_path / "run_cost.txt").write_text("# words\n2026-01-01 aaaaaaaa 2 cold 2000 3900 410 90 1\n"
                                           "2026-01-02 bbbbbbbb 2 cold 1900 3800 405 90 2\n"
                                           "2026-01-03 cccccccc 2 warm 800 1300 20 90 89\n")
    _, last, this, line = cost(tmp_path, 10, 80, "--comparable")
    assert last.split()[1:] == ["bbbbbbbb", "2", "cold", "1900", "3800", "405", "90", "2"]
    assert this.split()[3:] == ["cold", "900", "1500", "400", "90", "10"] and line.endswith("400 90 10")
    assert "cccccccc" in cost(tmp_path, 80, 10, "--comparable")[1]
    assert cost(tmp_path, 1, 0)[-1].startswith("only some parts were run")
