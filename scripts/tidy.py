#!/usr/bin/env python3
"""Runs clang-tidy on sources of a build folder, beside one another, and passes over what it has found clean before.

    scripts/tidy.py --changed [BUILD]    of a unity build (preset check) what changed of late, joined by module
    scripts/tidy.py [BUILD]              a unity build: its unity sources and wrapped tests, in some twenty
    scripts/tidy.py --each [BUILD]       a build source by source (preset dev)

`--changed`: the sources that the work tree and the last ten commits changed, the latest MOST of them, and for each
header that they changed a source of each of two modules that include it.

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
import shutil
import subprocess
import sys
import time

from changed import changed, module_of
from wrap_tests import wrapped

ROOT = pathlib.Path(__file__).resolve().parents[1]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "pipeweaver/tidy"
PINNED = ROOT / ".venv/bin/clang-tidy"  # tests/python/requirements-tools.txt
MOST = 150
KEPT_FOR = 60 * 86_400  # seconds since a key was last of use
# In the compile commands: sanitized twins, sources of apps that tests have, too, and what no check is made for.
ELSEWHERE = ("_sanitized.dir/", "pipeweaver_test_objects.dir/__/", "pipeweaver_python.dir/")
# GCC's warnings that clang does not know; what GCC's own headers use of theirs.
OPTIONS = ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-deprecated-declarations"]
# Names that hide those of a source beside it, which GCC looks for elsewhere; that a unity source includes sources.
UNITY_OPTIONS = ["--extra-arg=-Wno-shadow", "--checks=-bugprone-suspicious-include,-misc-unused-using-decls"]


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


def joined(build, groups):
    """Sources that include others, in BUILD/tidy, from name -> (an entry whose options they have, text): nearly all of
    the time goes into headers."""
    folder = build / "tidy"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    entries = {}
    for name, (entry, text) in sorted(groups.items()):
        source = folder / f"{name}.cpp"
        source.write_text(text)
        entries[name] = entry | {"file": str(source), "command": entry["command"].replace(entry["file"], str(source))}
    (folder / "compile_commands.json").write_text(json.dumps(list(entries.values())))
    return folder, entries


def together(build, entries, known):
    """Some forty entries as twenty, and what each depends on."""
    groups = {}
    for entry in entries:
        defines = [word for word in entry["command"].split() if word.startswith("-D")]
        groups.setdefault((group_of(build, pathlib.Path(entry["file"])), " ".join(defines)), []).append(entry)
    named = {f"{name}-{number}": some for number, ((name, _), some) in enumerate(sorted(groups.items()))}
    folder, made = joined(build, {name: (some[0], "".join(f'#include "{one["file"]}"\n' for one in some))
                                  for name, some in named.items()})
    files = {}
    for name, some in named.items():
        of_some = [known.get(entry["file"]) for entry in some]
        files[made[name]["file"]] = [path for paths in of_some for path in paths] if None not in of_some else None
    return folder, list(made.values()), files


@functools.cache
def included(path):
    """The files of the project that a file includes."""
    names = re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE)
    places = [[pathlib.Path(name), ROOT / "include" / name, ROOT / name, path.parent / name] for name in names]
    found = [next((place.resolve() for place in some if place.is_absolute() and place.is_file()), None)
             for some in places]
    return [path for path in found if path is not None]


@functools.cache
def all_included(path):
    """What a file includes, directly or not, and itself."""
    found, left = {path}, [path]
    while left:
        new = set(included(left.pop())) - found
        found |= new
        left.extend(new)
    return found


def members(entries):
    """Source -> the entry whose object it is part of."""
    found = {}
    for entry in entries:
        source = pathlib.Path(entry["file"])
        parts = [part for part in included(source) if part.suffix == ".cpp"]
        found.update({part: entry for part in parts or [source]})
    return found


def to_look_at(paths, sources):
    """The changed ones of `sources`, and those that stand for changed headers."""
    chosen = [path for path in paths if path in sources][:MOST]
    for header in [path for path in paths if path.suffix == ".hpp"]:
        modules = {module_of(source, ROOT) for source in chosen if header in all_included(source)}
        for source in sources:
            if len(modules) < 2 and module_of(source, ROOT) not in modules and header in all_included(source):
                modules.add(module_of(source, ROOT))
                chosen.append(source)
    return chosen


def changes_together(build, entries, known):
    """What is to be looked at of what changed, by module and options, and what it depends on: of the project what it
    includes, of the system what its object does."""
    entry_of = members(entries)
    by_module = {}
    for source in to_look_at(changed(ROOT), sorted(entry_of)):
        kind = "tests" if source.is_relative_to(ROOT / "tests") else "changed"
        by_module.setdefault((f"{kind}_{module_of(source, ROOT)}", entry_of[source]["file"]), []).append(source)
    groups, sources_of = {}, {}
    for number, ((name, of), sources) in enumerate(sorted(by_module.items())):
        sources_of[f"{name}-{number}"] = sources
        lines = "".join(f'#include "{source.relative_to(ROOT)}"\n' for source in sources)
        groups[f"{name}-{number}"] = (entry_of[sources[0]], wrapped(ROOT, sources) if "tests/groups" in of else lines)
    folder, made = joined(build, groups)
    files = {}
    for name, sources in sources_of.items():
        of_object = known.get(groups[name][0]["file"])
        ours = sorted({path for source in sources for path in all_included(source)})
        of_system = [path for path in of_object or [] if not path.is_relative_to(ROOT)]
        files[made[name]["file"]] = [pathlib.Path(made[name]["file"]), *ours, *of_system] if of_object else None
    return folder, list(made.values()), files


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


def complaints(program, build, source, options):
    """What clang-tidy says of a source; None if nothing."""
    done = subprocess.run([program, "-p", build, "--quiet", *options, source], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    said = [line for line in done.stderr.splitlines() if not line.endswith("generated.")]
    return done.stdout + "\n".join(said)


def check(run, entry, files, versions):
    """What `run` says of an entry's source, unless it said nothing of the same before."""
    remembered = CACHE / key_of(entry, files, versions) if files else None
    if remembered and remembered.exists():
        remembered.touch()
        return "known", None
    said = run(entry["file"])
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
    parser.add_argument("--changed", action="store_true", help="what changed of late")
    parser.add_argument("--only", default="", metavar="TEXT", help="sources whose path contains TEXT (default: all)")
    parser.add_argument("--clang-tidy", default=PINNED, metavar="PROGRAM", help="default: .venv/bin/clang-tidy")
    asked = parser.parse_args()
    build = (asked.build or ROOT / ("build/dev" if asked.each else "build/check")).resolve()
    CACHE.mkdir(parents=True, exist_ok=True)
    forget_old()
    entries = entries_of(build, asked.only)
    folder, files = build, dependencies(build)
    if not asked.each:
        folder, entries, files = (changes_together if asked.changed else together)(build, entries, files)
    options = OPTIONS if asked.each else OPTIONS + UNITY_OPTIONS
    rules = (ROOT / ".clang-tidy").read_bytes() + " ".join(options).encode()
    versions = output_of(asked.clang_tidy, "--version").encode() + rules

    def run(source):
        return complaints(asked.clang_tidy, folder, source, options)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        results = list(threads.map(lambda entry: check(run, entry, files.get(entry["file"]), versions), entries))
    said = [text for _, text in results if text is not None] + unused_using(ROOT)
    for text in said:
        print(text)
    print(f"clang-tidy: {len(results)} sources, {sum(how == 'known' for how, _ in results)} known to be clean")
    return 1 if said or not (results or asked.changed) else 0


if __name__ == "__main__":
    sys.exit(main())
