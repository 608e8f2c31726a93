"""Capacity studies on many machines: the shards of `pipeweaver capacity` as tasks of Ray, or on this machine alone.

    python -m pipeweaver.capacity STUDY.yaml --out rent                          # Ray on this machine, or RAY_ADDRESS
    python -m pipeweaver.capacity STUDY.yaml --out rent --address ray-head:6379  # on a cluster

Run again it goes on: cells that are in the folder are not judged again. The files are those of `pipeweaver capacity`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import pathlib
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ._arguments import Parser
from . import _core
from ._options import Path, as_path
from ._shards import Engine, Shard, Work, OnThisMachine
from .errors import InputError, PipeweaverError

_engines = ("ray", "local")
_most_shards = 100_000
_seconds_between_lines = {True: 0.2, False: 30.0}  # of progress, on a terminal and elsewhere


@dataclass
class Progress:
    """How far a study is."""

    done: int  # cells, those that were there before included
    cells: int
    seconds_left: float | None  # None: nothing to tell it by

    def __str__(self) -> str:
        left = "" if self.seconds_left is None else f", {_as_time(self.seconds_left)} left"
        return f"{self.done} of {self.cells} cells{left}"


def _as_time(seconds: float) -> str:
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def run(
    study: Path,
    out: Path,
    *,
    engine: str = "ray",
    address: str | None = None,
    shards: int | None = None,
    retries: int = 3,
    threads: int | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> str:
    """Judges the cells that the folder `out` lacks, writes what all of them answer, and returns it as a text.

    `engine` is "ray", a task for each of `shards` shards with `threads` cores each (1), begun again `retries` times
    where its worker is lost, or "local", one cell after the other on `threads` threads (all). `progress` is told after
    each shard and, on Ray, about twice a second. The files in `out` are those of `pipeweaver capacity --out`.

    Raises InputError, FileError, LimitError (also where nothing meets the study's constraints, when all is written);
    KeyboardInterrupt, and then what was judged is in `out`."""
    threads = threads or (1 if engine == "ray" else os.cpu_count() or 1)
    _check(engine, address, shards, retries, threads)
    read = _core.Study.read(as_path(study))
    work = Work(as_path(study), read.document, threads, os.getcwd())
    names = frozenset(read.files)
    folder = pathlib.Path(as_path(out))
    with _engine(engine, address, retries, threads) as judge:
        left = read.begin(str(folder))
        parts = _parts(left, shards or max(1, min(len(names), 4 * judge.workers)))
        clock = _Clock(len(names), len(left), progress)
        for files in judge(work, parts, clock.tell):
            _keep(names, folder, files)
            clock.judged(len(files))
    return read.merge(str(folder))


def _check(engine: str, address: str | None, shards: int | None, retries: int, threads: int) -> None:
    if engine not in _engines:
        raise InputError(f"--engine: is {engine!r}, must be one of ray, local")
    if address is not None and engine != "ray":
        raise InputError("--address: goes with --engine ray alone")
    if shards is not None and not 1 <= shards <= _most_shards:
        raise InputError(f"--shards: is {shards}, must be 1 to {_most_shards}")
    if not 0 <= retries <= 1000:
        raise InputError(f"--retries: is {retries}, must be 0 to 1000")
    if not 1 <= threads <= 1024:
        raise InputError(f"--threads: is {threads}, must be 1 to 1024")


def _engine(name: str, address: str | None, retries: int, threads: int) -> Engine:
    if name == "local":
        return OnThisMachine()
    from ._ray import OnRay

    return OnRay(address, retries, threads)


def _parts(cells: Sequence[int], count: int) -> list[Shard]:
    """The shards that have one of the cells: those whose number leaves the shard's when divided by `count`."""
    parts: dict[int, list[int]] = {}
    for cell in cells:
        parts.setdefault(cell % count, []).append(cell)
    return [Shard(index, parts[index]) for index in sorted(parts)]


def _keep(names: frozenset[str], folder: pathlib.Path, files: dict[str, bytes]) -> None:
    """Writes what a worker judged, each file whole. Raises InputError for a file that is none of the study's."""
    foreign = sorted(files.keys() - names)
    if foreign:
        raise InputError(
            f"{foreign[0]}: is no cell of this study: a worker has another version of pipeweaver, or other content in "
            "a file that the study names; allowed are equal ones on all nodes"
        )
    _core.write_files([(str(folder / "cells" / name), content) for name, content in files.items()])


class _Clock:
    """Tells `progress` how far it is."""

    def __init__(self, cells: int, missing: int, progress: Callable[[Progress], object] | None) -> None:
        self.cells, self.missing, self.progress = cells, missing, progress
        self.left = missing
        self.begun = time.monotonic()

    def judged(self, cells: int) -> None:
        self.left -= cells
        self.tell()

    def tell(self) -> None:
        """Time is told by the cells of this run; others were judged before."""
        done = self.missing - self.left
        seconds = (time.monotonic() - self.begun) / done * self.left if done else None
        if self.progress:
            self.progress(Progress(self.cells - self.left, self.cells, seconds))


class _Line:
    """Progress on stderr: one line that is rewritten on a terminal, elsewhere one now and then."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self.last = time.monotonic() - (_seconds_between_lines[True] if self.terminal else 0)

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self.last < _seconds_between_lines[self.terminal]:
            return
        self.last = now
        print(f"\r\033[K{progress}" if self.terminal else progress, end="" if self.terminal else "\n", file=sys.stderr,
              flush=True)

    def clear(self) -> None:
        if self.terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m pipeweaver.capacity",
        description="Judges a capacity study on Ray, a task for each shard, and merges what they give; the files are "
        "those of `pipeweaver capacity`. Where it was ended it goes on when it is run again.",
        epilog="examples:" + str(__doc__).split("\n\n")[1].join(["\n", "\n"]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("study", metavar="STUDY", help="a study as `pipeweaver capacity` takes it, YAML or JSON")
    parser.add_argument("--out", metavar="DIR", help="folder of the results (required)")
    parser.add_argument("--engine", metavar="ray|local", default="ray",
                        help="Ray's tasks, or one shard after the other here (default: ray)")
    parser.add_argument("--address", metavar="ADDRESS",
                        help="of a Ray cluster, like auto or ray-head:6379 (default: RAY_ADDRESS, else a cluster that "
                        "runs here, else one of this machine alone)")
    parser.add_argument("--shards", metavar="N", type=_number, help="tasks (default: four for each that runs at once)")
    parser.add_argument("--retries", metavar="N", type=_number, default=3,
                        help="how often a task is begun again whose worker was lost (default: 3)")
    parser.add_argument("--threads", metavar="N", type=_number,
                        help="cores of a task (default: 1; of --engine local all)")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser


def _number(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text):
        raise argparse.ArgumentTypeError(f"is {text!r}, must be a whole number")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    try:
        options = _parser().parse_args(arguments)
        if options.threads == 0:
            raise InputError("--threads: is 0, must be 1 to 1024")
        if not options.out:
            raise InputError("missing --out DIR: a folder for the results")
        _run(options)
        return 0
    except PipeweaverError as error:
        print(f"pipeweaver.capacity: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("pipeweaver.capacity: interrupted; what was judged stays, run it again to go on", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> None:
    line = None if options.quiet else _Line()
    try:
        with contextlib.redirect_stdout(io.StringIO() if options.quiet else sys.stderr):  # for what Ray remarks
            answer = run(options.study, options.out, engine=options.engine, address=options.address,
                         shards=options.shards, retries=options.retries, threads=options.threads, progress=line)
    finally:
        if line:
            line.clear()
    print(answer, end="")


if __name__ == "__main__":
    sys.exit(main())
