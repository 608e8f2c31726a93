"""wrap_tests.py ROOT OUT TEST.cpp...: writes a source that holds all these tests, each in a namespace of its own.

Tests may use the same words for what they set up, so they cannot simply be compiled as one. What they include comes
first, outside of the namespaces; included once more inside it is empty, since every header says `#pragma once`.
"""

import pathlib
import sys


def wrapped(root, tests):
    """The text of a source with the tests of these files, named as seen from `root`: alike in every checkout."""
    includes = {line for test in tests for line in test.read_text().splitlines() if line.startswith("#include ")}
    spaces = [f'namespace {test.parent.name}_{test.stem} {{\n#include "{test.relative_to(root)}"\n}}' for test in tests]
    return "\n".join([*sorted(includes), *spaces]) + "\n"


def main():
    root, out, *tests = map(pathlib.Path, sys.argv[1:])
    text = wrapped(root, tests)
    if not out.exists() or out.read_text() != text:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text)


if __name__ == "__main__":
    main()
