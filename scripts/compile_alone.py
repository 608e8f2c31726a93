"""Compiles each C++ file that changed of late by itself, without making anything of it.

A unity build does not tell that a source or header lacks an include that some other one happens to bring. Looked at is
what the work tree and the last commits changed, the latest first, up to 30 files or ten commits; `run-tests.sh
--all=dev` compiles everything source by source.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys

from changed import changed

ROOT = pathlib.Path(__file__).resolve().parents[1]
FILES = 30
FLAGS = ["-std=c++20", "-I.", "-Iinclude", "-DDOCTEST_CONFIG_VOID_CAST_EXPRESSIONS", '-DPIPEWEAVER_SOURCE_DIR=""',
         '-DPIPEWEAVER_VERSION=""', "-DPIPEWEAVER_FUZZ_TARGET=problem"]


def complaints(path):
    done = subprocess.run(["g++", *FLAGS, "-fsyntax-only", "-x", "c++", path], cwd=ROOT, capture_output=True, text=True)
    return done.stderr if done.returncode != 0 else None


def main():
    paths = changed()[:FILES]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        said = [text for text in threads.map(complaints, paths) if text is not None]
    print("\n".join([*said, f"{len(paths)} files compiled alone"]))
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
