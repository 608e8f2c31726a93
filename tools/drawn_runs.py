"""The frame of tools that plan drawn jobs, run commands of the program, and count: what each plan is held against is
the tool's own.

A tool's `check` of one drawn job plans it (`Drawn.plan`), runs what it wants (`Drawn.run`, `Drawn.emulated`), puts what
is wrong into `Drawn.wrong`, and returns a line to print, or nothing. `Drawn.check_all` has the tool's exit status.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import shlex
import subprocess
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def arguments(description: str | None, plans: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="pipeweaver")
    parser.add_argument("--plans", type=int, default=plans, help="how many are made (default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number of the first draw (default: 0)")
    parser.add_argument("--every", type=int, default=1, help="only each of so many draws")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="plans at the same time")
    return parser


def numbers(asked: argparse.Namespace) -> range:
    """Of the draws that are planned."""
    return range(asked.first, asked.first + asked.plans * asked.every, asked.every)


class NoPlan(Exception):
    """The program makes no plan of what was drawn."""


class Drawn:
    def __init__(self, binary: str) -> None:
        self.binary = os.path.abspath(binary)
        self.wrong: list[str] = []
        self._counted: collections.Counter[str] = collections.Counter({"plans": 0, "refused": 0})
        self._counting = threading.Lock()

    def count(self, what: str, number: int = 1) -> None:
        with self._counting:
            self._counted[what] += number

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.binary, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              check=False)

    def plan(self, name: str, words: Iterable[str], out: Path, refusal: str | None = None) -> tuple[str, Any]:
        """What is printed of the plan in the folder, and its plan.json. Raises NoPlan where it does not fit, the error
        has the text `refusal`, or, which is wrong, it fails otherwise."""
        done = self.run("plan", *words, "--threads", "1", "--out", str(out))
        if done.returncode == 4 or (refusal and refusal in done.stderr):
            self.count("refused")
            raise NoPlan(f"{name}: refused: {done.stderr.strip()}")
        if done.returncode != 0:
            self.wrong.append(f"{name}: exit {done.returncode}: {done.stderr.strip()}")
            raise NoPlan(self.wrong[-1])
        self.count("plans")
        return done.stdout, json.loads((out / "plan.json").read_text())

    def emulated(self, name: str, command: str) -> Any:
        """What a printed command says of its step; None where it fails, which is wrong."""
        words = shlex.split(command)[1:]
        on_groups = words[0] == "groups"  # it has no threads, and says both placings
        done = self.run(*words, "--json", *([] if on_groups else ["--threads", "1"]))
        self.count("commands")
        if done.returncode != 0:
            self.wrong.append(f"{name}: {command}: {done.stderr.strip()}")
            return None
        said = json.loads(done.stdout)
        return said["own"] if on_groups else said

    def check_all(self, check: Callable[[Any], str | None], drawn: Iterable[Any], jobs: int) -> int:
        """Prints a line for each that has one, what was counted, and what is wrong; 1 if anything is, or nothing was
        planned."""
        def line_of(one: Any) -> str | None:
            try:
                return check(one)
            except NoPlan as why:
                return str(why)

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for line in pool.map(line_of, drawn):
                if line:
                    print(line, flush=True)
        first = [f"{self._counted.pop(what)} {what}" for what in ("plans", "refused")]
        planned = not first[0].startswith("0 ")
        rest = [f"{count} {what}" for what, count in sorted(self._counted.items())]
        print("\n" + ", ".join([*first, *rest, f"{len(self.wrong)} wrong"]))
        for one in self.wrong:
            print(f"  {one}")
        return 1 if self.wrong or not planned else 0
