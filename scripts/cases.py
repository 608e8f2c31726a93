"""cases.py BUILD: each C++ test case of a build with where it ran, a line each, and which ran nowhere.

    emit/plan_bytes_test.cpp: the files of a plan are the same bytes in every build -> sanitized, release

What there is says the test program; what ran say the JUnit files that CTest left: of the sanitized program, of the
release libraries' own cases, and of --all=full. Exits with 1 if a case ran nowhere and is none of the long ones, which
wait for --all=full (tests/support/effort.hpp), or if there are none. `--names` prints the names alone.
"""

import argparse
import collections
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

from count_tests import cases_of

LONG = "long runs"
PLACES = {"pipeweaver_tests_sanitized": "sanitized", "release_cases": "release", "pipeweaver_tests": "--all=full"}


def known(program):
    """(file, name) -> suite of all cases of a test program, those that it skips among them."""
    said = subprocess.check_output([program, "--list-test-cases", "--no-skip", "--reporters=xml"], text=True)
    return {(case.get("filename"), case.get("name")): case.get("testsuite", "")
            for case in xml.etree.ElementTree.fromstring(said).iter("TestCase")}


def ran(folder):
    """Of each file the names in the JUnit files of a folder; a case with subcases is there once for each."""
    names = collections.defaultdict(set)
    for path in sorted(folder.glob("*.xml")):
        for case in cases_of(path):
            names[case.get("classname")].add(case.get("name"))
    return names


def holds(names, name):
    return name in names or any(one.startswith(f"{name}/") for one in names)


def shown(path):
    """A source as tests/CMakeLists.txt names it."""
    return path.rpartition("tests/")[2]


def places_of(cases, results):
    """(file, name) -> where it ran, or waits to."""
    found = {place: ran(results / folder) for folder, place in PLACES.items()}
    places = {key: [place for place, names in found.items() if holds(names.get(key[0], ()), key[1])] for key in cases}
    return {key: places[key] or ["waits for --all=full"] * (cases[key] == LONG) for key in cases}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--names", action="store_true")
    asked = parser.parse_args()
    cases = known(asked.build / "bin/pipeweaver_tests")
    if asked.names:
        print("\n".join(sorted(f"{shown(file)}: {name}" for file, name in cases)))
        return 0
    places = places_of(cases, asked.build / "test-results")
    for (file, name), some in sorted(places.items()):
        print(f"{shown(file)}: {name} -> {', '.join(some) or 'NOWHERE'}")
    lost = [f"{shown(file)}: {name}" for (file, name), some in sorted(places.items()) if not some]
    counts = collections.Counter(", ".join(some) or "NOWHERE" for some in places.values())
    print(f"{len(cases)} C++ cases: " + "; ".join(f"{n} {place}" for place, n in counts.most_common()), file=sys.stderr)
    for name in lost:
        print(f"ran nowhere: {name}", file=sys.stderr)
    return 1 if lost or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
