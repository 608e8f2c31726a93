"""Measures the operators that a plan asks for on the machine at hand.

    python -m pipeweaver.profile --model examples/cpu-vlm.json --cluster cpu:2 --tp 1 --pp 2 \\
        --batch examples/cpu-batch.jsonl --threads 1 --budget 20s --out measured
    pipeweaver costdb import measured/*.csv --device cpu --out own.sqlite
    pipeweaver plan --model examples/cpu-vlm.json --cluster cpu:2 --tp 1 --pp 2 \\
        --batch examples/cpu-batch.jsonl --costs own.sqlite --out plan
"""

from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import re
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from ._arguments import Parser
from . import _core
from .errors import FileError, InputError, PipeweaverError
from .profiling.needs import Needs, needs_of
from .profiling.session import Session
from .profiling.tables import measured_tables, needed_tables, write
from .profiling.timing import Measurement, parse_seconds

_rounds = 3  # measured times may change the partition, and with it what is asked for
_part_of_first = 0.75  # of the budget
_noisy_percent = 20.0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m pipeweaver.profile",
        description="Measures the operators that planning a step asks for, forward and backward, on the CPU or GPU at "
        "hand, most important first, and writes them as tables of `pipeweaver costdb import`.",
        epilog="example:" + str(__doc__).partition("\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    step = parser.add_argument_group("the step, as `pipeweaver plan` takes it")
    for name, kind in (("model", "MODEL"), ("cluster", "CLUSTER"), ("tp", "auto|N"), ("pp", "auto|N"), ("dp", "auto|N"),
                       ("cp", "N"), ("ep", "N"), ("context", "all-to-all|ring"),
                       ("batch", "FILE"), ("dataset", "DATASET"), ("microbatches", "N"), ("seed", "N"),
                       ("microbatch-tokens", "N"), ("too-long", "error|drop|own"),
                       ("partition", "dip|megatron|balanced")):
        step.add_argument(f"--{name}", metavar=kind, type=_number_or_text)
    how = parser.add_argument_group("measuring")
    how.add_argument("--device", metavar="cpu|cuda:N", help="default: cpu for a cluster of cpu, else cuda:0")
    how.add_argument("--dtype", choices=["fp32"],
                     help="run kernels in fp32 in place of the bf16 that plans ask for, for training in fp32")
    how.add_argument("--threads", metavar="N", type=int, help="of PyTorch on the CPU (default: as PyTorch chooses)")
    how.add_argument("--budget", metavar="TIME", default="5min", help="for measuring, like 20s (default 5min)")
    how.add_argument("--quiet", action="store_true", help="no line for each operator")
    how.add_argument("--out", metavar="DIR", help="folder of the tables (required)")
    return parser


def _number_or_text(text: str) -> int | str:
    return int(text) if re.fullmatch(r"\d{1,15}", text) else text


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. Returns its exit status."""
    try:
        _profile(_parser().parse_args(arguments))
        return 0
    except PipeweaverError as error:
        print(f"pipeweaver.profile: {error}", file=sys.stderr)
        return error.exit_status


def _profile(options: argparse.Namespace) -> None:
    if not options.out:
        raise InputError("missing --out DIR: a folder for the tables")
    if options.threads is not None and options.threads < 1:
        raise InputError(f"--threads: is {options.threads}, must be a whole number from 1")
    budget = parse_seconds(options.budget)
    step = ("model", "cluster", "tp", "pp", "dp", "cp", "ep", "context", "batch", "dataset", "microbatches", "seed",
            "microbatch_tokens", "too_long", "partition")
    config = {name: getattr(options, name) for name in step}
    needs = needs_of(config)
    try:
        _measure(options, config, needs, budget)
    except OSError as error:
        raise FileError(f"{error.filename or options.out}: {error.strerror}") from None


def _measure(options: argparse.Namespace, config: dict[str, Any], needs: Needs, budget: float) -> None:
    machine, session = _session(options, needs)
    begun = session.clock.now()
    for number in range(_rounds):
        part = _part_of_first if number == 0 else 1.0
        session.run(needs.to_measure(), begun + part * budget)
        needs = _ask_again(config, needs, session)
        if all(need.exact or need.key in session.refused for need in needs.to_measure()):
            break
    out = pathlib.Path(options.out)
    files = write(out, measured_tables(session.measured.values()))
    left = [need for need in needs.all if not need.exact]
    write(out / "not-measured", needed_tables(left))
    about = {
        "format": "pipeweaver-profile/1",
        "device": needs.device,
        "measured_on": str(machine.device),
        "kernels_in": options.dtype or "bf16",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        **machine.describe(),
        "budget_s": budget,
        "seconds": round(session.clock.now() - begun, 3),
        "operators": len(session.measured),
        "share_measured": round(needs.exact_share(), 6),
        "refused": [{"operator": str(need), "why": why} for need, why in session.refused.values()],
        "config": {name: value for name, value in config.items() if value is not None},
    }
    (out / "run.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    _say(about, needs, session, files, out)


def _session(options: argparse.Namespace, needs: Needs) -> tuple[Any, Session]:
    try:
        import torch

        from .profiling.kernels import CannotRun, Kernels, bytes_of
        from .profiling.machine import Machine
    except ImportError:
        raise InputError("needs PyTorch: pip install 'pipeweaver[torch]'") from None
    machine = Machine(options.device or ("cpu" if needs.device == "cpu" else "cuda:0"))
    if machine.is_gpu == (needs.device == "cpu"):
        raise InputError(f"--device: is {machine.device}, but --cluster is of {needs.device}: plans would take the "
                         "times for those of another device")
    if machine.is_gpu and not machine.is_like(needs.device):
        print(f"pipeweaver.profile: the plan is for {needs.device}, measured is {machine.describe()['gpu']}",
              file=sys.stderr)
    if machine.is_gpu:
        torch.cuda.set_device(machine.device)  # its clock lets sleep the one that is current
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    torch.manual_seed(0)

    def report(need: Any, time: Measurement) -> None:
        if not options.quiet:
            print(f"{100 * need.share:6.2f} %  {need}: {time.median_us:.1f} us +- {time.spread_percent:.1f} %, "
                  f"{time.repetitions} repetitions", flush=True)

    kernels = Kernels(machine.device, options.dtype)
    refusals = (CannotRun, MemoryError, torch.OutOfMemoryError, RuntimeError)
    return machine, Session(machine.clock(), kernels.make, refusals, machine.free_bytes, bytes_of, report)


def _ask_again(config: dict[str, Any], needs: Needs, session: Session) -> Needs:
    """What the plan asks for now that these times are known."""
    if not session.measured:
        return needs
    with tempfile.TemporaryDirectory() as name:
        files = write(pathlib.Path(name), measured_tables(session.measured.values()))
        costs = str(pathlib.Path(name) / "costs.sqlite")
        _core.import_tables([str(file) for file in files], needs.device, "profile", "", costs)
        return needs_of(config, costs)


def _say(about: dict[str, Any], needs: Needs, session: Session, files: list[pathlib.Path], out: pathlib.Path) -> None:
    measured = session.measured.values()
    print(f"{about['operators']} operators measured in {about['seconds']:.1f} s on {about.get('gpu', about['cpu'])}, "
          f"{about['threads']} threads: {100 * about['share_measured']:.1f} % of the operators' time")
    noisy = sum(time.spread_percent > _noisy_percent for _, time in measured)
    if noisy:
        print(f"{noisy} of them vary by more than {_noisy_percent:.0f} %: is the machine busy with something else?")
    for one in about["refused"]:
        print(f"not measured: {one['operator']}: {one['why']}")
    collectives = [need for need in needs.all if need.table == "collectives"]
    if collectives:
        print(f"{len(collectives)} collectives and transfers are a matter of nccl-tests: "
              f"{out / 'not-measured/collectives.csv'}")
    if files:
        print(f"next: pipeweaver costdb import {' '.join(map(str, files))} --device {needs.device} --out own.sqlite")


if __name__ == "__main__":
    sys.exit(main())
