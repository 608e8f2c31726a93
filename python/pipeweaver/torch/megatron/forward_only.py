"""The order of an evaluation: forwards alone, of any number of microbatches."""

from __future__ import annotations

from ..actions import Action, Actions, Compute, Message, Place, Stage, Tensor


def forward_only(ranks: int, chunks: int, microbatches: int) -> Actions:
    """Every rank passes groups of as many microbatches as there are ranks through its first chunk, then through the
    next. Time O(passes)."""
    stages = {s: Stage(s, s % ranks, "all", False, False, s == 0, (), ()) for s in range(ranks * chunks)}
    rows: list[list[Action]] = [[] for _ in range(ranks)]
    tensors: list[Tensor] = []
    made: dict[Place, Tensor] = {}  # by target
    passes = [Place(stage, microbatch, 0) for first in range(0, microbatches, ranks) for stage in stages
              for microbatch in range(first, min(first + ranks, microbatches))]
    for task, place in enumerate(passes):
        row, came = rows[place.stage % ranks], made.pop(place, None)
        if came is not None and ranks > 1:
            row.append(Message("wait", came.tensor))
        row.append(Compute("F", task, place))
        if place.stage + 1 in stages:
            target = place._replace(stage=place.stage + 1)
            tensor = made[target] = Tensor(len(tensors), "activation", place, target, None, "bf16")
            tensors.append(tensor)
            if ranks > 1:
                peer = target.stage % ranks
                row.append(Message("send", tensor.tensor, peer, tensor.tensor))
                rows[peer].append(Message("receive", tensor.tensor, place.stage % ranks, tensor.tensor))
    return Actions("forward only", 0, 1, ranks, (0,) * ranks, stages, tuple(tensors), tuple(map(tuple, rows)))
