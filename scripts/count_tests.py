"""count_tests.py FILE: prints "PASSED FAILED" of a JUnit file, as ctest and pytest write it; left-out tests are neither."""

import sys
import xml.etree.ElementTree


def outcome(case):
    """"passed", "failed" or "skipped" of a <testcase>."""
    if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
        return "failed"
    # ctest says "notrun" where a program could not be started: no test that was asked for may vanish like this.
    if case.get("status") == "notrun":
        return "failed"
    return "skipped" if case.find("skipped") is not None else "passed"


def main():
    outcomes = [outcome(case) for case in xml.etree.ElementTree.parse(sys.argv[1]).iter("testcase")]
    print(outcomes.count("passed"), outcomes.count("failed"))


if __name__ == "__main__":
    main()
