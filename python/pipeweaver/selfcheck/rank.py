"""One of the two ranks of a check: python -m pipeweaver.selfcheck.rank FOLDER RANK PORT SECONDS."""

from __future__ import annotations

import functools
import json
import math
import statistics
import sys
import time
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist

from ..torch import Actions, Executor, StepResult, Timings, Unit, Watch, parse_actions
from ..torch.actions import Compute
from . import collectives
from .cases import SCALES, uneven
from .folder import Folder
from .networks import Block, Norm, Rotary, initialised
from .ranks import device_of, joined, own_devices
from .steps import numbers_on, token_loss

Tensor = torch.Tensor
_patch_values = 3 * 14 * 14
_loading_s = 8.0  # of PyTorch, before main()
_warm, _fewest, _most, _slow = 3, 4, 10, 8  # steps
# Of gradients in fp32: sums of as many products in another order.
GRADIENT_LIMIT = 1e-4
LOSS_LIMIT = 0.02


class Chunk(torch.nn.Module):
    """A stage: layers of the ViT or the LLM over rows [rows, width], all rows of a unit one sequence, with what comes
    before the first and after the last."""

    def __init__(self, part: Any, architectures: Mapping[str, Any], positions: int) -> None:
        super().__init__()
        own, llm = architectures[part.module], architectures["llm"]
        vision, width = part.module == "vit", own["hidden"]
        self.rotary = None if vision else Rotary(positions, own["head_dim"])
        self.blocks = torch.nn.ModuleList(Block(own, not vision) for _ in range(part.layers))
        self.first: torch.nn.Module | None = None
        self.norm: torch.nn.Module | None = None
        self.last: torch.nn.Linear | None = None
        self.twice = False  # runs its forwards twice: a slow rank
        if part.first_layer == 0:
            self.first = torch.nn.Linear(_patch_values, width) if vision else torch.nn.Embedding(own["vocab"], width)
        if part.first_layer + part.layers == own["layers"]:
            self.norm = None if vision else Norm(own)
            self.last = torch.nn.Linear(4 * width, llm["hidden"]) if vision else torch.nn.Linear(width, own["vocab"])

    def forward(self, x: Any, others: Mapping[str, list[Tensor]] | None = None) -> Tensor:
        if self.twice:
            with torch.no_grad():
                self._forward(x, others)
        return self._forward(x, others)

    def _forward(self, x: Any, others: Mapping[str, list[Tensor]] | None) -> Tensor:
        if isinstance(x, tuple):  # tokens, and the rows that images take
            assert self.first is not None
            tokens, places = x
            x = self.first(tokens)
            if others and others["vit"]:
                x = x.index_copy(0, places, torch.cat(others["vit"]))
        elif self.first is not None:
            x = self.first(x.to(self.first.weight.dtype))
        x = x[None]
        for block in self.blocks:
            x = block(x, self.rotary)
        rows: Tensor = x[0] if self.norm is None else self.norm(x[0])
        return rows if self.last is None else self.last(rows.reshape(-1, self.last.in_features))


class Batch:
    """One step's data by the plan's assignment, the same on every rank."""

    def __init__(self, assignment: Mapping[str, Any], vocabulary: int, device: torch.device) -> None:
        self.microbatches = assignment["replicas"][0]["microbatches"]
        self.vocabulary, self.device = vocabulary, device

    def split(self, _: Any, unit: Unit) -> Any:
        """What Executor takes as split."""
        if unit.purpose == "target":
            return self.tokens(unit.microbatch)[0].roll(-1)
        return self.patches(unit.microbatch, unit.item) if unit.module == "vit" else self.tokens(unit.microbatch)

    @functools.cache  # drawn once: the host would be slower than the pass
    def patches(self, microbatch: int, item: int) -> Tensor:
        units = [one for one in self.microbatches[microbatch]["units"] if one["module"] == "vit"]
        rows = units[item]["items"][-1]["rows"][1]
        return torch.randn(rows, _patch_values, generator=_generator(microbatch, item)).to(self.device)

    @functools.cache
    def tokens(self, microbatch: int) -> tuple[Tensor, Tensor]:
        """Of the samples one behind the other; and the rows that images take, the first of their sample."""
        samples = self.microbatches[microbatch]["samples"]
        rows = samples[-1]["rows"][1]
        tokens = torch.randint(0, self.vocabulary, (rows,), generator=_generator(microbatch, -1))
        begin = {sample["id"]: sample["rows"][0] for sample in samples}
        places: list[int] = []
        for unit in self.microbatches[microbatch]["units"]:
            for item in unit["items"] if unit["module"] == "vit" else ():
                places += range(begin[item["sample"]], begin[item["sample"]] + item["tokens"])
                begin[item["sample"]] += item["tokens"]
        return tokens.to(self.device), torch.tensor(places, dtype=torch.long, device=self.device)


def _generator(microbatch: int, item: int) -> torch.Generator:
    return torch.Generator().manual_seed(1000 * microbatch + item + 1)


def loss(output: Tensor, target: Tensor) -> Tensor:
    return token_loss(output[None], target[None])


def reference(actions: Actions, chunks: Mapping[int, Chunk], batch: Batch) -> float:
    """The step in this process alone: its loss. Gradients are in the chunks."""
    forwards = {action.place: action for row in actions.lists for action in row
                if isinstance(action, Compute) and action.op == "F"}
    of_chain = {name: [number for number, stage in sorted(actions.stages.items()) if stage.chain == name]
                for name in ("vit", "llm")}
    last, total = of_chain["llm"][-1], 0.0
    for microbatch in sorted({place.microbatch for place in forwards}):
        items = sorted(place.item for place in forwards
                       if place.microbatch == microbatch and place.stage == of_chain["vit"][0])
        seen = []
        for item in items:
            x: Any = batch.patches(microbatch, item)
            for stage in of_chain["vit"]:
                x = chunks[stage](x)
            seen.append(x)
        x = batch.tokens(microbatch)
        for stage in of_chain["llm"]:
            x = chunks[stage](x, {"vit": seen}) if actions.stages[stage].inputs else chunks[stage](x)
        weight = next(action.loss_weight for place, action in forwards.items()
                      if place.stage == last and place.microbatch == microbatch)
        assert weight is not None
        value = loss(x, batch.tokens(microbatch)[0].roll(-1)) * weight
        value.backward()  # type: ignore[no-untyped-call]
        total += float(value.detach())
    return total


class Rank:
    """What this process does, and what it finds."""

    def __init__(self, folder: Folder, number: int, until: float) -> None:
        self.folder, self.number, self.until = folder, number, until
        about = folder.json("about.json") or {}
        self.device = device_of(about["torch_device"], number)
        actions = parse_actions(json.dumps(folder.json("ranks/actions.json")))
        assert isinstance(actions, Actions)
        self.actions = actions
        self.scale = about["scale"]
        stack = uneven(SCALES[self.scale])
        self.architectures = {"vit": stack.architecture("vit"), "llm": stack.architecture("llm")}
        self.positions = stack.model["microbatch_tokens"]
        self.batch = Batch(folder.json("ranks/assignment.json") or {}, self.architectures["llm"]["vocab"], self.device)
        self.judged = own_devices(about["torch_device"])  # ranks that share a device slow each other
        self.rows: list[dict[str, Any]] = []
        self.expected = 0.0  # the step's loss
        self.slowest = 0.0  # seconds of a step so far

    def chunks(self, stages: Mapping[int, Any], dtype: torch.dtype) -> dict[int, Chunk]:
        with torch.device(self.device):
            made = {number: Chunk(stage.parts[0], self.architectures, self.positions)
                    for number, stage in sorted(stages.items())}
        for number, chunk in made.items():
            initialised(chunk, seed=number)
            chunk.to(dtype)
        return made

    def executor(self, chunks: Mapping[int, Chunk], dtype: torch.dtype) -> Executor:
        return Executor(self.actions, chunks, self.batch.split, loss, device=self.device, dtype=dtype, timeout=60.0)

    def gradients(self) -> None:
        """Those of the executor beside those of one process, in fp32."""
        own = self.chunks(self.actions.on_rank(self.number), torch.float32)
        result = self.executor(own, torch.float32).step(None)
        whole = self.chunks(self.actions.stages, torch.float32)
        self.expected = reference(self.actions, whole, self.batch)
        worst = max(_error(chunk, whole[number]) for number, chunk in own.items())
        self.row("gradients are those of one process", worst < GRADIENT_LIMIT, worst=worst, limit=GRADIENT_LIMIT)
        off = self.off(result.loss)
        self.row("the loss is that of one process", off < GRADIENT_LIMIT, worst=off, limit=GRADIENT_LIMIT)

    def steps(self) -> None:
        """Steps in the numbers of training, and their times; then with rank 1 slowed, what Watch tells."""
        numbers = numbers_on(self.device)
        chunks = self.chunks(self.actions.on_rank(self.number), numbers)
        executor = self.executor(chunks, numbers)
        told: list[str] = []
        timings = Timings(executor)
        watch = Watch(executor, self.folder.path / "ranks/plan/replica-000", tell=lambda found: told.append(str(found)))
        for _ in range(_warm):
            self.step(executor, chunks)
        seconds = []
        for number in range(_most):
            if number >= _fewest and self.late():
                break
            result = self.step(executor, chunks)
            seconds.append(result.seconds)
            timings.add(result)
            watch.step(result)
        timings.write(self.folder.path / f"ranks/timings-{self.number}.json.gz")
        busy = sum(one.end - one.start for one in result.timings
                   if isinstance(executor.program.actions.actions[one.action], Compute))
        off = self.off(result.loss)
        self.row("steps that are timed have that loss, too", off < LOSS_LIMIT, worst=off, limit=LOSS_LIMIT,
                 steps=len(seconds), busy_s=round(busy, 6), seconds=round(statistics.median(seconds), 6))
        self.slowed(executor, chunks, watch, told)

    def slowed(self, executor: Executor, chunks: Mapping[int, Chunk], watch: Watch, told: list[str]) -> None:
        before = list(told)
        for chunk in chunks.values():
            chunk.twice = self.number == 1
        for _ in range(_slow):
            watch.step(self.step(executor, chunks))
        if self.number == 0:
            self.row("Watch tells of rank 1 when it runs its forwards twice",
                     any(one.startswith("rank 1 ") for one in told[len(before):]), judged=self.judged, before=before,
                     told=told[len(before):])

    def collectives(self) -> None:
        """Of the two ranks, where each has a device: as a table."""
        rows = collectives.measured(self.device, collectives.SIZES[self.scale])
        if self.number == 0:
            lines = [",".join(row) for row in [collectives.HEADER, *rows]]
            self.folder.write("ranks/collectives.csv", "\n".join(lines) + "\n")

    def step(self, executor: Executor, chunks: Mapping[int, Chunk]) -> StepResult:
        for chunk in chunks.values():
            chunk.zero_grad()
        collectives.meet(self.device)
        result = executor.step(None)
        self.slowest = max(self.slowest, result.seconds)
        return result

    def off(self, found: float) -> float:
        """How far a loss is from that of one process, relative to it."""
        return abs(found - self.expected) / abs(self.expected)

    def late(self) -> bool:
        """Whether there is no time for more than the slow steps; the same on both ranks."""
        said: list[Any] = [None, None]
        dist.all_gather_object(said, self.until - time.monotonic() < 3 + 1.5 * (_slow + 1) * self.slowest)
        return any(said)

    def row(self, check: str, holds: bool, **found: Any) -> None:
        self.rows.append({"check": check, "rank": self.number, "holds": bool(holds), **found})
        self.folder.write_json(f"ranks/rank-{self.number}.json", {"rows": self.rows})


def _error(found: Chunk, expected: Chunk) -> float:
    """Of the gradients of all its weights together."""
    off = size = 0.0
    for weight, other in zip(found.parameters(), expected.parameters()):
        assert weight.grad is not None and other.grad is not None
        off += float((weight.grad - other.grad).square().sum())
        size += float(other.grad.square().sum())
    return math.sqrt(off / size)


def main() -> None:
    folder, number, port, seconds = sys.argv[1:]
    until = time.monotonic() + float(seconds) - _loading_s
    where = Folder(folder)
    joined(int(number), int(port), str((where.json("about.json") or {})["torch_device"]))
    rank = Rank(where, int(number), until)
    rank.gradients()
    rank.steps()
    if rank.judged or rank.device.type == "cpu":
        rank.collectives()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
