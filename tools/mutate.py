#!/usr/bin/env python3
"""Changes the C++ code in small ways at random places, one at a time, and says which changes no test notices.

    tools/mutate.py --seed 7 [--count 60] [--jobs 2]
    tools/mutate.py --seed 7 --survivors        once more those that survived, after tests were added
    tools/mutate.py --given FILE --count 0      changes of a file, with no draw beside them

The draw is over the lines of function bodies of the modules below (tools/mutants.py), in the shares of WEIGHTS. All
changes go into one build of a copy of the tree in build/mutants/NAME, where the environment variable PIPEWEAVER_MUTANT
chooses one; nothing of it is in the sources themselves. A change that does not compile gives its place to the next of
the draw. Each test source runs once without a change and records which changes it comes by; then for each change these
sources run until one fails: the short ones before the long ones, of each those of its module first, among them those
whose name is like the file's. One that takes five times its usual processor time has noticed it, too.

A FILE of given changes is a list in JSON: {"file", "before", "after"} and "statement": true for a whole statement;
"before" occurs once in the file.

Written are build/mutants/NAME/results.json and table.md. Exits with 1 if any change survives. Needs what run-tests.sh
needs to build.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import mutants

ROOT = pathlib.Path(__file__).resolve().parents[1]
WEIGHTS = {"emulator": 5, "costdb": 2, "partition": 2, "search": 4, "schedule": 1, "planner": 3, "emit": 1}
SLOWER = 5  # times the usual processor time of a test source
SHORT = 3  # seconds of a test source that is run before the long ones
MOST_MEMORY = 8 << 30  # bytes of address space of a run
HEADER = """// Which change of the code is on: written by tools/mutate.py.
#pragma once
#include <atomic>
#include <cstdlib>
#include <fstream>

namespace mutants {

struct Reached {
    std::atomic<bool> any[1024] = {};
    const char* file = std::getenv("PIPEWEAVER_MUTANTS_REACHED");
    ~Reached() {
        if (file == nullptr) return;
        std::ofstream out(file, std::ios::app);
        for (int i = 0; i < 1024; ++i)
            if (any[i]) out << i << "\\n";
    }
};
inline Reached reached;
inline const int chosen = std::getenv("PIPEWEAVER_MUTANT") ? std::atoi(std::getenv("PIPEWEAVER_MUTANT")) : 0;

inline bool on(int number) {
    if (reached.file != nullptr) reached.any[number].store(true, std::memory_order_relaxed);
    return number == chosen;
}

}  // namespace mutants
"""
# Changed code may compare what cannot differ, or leave a variable unused.
LENIENT = """
foreach(module {})
  target_compile_options(pipeweaver_${{module}} PRIVATE -w -Werror=return-type)
endforeach()
"""


def shares(count):
    """How many of `count` each module gets: by largest remainder."""
    whole = sum(WEIGHTS.values())
    exact = {module: count * weight / whole for module, weight in WEIGHTS.items()}
    given = {module: int(share) for module, share in exact.items()}
    for module in sorted(exact, key=lambda one: given[one] - exact[one])[:count - sum(given.values())]:
        given[module] += 1
    return given


def sources_of(root):
    return {str(path.relative_to(root)): path.read_text()
            for module in WEIGHTS for path in sorted((root / module).rglob("*.cpp"))}


# --- which changes

def compiles(tree, file, text):
    """Whether `text` would do in place of a file of the tree."""
    (tree / file).parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".cpp", dir=(tree / file).parent) as trial:
        trial.write(text)
        trial.flush()
        done = subprocess.run(["g++", "-std=c++20", "-w", "-I.", "-Iinclude", "-fsyntax-only", trial.name], cwd=tree,
                              capture_output=True)
    return done.returncode == 0


def compile_alone(tree, file, text, candidates):
    """Those of the candidates, all of one file, with which it compiles."""
    def good(some):
        return compiles(tree, file, mutants.rewritten(text, list(enumerate(some, 1))))

    if good(candidates):
        return candidates
    if not good([]):
        sys.exit(f"{file} does not compile as it is")
    return [one for one in candidates if good([one])]


def next_of_draw(queue, taken, wanted):
    """Some candidates of a module that overlap neither one another nor what is taken."""
    found = []
    while queue and len(found) < wanted:
        one = queue.pop(0)
        if not mutants.overlaps(one, [*taken, *found]):
            found.append(one)
    return found


def choose(tree, sources, seed, count, jobs, first):
    """The mutations `first` and those of a draw that compile, and how many did not."""
    wanted = shares(count)
    drawn = mutants.draw(sources, wanted, seed)
    taken, dropped = {module: [] for module in wanted}, 0
    while True:
        fresh = [one for module, queue in drawn.items()
                 for one in next_of_draw(queue, [*first, *taken[module]], wanted[module] - len(taken[module]))]
        if not fresh:
            return [*first, *(one for module in taken for one in taken[module])], dropped
        by_file = {}
        for one in fresh:
            by_file.setdefault(one.file, []).append(one)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            good = list(pool.map(lambda file: compile_alone(tree, file, sources[file], by_file[file]), by_file))
        for one in [one for some in good for one in some]:
            taken[one.file.split("/")[0]].append(one)
        dropped += len(fresh) - sum(map(len, good))


def given(path, sources):
    """The mutations that a file names."""
    found = []
    for one in json.loads(path.read_text()):
        text = sources[one["file"]]
        if text.count(one["before"]) != 1:
            sys.exit(f"{path}: {one['file']} holds {one['before']!r} {text.count(one['before'])} times, not once")
        start = text.index(one["before"])
        found.append(mutants.Mutation(one["file"], text.count("\n", 0, start) + 1, "given", start,
                                        start + len(one["before"]), one["before"], one["after"],
                                        one.get("statement", False)))
    return found


# --- the build

def copy_tree(tree, left_out):
    """What git knows of the tree, and what it does not ignore; a file that is alike stays as it is."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                           capture_output=True, check=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if name not in left_out and (ROOT / name).is_file():
            write(tree / name, (ROOT / name).read_bytes())
            shutil.copymode(ROOT / name, tree / name)


def write(path, content):
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def lay_out(tree, sources, chosen):
    """Puts all changes into the copy."""
    write(tree / "CMakeLists.txt", ((ROOT / "CMakeLists.txt").read_text() + LENIENT.format(" ".join(WEIGHTS))).encode())
    for file, text in sources.items():
        numbered = [(number, one) for number, one in enumerate(chosen, 1) if one.file == file]
        write(tree / file, (mutants.rewritten(text, numbered) if numbered else text).encode())


def build(tree, jobs):
    command = ('. scripts/debian.sh && use_ccache "$PWD" && cmake --preset check >/dev/null && '
               f"cmake --build build/check -j{jobs} --target pipeweaver_tests")
    done = subprocess.run(["bash", "-c", command], cwd=tree, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout[-6000:] + done.stderr[-2000:])


# --- the tests

@dataclasses.dataclass
class Test:
    """A source of tests: how it is run, and what it takes by itself."""

    name: str
    command: list
    cpu_s: float = 0
    wall_s: float = 0
    reached: frozenset = frozenset()


def tests_of(tree):
    told = subprocess.run(["ctest", "--preset", "check", "--label-regex", "^pipeweaver_tests$", "--show-only=json-v1"],
                          cwd=tree, capture_output=True, text=True, check=True)
    return [Test(one["name"].partition("/")[2],
                 [part for part in one["command"] if not part.startswith(("--reporters", "--out"))])
            for one in json.loads(told.stdout)["tests"]]


def run(test, environment, cpu_s, wall_s):
    """Exit status (None: took too long), output and processor seconds of a run in a folder of its own."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s), int(cpu_s) + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/out", "w+") as out:
        own = os.environ | {"TMPDIR": folder, "PIPEWEAVER_PLAN_DIGESTS": f"{folder}/digests"} | environment
        begun = time.monotonic()
        process = subprocess.Popen([*test.command, "--abort-after=1"], stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                   env=own, cwd=folder, preexec_fn=limit)
        status, usage = None, None
        while usage is None:
            pid, ended, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                status, usage = os.waitstatus_to_exitcode(ended), used
                process.returncode = status
            elif time.monotonic() - begun > wall_s:
                process.kill()
                _, _, usage = os.wait4(process.pid, 0)
                process.returncode = -9
            else:
                time.sleep(0.01)
        out.seek(0)
        said = out.read()
    if status in (-24, -9):  # SIGXCPU, SIGKILL
        status = None
    return status, said, usage.ru_utime + usage.ru_stime, time.monotonic() - begun


def record(test, folder):
    """Runs a test source as it is and notes which changes it comes by."""
    file = folder / (test.name.replace("/", ".") + ".reached")
    file.unlink(missing_ok=True)
    status, said, test.cpu_s, test.wall_s = run(test, {"PIPEWEAVER_MUTANTS_REACHED": str(file)}, 1800, 1800)
    if status != 0:
        sys.exit(f"{test.name} fails without any change:\n{said[-3000:]}")
    test.reached = frozenset(map(int, file.read_text().split())) if file.exists() else frozenset()
    return test


def first_complaint(status, said):
    """Where and how a run failed, in a few words."""
    if status is None:
        return "takes too long"
    found = re.search(r"tests/(\S+?:\d+): (?:FATAL )?ERROR", said)
    if found:
        return found[1]
    return f"ends with {status}"


def is_near(test, file):
    """Whether the names of a test source and of a changed file have a word in common."""
    words = set(pathlib.Path(file).stem.split("_"))
    return bool(words & set(pathlib.Path(test.name).stem.removesuffix("_test").split("_")))


def verdict(number, one, tests):
    """Which of these test sources notices a change, if any: its name, where, and how many were run."""
    module = one.file.split("/")[0]
    chosen = sorted((test for test in tests if number in test.reached),
                    key=lambda test: (test.name.split("/")[0] != module, not is_near(test, one.file), test.cpu_s))
    for ran, test in enumerate(chosen, 1):
        status, said, _, _ = run(test, {"PIPEWEAVER_MUTANT": str(number)}, SLOWER * test.cpu_s + 3,
                                 20 * test.wall_s + 60)
        if status != 0:
            return {"caught_by": test.name, "where": first_complaint(status, said), "ran": ran}
    return {"caught_by": None, "where": None, "ran": len(chosen)}


# --- all of it

def short(text):
    text = " ".join(text.split())
    return (text if len(text) <= 70 else text[:67] + "...").replace("|", "\\|")


def table(results):
    rows = ["| # | place | kind | change | caught by |", "|---|---|---|---|---|"]
    for one in results:
        change = f"`{short(one['before'])}` " + (f"-> `{short(one['after'])}`" if one["after"] else "left out")
        seen = f"{one['caught_by']} ({one['where']})" if one["caught_by"] else "**survived**"
        rows.append(f"| {one['number']} | {one['file']}:{one['line']} | {one['kind']} | {change} | {seen} |")
    return "\n".join(rows) + "\n"


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60, help="at most 1000")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--survivors", action="store_true", help="only those that survived the run before")
    parser.add_argument("--given", type=pathlib.Path, metavar="FILE", help="changes to try before those of the draw")
    parser.add_argument("--name", help="of the folder in build/mutants (default: the seed)")
    parser.add_argument("--draw-only", action="store_true", help="print the draw and run nothing")
    return parser.parse_args()


def chosen_by(asked, folder, tree, sources):
    """The mutations to try: of an equal draw before, if there was one."""
    first = given(asked.given, sources) if asked.given else []
    drawn_from = [asked.seed, asked.count, [dataclasses.asdict(one) for one in first], sources]
    key = hashlib.sha256(json.dumps(drawn_from, sort_keys=True).encode()).hexdigest()
    known = folder / "draw.json"
    if known.exists() and json.loads(known.read_text())["key"] == key:
        return [mutants.Mutation(**one) for one in json.loads(known.read_text())["chosen"]]
    chosen, dropped = choose(tree, sources, asked.seed, asked.count, asked.jobs, first)
    print(f"{len(chosen)} changes drawn, {dropped} more do not compile", flush=True)
    known.write_text(json.dumps({"key": key, "chosen": [dataclasses.asdict(one) for one in chosen]}))
    return chosen


def judged(asked, folder, chosen, tests):
    """A result for each mutation; with --survivors what was caught before is taken over. Short tests come first for all
    of them, so that few are left for the long ones."""
    file = folder / "results.json"
    known = json.loads(file.read_text()) if asked.survivors and file.exists() else []
    results = {number: dataclasses.asdict(one) | {"number": number, "caught_by": None, "where": None, "ran": 0}
               for number, one in enumerate(chosen, 1)}
    results |= {one["number"]: one for one in known if one["caught_by"]}

    def judge(number, some):
        told = verdict(number, chosen[number - 1], some)
        results[number] |= told | {"ran": results[number]["ran"] + told["ran"]}
        if told["caught_by"]:
            print(number, results[number]["file"], told["caught_by"], told["where"], flush=True)

    for some in ([test for test in tests if test.cpu_s <= SHORT], [test for test in tests if test.cpu_s > SHORT]):
        left = [number for number, one in results.items() if not one["caught_by"]]
        print(f"{len(left)} to try on {len(some)} test sources", flush=True)
        with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
            list(pool.map(judge, left, [some] * len(left)))
        file.write_text(json.dumps(list(results.values()), indent=1))
        (folder / "table.md").write_text(table(results.values()))
    return list(results.values())


def main():
    asked = options()
    folder = ROOT / "build/mutants" / (asked.name or f"seed-{asked.seed}")
    folder.mkdir(parents=True, exist_ok=True)
    sources = sources_of(ROOT)
    tree = folder / "tree"
    copy_tree(tree, set(sources) | {"CMakeLists.txt"})
    write(tree / "include/pipeweaver/mutants.hpp", HEADER.encode())
    chosen = chosen_by(asked, folder, tree, sources)
    if asked.draw_only:
        for one in chosen:
            print(f"{one.file}:{one.line} {one.kind}: {short(one.before)} -> {short(one.after)}")
        return 0
    lay_out(tree, sources, chosen)
    print("building", flush=True)
    build(tree, asked.jobs)
    print("running each test source as it is", flush=True)
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        tests = list(pool.map(lambda test: record(test, folder), tests_of(tree)))
    results = judged(asked, folder, chosen, tests)
    survived = [one for one in results if not one["caught_by"]]
    print(f"{len(results)} changes, {len(survived)} of which survived: {folder / 'table.md'}")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
