#!/usr/bin/env python3
"""Runs clang-tidy on all sources of a build folder, beside one another, and passes over what it has found clean before.

    scripts/tidy.py [BUILD]           a unity build (preset check): its unity sources and wrapped tests, in some twenty
    scripts/tidy.py --each [BUILD]    a build source by source (preset dev)

What a run depends on is its key: clang-tidy, its configuration, the compile command, and the contents of the source and
of all that it includes, as Ninja knows them since the last build. The keys of clean runs are empty files in
~/.cache/pipeweaver/tidy, or below XDG_CACHE_HOME. Exits with 1 if clang-tidy complains of a source.

clang-tidy looks for unused using-declarations in the main file alone, which a unity source is not: `unused_using` does
it.
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
# In the compile commands: sanitized twins, sources of apps that tests have, too, and what no check is made for.
ELSEWHERE = ("_sanitized.dir/", "pipeweaver_test_objects.dir/__/", "pipeweaver_python.dir/")
# GCC's warnings that clang does not know; names that hide those of a source beside it, which GCC looks for elsewhere;
# that a unity source includes sources.
UNITY_OPTIONS = ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-shadow",
                 "--checks=-bugprone-suspicious-include,-misc-unused-using-decls"]


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def entries_of(build, only):
    """What is to be checked of a build's compile commands."""
    return [entry for entry in json.loads((build / "compile_commands.json").read_text())
            if not any(name in entry["command"] for name in ELSEWHERE)
            and entry["file"].endswith((".cpp", ".cxx")) and only in entry["file"]]


def group_of(build, source):
    """With which others a source is looked at: the unity sources of its target, the wrapped tests of folders that begin
    with the same letter, what tests share."""
    name = source.relative_to(build if build in source.parents else ROOT).parts
    if name[:2] == ("tests", "groups"):
        return f"tests_{name[2][0]}"
    if name[0] == "tests":
        return "tests_share"
    return source.parent.parent.stem if source.parent.name == "Unity" else "-".join(name)


def together(build, entries, known):
    """Some forty entries as twenty that include them, in BUILD/tidy, and what each depends on: nearly all of the time
    goes into headers."""
    folder = build / "tidy"
    folder.mkdir(exist_ok=True)
    groups, joined, files = {}, [], {}
    for entry in entries:
        defines = [word for word in entry["command"].split() if word.startswith("-D")]
        groups.setdefault((group_of(build, pathlib.Path(entry["file"])), " ".join(defines)), []).append(entry)
    for number, ((name, _), some) in enumerate(sorted(groups.items())):
        source = folder / f"{name}-{number}.cpp"
        source.write_text("".join(f'#include "{entry["file"]}"\n' for entry in some))
        command = some[0]["command"].replace(some[0]["file"], str(source))
        joined.append(some[0] | {"file": str(source), "command": command})
        of_some = [known.get(entry["file"]) for entry in some]
        files[str(source)] = [path for paths in of_some for path in paths] if None not in of_some else None
    (folder / "compile_commands.json").write_text(json.dumps(joined))
    return folder, joined, files


def dependencies(build):
    """Per source the files that its object was made from; a source that changed since is not in it."""
    found, files = {}, []
    for line in output_of("ninja", "-C", build, "-t", "deps").splitlines():
        if line.endswith("(VALID)"):
            files = []
        elif line.startswith("    "):
            files.append((build / line.strip()).resolve())
            found[str(files[0])] = files
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
    """The lines of using-declarations of a name that their file holds nowhere without what it belongs to."""
    found = []
    folders = sorted(path for path in root.iterdir()
                     if path.name not in {"build", "out"} and not path.name.startswith("."))
    for path in [path for folder in folders for path in sorted(folder.rglob("*.cpp"))]:
        text = path.read_text()
        for declared in re.finditer(r"^ *using [\w:]*::(\w+);", text, re.MULTILINE):
            if not re.search(rf"(?<!::)\b{declared[1]}\b", text):
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
    folder, files = build, dependencies(build)
    if not asked.each:
        folder, entries, files = together(build, entries, files)
    options = [] if asked.each else UNITY_OPTIONS
    rules = (ROOT / ".clang-tidy").read_bytes() + " ".join(options).encode()
    versions = output_of("clang-tidy", "--version").encode() + rules

    def run(entry):
        return check(folder, entry, files.get(entry["file"]), versions, options)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        results = list(threads.map(run, entries))
    said = [text for _, text in results if text is not None] + unused_using(ROOT)
    for text in said:
        print(text)
    print(f"clang-tidy: {len(results)} sources, {sum(how == 'known' for how, _ in results)} known to be clean")
    return 1 if said or not results else 0


if __name__ == "__main__":
    sys.exit(main())
