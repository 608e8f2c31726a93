#!/usr/bin/env python3
"""Runs clang-tidy on all sources of a build folder, beside one another, and passes over what it has found clean before.

    tools/tidy.py [BUILD]           a unity build (preset check): its unity sources and wrapped tests; headers are parsed
                                    some forty times and not some five hundred
    tools/tidy.py --each [BUILD]    a build source by source (preset dev)

What a run depends on is its key: clang-tidy, its configuration, the compile command, and the contents of the source and
of all that it includes, as Ninja knows them since the last build. The keys of clean runs are empty files in
~/.cache/pipeweaver/tidy, or below XDG_CACHE_HOME. Exits with 1 if clang-tidy complains of a source.

clang-tidy looks for unused using-declarations in the main file alone, which a unity source is not: `unused_using` does it.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "pipeweaver/tidy"
KEPT_FOR = 60 * 86_400  # seconds since a key was last of use
# GCC's warnings that clang does not know; that a unity source includes sources is its nature.
UNITY_OPTIONS = ["--extra-arg=-Wno-unknown-warning-option", "--checks=-bugprone-suspicious-include,-misc-unused-using-decls"]


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def entries_of(build, only):
    """What is to be checked of a build's compile commands: no source twice, the longest first."""
    entries = [entry for entry in json.loads((build / "compile_commands.json").read_text())
               if "_sanitized.dir/" not in entry.get("output", entry["command"]) and "pipeweaver_python.dir" not in entry["command"]
               and entry["file"].endswith((".cpp", ".cxx")) and only in entry["file"]]
    return sorted(entries, key=lambda entry: -pathlib.Path(entry["file"]).read_text().count("#include"))


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


def complaints(build, source, options):
    """What clang-tidy says of a source; None if nothing."""
    done = subprocess.run(["clang-tidy", "-p", build, "--quiet", *options, source], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    said = [line for line in done.stderr.splitlines() if not line.endswith("generated.")]
    return done.stdout + "\n".join(said)


def check(build, entry, files, versions, options):
    remembered = CACHE / key_of(entry, files, versions) if files else None
    if remembered and remembered.exists():
        remembered.touch()
        return "known", None
    said = complaints(build, entry["file"], options)
    if remembered and said is None:
        remembered.touch()
    return "checked", said


def unused_using(root):
    """The lines of using-declarations of a name that their file holds nowhere else."""
    found = []
    for path in sorted(path for path in root.rglob("*.cpp") if "build" not in path.relative_to(root).parts):
        text = path.read_text()
        for declared in re.finditer(r"^ *using [\w:]*::(\w+);", text, re.MULTILINE):
            if len(re.findall(rf"\b{declared[1]}\b", text)) == 1:
                line = text.count("\n", 0, declared.start()) + 1
                found.append(f"{path.relative_to(root)}:{line}: {declared[0].strip()} is not used")
    return found


def forget_old():
    for path in CACHE.iterdir():
        if path.stat().st_mtime < time.time() - KEPT_FOR:
            path.unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, help="default: build/check, with --each build/dev")
    parser.add_argument("--each", action="store_true", help="the build is none of unity sources")
    parser.add_argument("--only", default="", metavar="TEXT", help="sources whose path contains TEXT (default: all)")
    asked = parser.parse_args()
    build = (asked.build or ROOT / ("build/dev" if asked.each else "build/check")).resolve()
    CACHE.mkdir(parents=True, exist_ok=True)
    forget_old()
    entries = entries_of(build, asked.only)
    known = dependencies(build)
    options = [] if asked.each else UNITY_OPTIONS
    versions = output_of("clang-tidy", "--version").encode() + (ROOT / ".clang-tidy").read_bytes() + " ".join(options).encode()

    def run(entry):
        return check(build, entry, known.get(pathlib.Path(entry["file"])), versions, options)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        results = list(threads.map(run, entries))
    said = [text for _, text in results if text is not None] + unused_using(ROOT)
    for text in said:
        print(text)
    print(f"clang-tidy: {len(results)} sources, {sum(how == 'known' for how, _ in results)} known to be clean")
    return 1 if said or not results else 0


if __name__ == "__main__":
    sys.exit(main())
