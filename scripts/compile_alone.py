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

ROOT = pathlib.Path(__file__).resolve().parents[1]
COMMITS = 10
FILES = 30
FLAGS = ["-std=c++20", "-I.", "-Iinclude", "-DDOCTEST_CONFIG_VOID_CAST_EXPRESSIONS", '-DPIPEWEAVER_SOURCE_DIR=""',
         '-DPIPEWEAVER_VERSION=""', "-DPIPEWEAVER_FUZZ_TARGET=problem"]


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def changed():
    """The C++ files that changed of late but the bindings, which need Python's headers and are no unity sources."""
    names = [*git("diff", "--name-only", "HEAD"), *git("ls-files", "--others", "--exclude-standard"),
             *git("log", f"--max-count={COMMITS}", "--diff-merges=first-parent", "--format=", "--name-only")]
    paths = [ROOT / name for name in dict.fromkeys(names)
             if name.endswith((".cpp", ".hpp")) and not name.startswith("python/")]
    return [path for path in paths if path.exists()][:FILES]


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
