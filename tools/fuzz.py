#!/usr/bin/env python3
"""Runs the fuzzers of the readers (tests/fuzz/reader_fuzzer.cpp) and keeps what they learn.

    cmake --preset fuzz && cmake --build --preset fuzz     (Debian: clang-14, libclang-rt-14-dev)
    tools/fuzz.py [--minutes 20] [--jobs 2] [TARGET...]

Each target begins with the cases of its archive (tools/corpus.py); with --keep what covers more is merged into that at
the end, of each the 150 smallest inputs. Exits with 1 if any target crashed, hung or met a sanitizer's report; the
input then lies in build/fuzz/found.
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile

import corpus

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOUND = ROOT / "build/fuzz/found"
MOST = 150  # inputs of a corpus
LONGEST = {"request": 60}  # seconds of an input, else 10: one may open a session, on a machine that has other work


def keep_smallest(learnt, target):
    """What was learnt goes into the corpus in place of what was learnt before, as far as MOST allows; the seeds, whose
    names are no digests, stay."""
    known = corpus.cases_of(target)
    cases = {name: known[name] for name in known if not re.fullmatch("[0-9a-f]{40}", name)}
    for path in sorted(learnt.iterdir(), key=lambda one: (one.stat().st_size, one.name))[:MOST]:
        cases[path.name] = path.read_bytes()
    corpus.keep(target, cases)


def fuzz(target, binary, minutes, keep):
    """Runs one fuzzer; returns what it did."""
    with tempfile.TemporaryDirectory() as folder:
        fresh, known, merged = (pathlib.Path(folder, name) for name in ("fresh", "known", "merged"))
        fresh.mkdir()
        corpus.extract(target, known)
        command = [binary, fresh, known, f"-max_total_time={round(60 * minutes)}",
                   f"-timeout={LONGEST.get(target, 10)}", "-rss_limit_mb=2048",
                   "-max_len=16384", "-print_final_stats=1", "-seed=1", f"-artifact_prefix={FOUND}/{target}-"]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if keep and done.returncode == 0:
            merged.mkdir()
            subprocess.run([str(binary), "-merge=1", str(merged), str(known), str(fresh)], capture_output=True,
                           check=True)
            keep_smallest(merged, target)
    runs = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    return target, done.returncode, int(runs.group(1)) if runs else 0, done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=ROOT / "build/fuzz/bin", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="merge what was learnt into the archives")
    parser.add_argument("targets", nargs="*", help="all, unless some are named")
    asked = parser.parse_args()
    FOUND.mkdir(parents=True, exist_ok=True)
    targets = asked.targets or corpus.readers()
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        runs = [pool.submit(fuzz, target, asked.binaries / f"fuzz_{target}", asked.minutes, asked.keep)
                for target in targets]
        for run in concurrent.futures.as_completed(runs):
            target, status, count, said = run.result()
            found = "nothing found" if status == 0 else f"FOUND: see {FOUND}"
            print(f"{target:14} {count:10} inputs  {found}", flush=True)
            if status != 0:
                wrong += 1
                print(said[-3000:])
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
