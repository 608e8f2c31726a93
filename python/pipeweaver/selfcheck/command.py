"""Measures, runs and compares on the GPU at hand, in ten minutes; without a GPU on the CPU, at small sizes.

    python -m pipeweaver.selfcheck --out selfcheck
    python -m pipeweaver.selfcheck --compare selfcheck

The folder has what was measured, selfcheck.json and selfcheck.html. A check that was torn off goes on where it was.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from .._arguments import Parser
from ..errors import InputError, NotBuiltError, PipeweaverError
from ..profiling.timing import parse_seconds
from .device import about_device
from .folder import PARTS, Folder, Found, Part, Work

_grace_s = 20.0  # beyond its budget, before a part is ended
_unfinished = 5


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m pipeweaver.selfcheck", allow_abbrev=False,
        description="Measures operators, runs steps and a plan on the GPU at hand, and prints what it found beside "
        "what was predicted: exit status 0 within the stated limits, 4 beyond one, 5 where a part is missing.",
        epilog="example:" + str(__doc__).partition("\n")[2], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", metavar="DIR", default="selfcheck", help="folder of the check (default selfcheck)")
    parser.add_argument("--device", metavar="cpu|cuda:N", help="default: cuda:0, or cpu where there is no GPU")
    parser.add_argument("--cpu", action="store_true", help="the same as --device cpu")
    parser.add_argument("--cluster", metavar="NAME", help="of `pipeweaver list clusters`: whose GPU it is (default: "
                                                          "by the GPU's name)")
    parser.add_argument("--budget", metavar="TIME", default="10min", help="for all parts, like 5min (default 10min)")
    parser.add_argument("--parts", metavar="NAME,...", help=f"of {', '.join(part.name for part in PARTS)} (default: "
                                                            "all that are missing)")
    parser.add_argument("--measure-only", action="store_true",
                        help="leave the comparison for --compare, which needs no GPU")
    parser.add_argument("--compare", metavar="DIR", help="only compare what the folder has with the predictions")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    try:
        options = _parser().parse_args(arguments)
        if options.part:
            return _run_part(options)
        if options.compare:
            return _compare(_known(options.compare))
        return _check(options)
    except PipeweaverError as error:
        print(f"pipeweaver.selfcheck: {error}", file=sys.stderr)
        return error.exit_status


def _check(options: argparse.Namespace) -> int:
    budget = parse_seconds(options.budget)
    wanted = _wanted(options.parts)
    folder = Folder(options.out)
    about = _begin(folder, options)
    done = {part.name for part in PARTS} - set(folder.missing())
    todo = wanted if options.parts else [part for part in PARTS if part.name not in done]
    for part in todo:
        print(f"{part.name}: {part.about}, {part.seconds(budget):.0f} s at most", flush=True)
        _in_a_process(folder, part, part.seconds(budget))
    print(f"on {about['gpu'] or about['cpu']}, PyTorch {about['torch']}", flush=True)
    if options.measure_only:
        print(f"next: python -m pipeweaver.selfcheck --compare {folder.path}")
        return _unfinished if folder.missing() else 0
    return _compare(folder)


def _wanted(names: str | None) -> list[Part]:
    known = {part.name: part for part in PARTS}
    chosen = names.split(",") if names else list(known)
    for name in chosen:
        if name not in known:
            raise InputError(f"--parts: there is no part {name!r}, allowed are {', '.join(known)}")
    return [part for part in PARTS if part.name in chosen]


def _known(path: str) -> Folder:
    folder = Folder(path)
    if folder.json("about.json") is None:
        raise InputError(f"{path}: has no about.json, a folder of a check is needed")
    return folder


def _begin(folder: Folder, options: argparse.Namespace) -> dict[str, Any]:
    """What the check is of: a new one's, or that of the one that goes on here."""
    about = about_device("cpu" if options.cpu else options.device, options.cluster)
    before = folder.json("about.json")
    if before is None:
        folder.write_json("about.json", about)
        return about
    for key in ("torch_device", "cluster", "gpu", "gpus", "torch"):
        if before.get(key) != about[key]:
            raise InputError(f"{folder.path}: has a check of {key} {before.get(key)}, this is {about[key]}: another "
                             "--out is needed")
    return before


def _in_a_process(folder: Folder, part: Part, seconds: float) -> None:
    """Runs the part where an error, or a device that it leaves broken, harms no other; ends it when it is late."""
    with open(folder.path / f"{part.name}.log", "w", encoding="utf-8") as log:
        child = subprocess.Popen([sys.executable, "-m", "pipeweaver.selfcheck", "--out", str(folder.path), "--part",
                                  part.name, "--seconds", str(seconds)], stdout=log, stderr=subprocess.STDOUT,
                                 start_new_session=True)
        try:
            status: int | None = child.wait(seconds + _grace_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end_group(child)
    found = folder.found(part.name)
    if status == 0 or (found is not None and found.state == "failed"):
        return
    why = f"was ended after {seconds + _grace_s:.0f} s" if status is None else f"ended with status {status}"
    torn = found or Found(part.name)
    torn.state, torn.seconds, torn.why = "failed", seconds, f"{why}: {folder.path / part.name}.log"
    folder.write_found(torn)


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """The process, and what it has started."""
    try:
        os.killpg(child.pid, 9)
    except ProcessLookupError:
        pass
    child.wait()


def _run_part(options: argparse.Namespace) -> int:
    part = next(part for part in PARTS if part.name == options.part)
    begun = time.monotonic()
    work = Work(_known(options.out), part.name, options.seconds)
    try:
        _take_device(work.device)
        importlib.import_module(f".{part.module}", __package__).run(work)
        work.found.state = "complete"
    except Exception as error:
        work.found.state = "failed"
        work.found.why = f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
        raise
    finally:
        work.write()
        print(f"{part.name}: {work.found.state} after {time.monotonic() - begun:.1f} s")
    return 0


def _take_device(name: str) -> None:
    """Makes the device the one that PyTorch takes where none is named: for sleeping, graphs and NCCL."""
    import torch

    if name == "cpu":
        torch.set_num_threads(1)  # the form of the tests: two that wait for each other on a busy machine take longer
    else:
        torch.cuda.set_device(name)


def _compare(folder: Folder) -> int:
    from .compare import compared
    from .page import page
    from .show import text

    try:
        document = compared(folder)
    except NotBuiltError as error:
        print(f"measured, and not compared: {error}", file=sys.stderr)
        return _unfinished
    folder.write_json("selfcheck.json", document)
    folder.write("selfcheck.html", page(document))
    print(text(document))
    print(f"{folder.path / 'selfcheck.html'}")
    return {"within": 0, "beyond": 4, "unfinished": _unfinished}[document["verdict"]]
