#!/usr/bin/env python3
"""Solves, plans and Planner.submit() under the thread sanitizer; fails where it reports anything.

    tools/tsan_runs.py [--solves 160] [--plans 40] [--submits 50] [--threads 4] [--jobs 2] [--build FOLDER]

Builds the program and the Python package's compiled part of the preset tsan first, unless --build names a folder that
has both. Solves are of random problems (tests/python/support/random_problems.py), with and without room; plans are of
the small model in layouts, partitions and packings of all kinds. Submits run in a Python with the sanitizer's library
preloaded: several threads of it submit, cancel and wait. Exits with 1 for any report, and for an exit status other than
0 or 4.
"""

import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests/python/support"), str(ROOT / "tools")]
from random_problems import random_problem  # noqa: E402
from tsan_service import sanitizer_options  # noqa: E402

BUILD = ROOT / "build/tsan"
SMALL = ["--model", str(ROOT / "examples/small-vlm.json"), "--batch", str(ROOT / "examples/small-batch.jsonl")]
LONGEST = 600  # seconds of a run


def solve(number, folder):
    """Arguments that solve a random problem of this number."""
    problem = random_problem(number, tight=(None, 1, 0.9)[number % 3], sizes=(16, 40) if number % 4 else (100, 200))
    path = folder / f"problem-{number}.json"
    path.write_text(json.dumps(problem))
    more = [[], ["--then", "memory"], ["--strategy", "dip"], ["--seed", "7"]][number // 3 % 4]
    return ["solve", path, "--max-rounds", str(2 + number % 5), *more, "--out", folder / f"solution-{number}.json"]


def plan(number, folder):
    """Arguments that plan a step of the small model in a layout of this number."""
    draw = random.Random(number)
    tp, pp, dp = draw.choice([(1, 2, 1), (1, 2, 2), (2, 2, 1), (1, 4, 1), (2, 2, 2), (1, 1, 2)])
    options = ["--tp", tp, "--pp", pp, "--dp", dp, "--packing", draw.choice(["given", "ffd", "balanced", "padded"]),
               "--seed", number, "--max-rounds", draw.randrange(1, 4)]
    partition = draw.choice(["first-stage", "megatron", "balanced", "uniform", "modules"])
    options += ["--partition", partition] if number % 8 else []
    options += ["--robust"] if number % 5 == 1 else []
    options += ["--target", draw.choice(["torch-actions", "torch-csv", "any"])]
    cluster = f"h100-sxm:{tp * pp * dp}"
    return ["plan", *SMALL, "--cluster", cluster, *map(str, options), "--out", folder / f"plan-{number}"]


def run(name, command, folder, **environment):
    """What is wrong with a run, reports included; empty: nothing."""
    reports = folder / "reports" / name
    reports.mkdir(parents=True)
    environment = {**os.environ, "TSAN_OPTIONS": sanitizer_options(reports), **environment}
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, timeout=LONGEST, env=environment)
    wrong = [f"{name}: {report.read_text(errors='replace')[:20_000]}" for report in sorted(reports.iterdir())]
    if done.returncode not in (0, 4) or (name == "submits" and done.returncode != 0):
        told = " ".join(map(str, command))[:300]
        wrong.append(f"{name}: exit status {done.returncode}: {told}: {done.stderr[-2000:]}")
    return wrong, done.returncode


def package(build, folder):
    """The package's sources with the compiled part of that build, below the folder."""
    shutil.copytree(ROOT / "python/pipeweaver", folder / "pipeweaver")
    shutil.copy(next((build / "python").glob("_core*.so")), folder / "pipeweaver")
    (folder / "pipeweaver/bin").mkdir(exist_ok=True)
    return folder


def submits(count, threads, build, folder):
    """Command and environment of Planner.submit() in a Python under the sanitizer."""
    where = importlib.util.find_spec("nanobind_backend")
    if where is None:
        sys.exit("the Python that runs this lacks nanobind-backend; run it with .venv/bin/python")
    asked = ["gcc", "-print-file-name=libtsan.so"]
    library = pathlib.Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()).resolve()
    command = [sys.executable, ROOT / "tools/tsan_submits.py", str(count), str(threads)]
    return command, {"LD_PRELOAD": str(library), "PYTHONPATH": str(package(build, folder / "package")),
                     "PYTHONDONTWRITEBYTECODE": "1"}


def build_all():
    configure = ["-DPIPEWEAVER_BUILD_TESTS=OFF", "-DPIPEWEAVER_PYTHON=ON", f"-DPython_EXECUTABLE={sys.executable}"]
    subprocess.run(["cmake", "--preset", "tsan", *configure], cwd=ROOT, check=True)
    targets = ["--target", "pipeweaver", "pipeweaver_python"]
    subprocess.run(["cmake", "--build", "--preset", "tsan", *targets], cwd=ROOT, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, count in (("solves", 160), ("plans", 40), ("submits", 50), ("threads", 4), ("jobs", 2)):
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--build", type=pathlib.Path)
    asked = parser.parse_args()
    if asked.build is None:
        build_all()
    build = asked.build or BUILD
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        jobs = [(f"solve-{k}", solve(k, folder)) for k in range(asked.solves)]
        jobs += [(f"plan-{k}", plan(k, folder)) for k in range(asked.plans)]
        of_program = [(name, [build / "bin/pipeweaver", *command, "--threads", str(asked.threads), "--quiet"], {})
                      for name, command in jobs]
        if asked.submits:
            of_program.append(("submits", *submits(asked.submits, asked.threads, build, folder)))
        with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
            done = list(pool.map(lambda job: run(job[0], job[1], folder, **job[2]), of_program))
    found = [line for wrong, _ in done for line in wrong]
    print(f"{len(done)} runs, {sum(status == 0 for _, status in done)} with exit status 0, "
          f"{sum(status == 4 for _, status in done)} with 4")
    print("\n".join(found[:20]) or "nothing found")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
