"""Compiles each C++ file that changed of late by itself, without making anything of it.

A unity build does not tell that a source or header lacks an include that some other one happens to bring. Looked at is what
the last ten commits and the work tree changed; `run-tests.sh --all=dev` compiles everything source by source.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
COMMITS = 10
FLAGS = ["-std=c++20", "-I.", "-Iinclude", "-DDOCTEST_CONFIG_VOID_CAST_EXPRESSIONS", '-DPIPEWEAVER_SOURCE_DIR=""',
         '-DPIPEWEAVER_VERSION=""', "-DPIPEWEAVER_FUZZ_TARGET=problem"]


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def changed():
    """The C++ files that changed of late; all of them in a checkout that does not go back so far."""
    commits = git("rev-list", "--max-count", str(COMMITS + 1), "HEAD")
    tracked = git("diff", "--name-only", commits[-1]) if len(commits) > COMMITS else git("ls-files")
    paths = {ROOT / name for name in [*tracked, *git("ls-files", "--others", "--exclude-standard")]}
    # The bindings need Python's headers, and are compiled source by source anyway.
    return sorted(path for path in paths if path.suffix in {".cpp", ".hpp"} and path.exists() and path.parent != ROOT / "python")


def complaints(path):
    done = subprocess.run(["g++", *FLAGS, "-fsyntax-only", "-x", "c++", path], cwd=ROOT, capture_output=True, text=True)
    return done.stderr if done.returncode != 0 else None


def main():
    paths = changed()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        said = [text for text in threads.map(complaints, paths) if text is not None]
    print("\n".join([*said, f"{len(paths)} files compiled alone"]))
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
