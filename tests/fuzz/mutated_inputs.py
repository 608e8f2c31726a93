#!/usr/bin/env python3
"""Runs the command line on mutated inputs of every kind that it reads, and says what it should not have done.

    tests/fuzz/mutated_inputs.py [--count 6000] [--seed 1] [--jobs 2] [--program FILE] [--only NUMBER] [--slow FACTOR]

Each input is a good one of good_inputs.py, damaged as mutations.py has it; seed and number say how. A run must end with
0, 2, 3 or 4, within 20 seconds of processor time and 2 GiB. At success nothing that it prints has control characters or
bytes that are no UTF-8. At a failure it prints one printable line of at most 400 characters on stderr, and neither an
output nor a temporary file is left. --only runs one input and keeps it. --slow allows so many times the seconds, and
any memory: for programs under sanitizers. The exit status is 1 where anything is found.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import good_inputs  # noqa: E402
import mutations  # noqa: E402

ROOT = good_inputs.ROOT
PROGRAM = ROOT / "build/check/bin/pipeweaver"
LONGEST = 20  # seconds of processor time
MOST = 2 << 30  # bytes of memory
LINE = 400  # characters of a message
ANSWER_JSON = ("plan", "emulate", "layers", "solve", "replay", "check", "validate", "share", "faults", "support",
               "analyze")


def as_json(draw, command):
    """Now and then the command with its answer in JSON, if it has such an answer."""
    return [*command, "--json"] if command[0] in ANSWER_JSON and draw.random() < 0.2 else command


def prepared(case, number, seed, at):
    """Writes a mutated input below the folder `at`; returns what was done to it and the command's arguments."""
    draw = random.Random(f"{seed} {number}")
    at.mkdir()
    (at / "out").mkdir()
    (at / "tmp").mkdir()
    if case.folder:
        shutil.copytree(case.folder, at / "in")
        place = at / "in" / case.path
    else:
        (at / "in").mkdir()
        place = at / "in" / case.path.name
    told, content = mutations.mutated(draw, (case.folder or pathlib.Path()).joinpath(case.path).read_bytes(), case.kind)
    place.write_bytes(content)
    if case.rehash and place.name != "plan.json":
        good_inputs.rehash(at / "in", place)
    return told, [part.replace("@IN", str(place)).replace("@OUT", str(at / "out/o")).replace("@FOLDER", str(at / "in"))
                  for part in as_json(draw, case.command)]


def files(folder):
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if not path.is_dir()}


def run(command, at, seconds):
    """Runs it; returns exit status, stdout, stderr, and bytes of memory."""
    with open(at / "stdout", "wb") as stdout, open(at / "stderr", "wb") as stderr:
        process = subprocess.Popen(["prlimit", f"--cpu={seconds}", *command], stdin=subprocess.DEVNULL, stdout=stdout,
                                   stderr=stderr, cwd=at, env={**os.environ, "TMPDIR": str(at / "tmp")})
        end = time.monotonic() + 10 * seconds
        while True:  # waits for a program that waits for ever, too
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > end:
                process.kill()
            time.sleep(0.003)
    process.returncode = os.waitstatus_to_exitcode(status)
    # Linux counts what the process was before its exec(): as large as this one, a fork of which it is.
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    memory = used.ru_maxrss * 1024 if used.ru_maxrss > own else 0
    return process.returncode, (at / "stdout").read_bytes(), (at / "stderr").read_bytes(), memory


def no_json(content):
    try:
        json.loads(content or "{}")
    except ValueError as error:
        return [f"the answer is no JSON: {error}"]
    return []


def unprintable(name, content):
    """What of an output a terminal should not get."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        return [f"{name}: {error}"]
    bad = sorted({c for c in text if c not in "\n\t" and (ord(c) < 32 or 127 <= ord(c) < 160)})
    return [f"{name} has {bad}"] if bad else []


def wrong(case, arguments, status, stdout, stderr, left):
    """What is wrong with how a command ended. `left`: files that were not there before."""
    found = [] if status in (0, 2, 3, 4) else [f"exit status {status}"]
    answers_json = arguments[-1] == "--json"
    found += no_json(stdout) if answers_json else unprintable("stdout", stdout)
    found += unprintable("stderr", stderr)
    lines = stderr.decode(errors="replace").split("\n")
    found += [f"a line of {len(line)} characters on stderr" for line in lines if len(line) > LINE]
    if b"bug" in stderr:
        found.append("bug")
    if status == 0:
        temporary = [name for name in left if "/." in name or name.startswith("tmp/")]
        return found + ([f"temporary files: {temporary}"] if temporary else [])
    answered = status == 4 and case.command[0] == "check"  # an answer on stdout
    if (len(lines) != 2 or lines[1] or not lines[0].startswith("pipeweaver: ")) and not answered:
        found.append(f"{len(lines) - 1} lines on stderr")
    if status not in case.writes_at and left:
        found.append(f"left behind: {sorted(left)[:5]}")
    return found


def one(number, asked, all_cases, good, place):
    """Runs input `number`; returns (case, exit status, seconds, what is wrong)."""
    choose = random.Random(f"{asked.seed} {number} case")
    case = choose.choices(all_cases, [each.share or 0.2 for each in all_cases])[0]
    at = place / str(number)
    told, arguments = prepared(case, number, asked.seed, at)
    arguments = [part.replace("@GOOD", str(good)) for part in arguments]
    before, begun = files(at / "in"), time.monotonic()
    status, stdout, stderr, memory = run([str(asked.program), *arguments], at, int(LONGEST * asked.slow))
    seconds = time.monotonic() - begun
    left = [f"{part}/{name}" for part in ("out", "tmp") for name in files(at / part)]
    left += [f"out/{path.name}" for path in (at / "out").iterdir() if path.is_dir() and status != 0]
    found = wrong(case, arguments, status, stdout, stderr, left)
    if files(at / "in") != before:
        found.append("the input's folder is changed")
    if memory > MOST and asked.slow == 1:
        found.append(f"{memory >> 20} MiB")
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        found.append("took too long")
    if found or asked.only is not None:
        found = [f"{number} ({case.name}): {'; '.join(found)}", f"  {told[:300]}",
                 f"  pipeweaver {' '.join(arguments)}", f"  exit status {status}; {stderr[-600:]!r}"]
    else:
        shutil.rmtree(at)
    return case, status, seconds, found


def report(done, seconds):
    """Prints how many inputs of each exit status there were, and the slowest cases."""
    statuses = collections.Counter(status for _, status, _, _ in done)
    print(f"{len(done)} inputs of {len({case.name for case, *_ in done})} kinds in {seconds:.0f} s: " +
          ", ".join(f"exit status {status}: {count}" for status, count in sorted(statuses.items())))
    times = collections.defaultdict(list)
    for case, _, took, _ in done:
        times[case.name].append(took)
    slowest = sorted(times, key=lambda name: -sum(times[name]))[:8]
    print("most seconds: " + ", ".join(f"{name} {sum(times[name]):.0f}" for name in slowest))


def options(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=6000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--slow", type=float, default=1)
    parser.add_argument("--program", type=pathlib.Path, default=PROGRAM)
    parser.add_argument("--only", type=int)
    return parser.parse_args(arguments)


def run_all(asked, place):
    """Runs the inputs in folders below `place`; returns what one() did of each."""
    good = place / "good"
    good_inputs.make(str(asked.program), good)
    all_cases = good_inputs.cases(good)
    numbers = range(asked.first, asked.first + asked.count) if asked.only is None else [asked.only]
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        return list(pool.map(lambda number: one(number, asked, all_cases, good, place), numbers))


def main():
    asked = options(sys.argv[1:])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    place, begun = pathlib.Path(tempfile.mkdtemp(prefix="mutated-inputs-")), time.monotonic()
    done = run_all(asked, place)
    report(done, time.monotonic() - begun)
    found = [lines for *_, lines in done if lines]
    for lines in found:
        print("\n".join(lines))
    if found:
        print(f"{len(found)} to look at in {place}")
        sys.exit(asked.only is None)
    shutil.rmtree(place)


if __name__ == "__main__":
    main()
