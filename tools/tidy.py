#!/usr/bin/env python3
"""Runs clang-tidy on every source of a build folder, beside one another, and passes over what it has found clean before.

What a run depends on is its key: clang-tidy, its configuration, the compile command, and the contents of the source and
of all that it includes, as Ninja knows them since the last build. The keys of clean runs are empty files in
~/.cache/pipeweaver/tidy, or below XDG_CACHE_HOME. Exits with 1 if clang-tidy complains of a source.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "pipeweaver/tidy"
KEPT_FOR = 60 * 86_400  # seconds since a key was last of use


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def dependencies(build):
    """Per source the files that its object was made from; a source that changed since is not in it."""
    found, files = {}, []
    for line in output_of("ninja", "-C", build, "-t", "deps").splitlines():
        if line.endswith("(VALID)"):
            files = []
        elif line.startswith("    "):
            files.append((build / line.strip()).resolve())
            found[files[0]] = files
        else:
            files = []  # a stale object's are of no use
    return found


@functools.cache
def content(path):
    return hashlib.sha256(path.read_bytes()).digest()


def key_of(entry, files, versions):
    command = entry["command"].replace(str(ROOT), "")  # any checkout's
    digest = hashlib.sha256(versions + command.encode())
    for path in files:
        digest.update(content(path))
    return digest.hexdigest()


def complaints(build, source):
    """What clang-tidy says of a source; None if nothing."""
    done = subprocess.run(["clang-tidy", "-p", build, "--quiet", source], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    said = [line for line in done.stderr.splitlines() if not line.endswith("generated.")]
    return done.stdout + "\n".join(said)


def check(build, entry, files, versions):
    remembered = CACHE / key_of(entry, files, versions) if files else None
    if remembered and remembered.exists():
        remembered.touch()
        return "known", None
    said = complaints(build, entry["file"])
    if remembered and said is None:
        remembered.touch()
    return "checked", said


def forget_old():
    for path in CACHE.iterdir():
        if path.stat().st_mtime < time.time() - KEPT_FOR:
            path.unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build/dev", help="default: build/dev")
    parser.add_argument("--only", default="", metavar="TEXT", help="sources whose path contains TEXT (default: all)")
    options = parser.parse_args()
    build = options.build.resolve()
    CACHE.mkdir(parents=True, exist_ok=True)
    forget_old()
    entries = [entry for entry in json.loads((build / "compile_commands.json").read_text())
               if entry["file"].endswith(".cpp") and options.only in entry["file"]]
    known = dependencies(build)
    versions = output_of("clang-tidy", "--version").encode() + (ROOT / ".clang-tidy").read_bytes()

    def run(entry):
        return check(build, entry, known.get(pathlib.Path(entry["file"])), versions)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        results = list(threads.map(run, entries))
    for _, said in results:
        if said is not None:
            print(said)
    print(f"clang-tidy: {len(results)} sources, {sum(how == 'known' for how, _ in results)} known to be clean")
    return 1 if any(said is not None for _, said in results) else 0


if __name__ == "__main__":
    sys.exit(main())
