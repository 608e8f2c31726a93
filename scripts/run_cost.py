"""run_cost.py --wall S --cpu S --program S --compiles LOG [--comparable]: what a run of run-tests.sh took.

Prints it beside the last landing's, which tests/run_cost.txt holds, and the line that is to be added there. Compiles
are read from ccache's log of statistics (CCACHE_STATSLOG). A run is cold if less than half of them came from the cache.
"""

import argparse
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
LANDINGS = ROOT / "tests/run_cost.txt"
COLUMNS = ["date", "commit", "cores", "caches", "wall_s", "cpu_s", "program_cpu_s", "compiles", "from_ccache"]
FROM_CCACHE = {"direct_cache_hit", "preprocessed_cache_hit"}


def compiles(log):
    """How many there were, and how many of them came from the cache; each left a line of what became of it."""
    lines = log.read_text().splitlines() if log.exists() else []
    hits = sum(line in FROM_CCACHE for line in lines)
    return hits + sum(line == "cache_miss" for line in lines), hits


def landings(path):
    """The rows of the file, the latest last."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [dict(zip(COLUMNS, line.split())) for line in lines if line and not line.startswith("#")]


def of_git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def row_of(wall, cpu, program, log):
    made, hits = compiles(log)
    caches = "warm" if 2 * hits >= made else "cold"
    figures = [os.cpu_count(), caches, wall, cpu, program, made, hits]
    return dict(zip(COLUMNS, [of_git("log", "-1", "--format=%cs"), of_git("rev-parse", "--short=8", "HEAD") or "-",
                              *map(str, figures)]))


def table(rows):
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in COLUMNS}
    return "\n".join("  ".join(row[name].rjust(widths[name]) for name in COLUMNS)
                     for row in [dict(zip(COLUMNS, COLUMNS)), *rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wall", type=int, required=True)
    parser.add_argument("--cpu", type=int, required=True)
    parser.add_argument("--program", type=int, required=True, help="CPU-seconds of building the command line")
    parser.add_argument("--compiles", type=pathlib.Path, required=True, metavar="LOG")
    parser.add_argument("--comparable", action="store_true", help="all usual parts were run")
    parser.add_argument("--landings", type=pathlib.Path, default=LANDINGS)
    asked = parser.parse_args()
    row = row_of(asked.wall, asked.cpu, asked.program, asked.compiles)
    alike = [one for one in landings(asked.landings) if one["caches"] == row["caches"]][-1:]
    print(table([*alike, row]))
    if asked.comparable:
        print(f"for {asked.landings.name}: {' '.join(row.values())}")
    else:
        print("only some parts were run: no line for the next landing")


if __name__ == "__main__":
    main()
