"""Which samples each microbatch of a step takes, as assignment.json has it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import FileError, InputError
from .sizes import Sizes

FORMAT = "pipeweaver-assignment/1"
LOSS = "mean over the microbatch's loss tokens, times loss_weight, summed over the step"


@dataclass(frozen=True)
class Microbatch:
    """Samples (ids) that enter the model together, and what the mean over their loss tokens counts in the step's."""

    samples: tuple[Any, ...]
    tokens: int
    loss_tokens: int
    loss_weight: float


@dataclass(frozen=True)
class Assignment:
    """Per replica its microbatches, in the order that they run in. `step_ns`: of the slowest replica by the costs that
    it was made with; None where it was read."""

    replicas: tuple[tuple[Microbatch, ...], ...]
    step_ns: float | None = None

    @property
    def microbatches(self) -> int:
        """Of the replica with most."""
        return max((len(one) for one in self.replicas), default=0)

    def ids(self, replica: int) -> list[list[Any]]:
        """[microbatch] -> ids of its samples."""
        return [list(microbatch.samples) for microbatch in self.replicas[replica]]

    def to_dict(self) -> dict[str, Any]:
        """assignment.json (`pipeweaver-assignment/1`), without rows and units: these are of a plan's partition."""
        return {
            "format": FORMAT,
            "loss": LOSS,
            "loss_tokens": sum(one.loss_tokens for mine in self.replicas for one in mine),
            "replicas": [
                {
                    "replica": replica,
                    "microbatches": [
                        {
                            "microbatch": number,
                            "tokens": one.tokens,
                            "loss_tokens": one.loss_tokens,
                            "loss_weight": one.loss_weight,
                            "samples": [{"id": id} for id in one.samples],
                        }
                        for number, one in enumerate(mine)
                    ],
                }
                for replica, mine in enumerate(self.replicas)
            ],
        }

    @staticmethod
    def from_dict(document: Mapping[str, Any]) -> Assignment:
        """Of assignment.json or `plan.assignment`. Raises InputError where it is none, a sample comes twice, or the
        weights of a step with samples do not sum to 1."""
        if not isinstance(document, Mapping) or document.get("format") != FORMAT:
            raise InputError(f"assignment: allowed is a document of the format '{FORMAT}'")
        try:
            replicas = tuple(
                tuple(_microbatch(*one) for one in _numbered("microbatch", mine["microbatches"]))
                for _, mine in _numbered("replica", document["replicas"])
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"assignment: lacks or mistakes a key: {error}") from None
        _check(replicas)
        return Assignment(replicas)

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Assignment:
        """Raises InputError, FileError."""
        try:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        except OSError as error:
            raise FileError(f"{path}: cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise InputError(f"{path}: is no JSON: {error}") from None
        return Assignment.from_dict(document)


def assigned(shares: Sequence[Sequence[Sequence[int]]], sizes: Sizes, step_ns: float | None) -> Assignment:
    """[replica][microbatch] -> places of samples, one at least. A microbatch weighs as much as it has of the step's
    loss tokens; in a step without any, of its tokens; where there are none either, of its samples. So the weights of a
    step sum to 1."""
    units = next((all for all in (sizes.loss_tokens, sizes.tokens) if all.sum() > 0), np.ones(len(sizes), np.int64))
    order = np.fromiter((place for mine in shares for one in mine for place in one), np.int64)
    last = np.cumsum([len(one) for mine in shares for one in mine])
    sums = [np.diff(np.cumsum(of[order])[last - 1], prepend=0) for of in (sizes.tokens, sizes.loss_tokens, units)]
    rows = zip(sums[0].tolist(), sums[1].tolist(), (sums[2] / float(units.sum())).tolist())
    return Assignment(
        tuple(tuple(Microbatch(tuple(sizes.ids[p] for p in one), *next(rows)) for one in mine) for mine in shares),
        step_ns,
    )


def _numbered(key: str, documents: Sequence[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """With what each is called. They are in the order of their numbers, where they have some."""
    named = [(f"{key} {number}", document) for number, document in enumerate(documents)]
    for number, (name, document) in enumerate(named):
        if document.get(key, number) != number:
            raise InputError(f"assignment: {name} is numbered {document[key]!r}, must be {number}, in order")
    return named


def _microbatch(name: str, document: Mapping[str, Any]) -> Microbatch:
    samples = tuple(sample["id"] for sample in document["samples"])
    if not samples:
        raise InputError(f"assignment: {name} of a replica has no samples, allowed are one or more")
    for sample in samples:
        if isinstance(sample, bool) or not isinstance(sample, (int, str)):
            raise InputError(f"assignment: the id {sample!r} is allowed to be a text or a whole number")
    for key in ("tokens", "loss_tokens"):
        if isinstance(document[key], bool) or not isinstance(document[key], int) or document[key] < 0:
            raise InputError(f"assignment: {key} is {document[key]!r}, must be a whole number from 0")
    weight = float(document["loss_weight"])
    if not (math.isfinite(weight) and weight >= 0):
        raise InputError(f"assignment: loss_weight is {weight}, must be a number from 0")
    return Microbatch(samples, document["tokens"], document["loss_tokens"], weight)


def _check(replicas: tuple[tuple[Microbatch, ...], ...]) -> None:
    if not replicas:
        raise InputError("assignment: replicas are none, allowed are one or more")
    seen: set[Any] = set()
    for mine in replicas:
        for microbatch in mine:
            for sample in microbatch.samples:
                if sample in seen:
                    raise InputError(f"assignment: sample {sample!r} is in it twice")
                seen.add(sample)
    weight = sum(microbatch.loss_weight for mine in replicas for microbatch in mine)
    if seen and not abs(weight - 1) <= 1e-6:
        raise InputError(f"assignment: its loss weights sum to {weight:.6g}, allowed is 1")
