"""Counts the tests of JUnit files, as doctest and pytest write them.

    count_tests.py [--at-least N] [--log FILE] [--ctest FILE] FILE...    prints "PASSED FAILED SKIPPED", and what
                                                                         failed to stderr
    count_tests.py --longest N FILE...                    prints the N longest tests

A file without a test or that cannot be read counts as a failed test: a filter that matches nothing is an error, and a
program that crashed leaves half a file. So do tests below --at-least, which have not run. `--log` names what C++ tests
printed: those that left something out say so on a line that begins with "left out: ". `--ctest` is CTest's own JUnit
file: a program that failed though its cases passed, because it leaked, say, counts as a failed test.
"""

import argparse
import pathlib
import re
import sys
import xml.etree.ElementTree


def outcome(case):
    """"passed", "failed" or "skipped" of a <testcase>."""
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def name_of(case):
    return f'{case.get("classname", "")}: {case.get("name", "")}'


def cases_of(path):
    """The <testcase>s of a file; none if it is not whole."""
    try:
        return list(xml.etree.ElementTree.parse(path).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        return []


def tell(case):
    """What failed, shortly."""
    print(f"FAILED: {name_of(case)}", file=sys.stderr)
    for problem in [*case.findall("failure"), *case.findall("error")]:
        lines = f'{problem.get("message") or ""}\n{problem.text or ""}'.strip().splitlines()
        print("\n".join(f"    {line}" for line in lines[-30:]), file=sys.stderr)


def failed_after_all(report, paths):
    """The programs of CTest's report that failed and none of whose cases did: FOLDER/NAME left FOLDER/NAME.xml, where a
    name's slashes are points."""
    passed = {f"{path.parent.name}/{path.stem}" for path in paths
              if (cases := cases_of(path)) and "failed" not in map(outcome, cases)}
    names = [case.get("name", "") for case in cases_of(report) if outcome(case) == "failed"]
    folders = [name.partition("/") for name in names]
    return ["".join(parts) for parts in folders if f"{parts[0]}/{parts[2].replace('/', '.')}" in passed]


def count(paths, at_least, log, report):
    outcomes = []
    for path in paths:
        cases = cases_of(path)
        for case in cases:
            outcomes.append(outcome(case))
            if outcomes[-1] == "failed":
                tell(case)
        if not cases:
            print(f"FAILED: {path} holds no test, or not all of it was written", file=sys.stderr)
            outcomes.append("failed")
    passed, failed, skipped = map(outcomes.count, ["passed", "failed", "skipped"])
    if len(outcomes) < at_least:
        print(f"FAILED: {at_least - len(outcomes)} of {at_least} tests left no result", file=sys.stderr)
        failed += at_least - len(outcomes)
    for name in failed_after_all(report, paths) if report else []:
        print(f"FAILED: {name} ended with an error, though its cases passed; the log has what it said", file=sys.stderr)
        failed += 1
    printed = log.read_text(errors="replace") if log and log.exists() else ""
    left_out = len(re.findall(r"^left out: ", printed, re.MULTILINE))
    return passed - left_out, failed, skipped + left_out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-least", type=int, default=1, metavar="N")
    parser.add_argument("--log", type=pathlib.Path)
    parser.add_argument("--ctest", type=pathlib.Path)
    parser.add_argument("--longest", type=int, metavar="N")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    asked = parser.parse_args()
    if asked.longest:
        cases = [case for path in asked.files for case in cases_of(path)]
        for case in sorted(cases, key=lambda case: -float(case.get("time", 0)))[:asked.longest]:
            print(f'{float(case.get("time", 0)):7.1f}  {name_of(case)}')
    else:
        print(*count(asked.files, asked.at_least, asked.log, asked.ctest))


if __name__ == "__main__":
    main()
