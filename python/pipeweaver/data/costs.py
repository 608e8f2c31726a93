"""What samples cost: a*l^2 + b*l + c of every length, stage by stage of the pipeline.

Times are nanoseconds, forward and backward together. `coefficients` in `fit` obtains them for a model on a machine.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import FileError, InputError
from .sizes import Sizes

Times = npt.NDArray[np.float64]

FORMAT = "pipeweaver-coefficients/1"


class Quadratic(NamedTuple):
    """a*l^2 + b*l + c of a length l, in ns."""

    a: float
    b: float
    c: float

    def of(self, lengths: npt.NDArray[Any]) -> Times:
        real = lengths.astype(np.float64)
        return (self.a * real + self.b) * real + self.c


@dataclass(frozen=True)
class StageCosts:
    """One stage: what a sample's tokens, each of its items (by their key in a batch file, in patches) and a microbatch
    by itself add to it."""

    tokens: Quadratic
    items: Mapping[str, Quadratic] = field(default_factory=dict)
    microbatch: float = 0.0


@dataclass(frozen=True)
class Costs:
    """The stages of one pipeline, in order, and the forward's part of a pass. One stage: no pipeline."""

    stages: tuple[StageCosts, ...]
    forward: float = 1 / 3

    def of(self, sizes: Sizes) -> Times:
        """[sample, stage]. Coefficients of no items price tokens alone. Raises InputError where there are no stages, a
        time is not finite, or coefficients of some items are known, but not of others that the sizes have."""
        if not self.stages:
            raise InputError("coefficients: allowed are one stage or more")
        known = sorted({kind for stage in self.stages for kind in stage.items})
        for kind in sizes.items:
            if known and kind not in known:
                raise InputError(f"items: '{kind}' has no coefficients, those known are of: {', '.join(known)}")
        times = np.stack([_of_stage(stage, sizes) for stage in self.stages], axis=1)
        if not np.isfinite(times).all():
            raise InputError("coefficients: give a sample no finite time, must be a number from 0")
        return times

    def of_tokens(self) -> Quadratic:
        """A sample's tokens, all stages together."""
        return Quadratic(*(sum(values) for values in zip(*(stage.tokens for stage in self.stages))))

    def of_microbatch(self) -> Times:
        """[stage]: what each microbatch adds, whatever is in it."""
        return np.array([stage.microbatch for stage in self.stages])

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it (`pipeweaver-coefficients/1`)."""
        return {
            "format": FORMAT,
            "forward": self.forward,
            "stages": [
                {
                    "tokens": list(stage.tokens),
                    "items": {kind: list(of) for kind, of in stage.items.items()},
                    "microbatch": stage.microbatch,
                }
                for stage in self.stages
            ],
        }

    @staticmethod
    def from_dict(document: Mapping[str, Any]) -> Costs:
        """Raises InputError where the document is not as to_dict() makes it."""
        if document.get("format") != FORMAT:
            raise InputError(f"coefficients: format is {document.get('format')!r}, must be '{FORMAT}'")
        try:
            stages = tuple(
                StageCosts(
                    _quadratic(f"stages[{number}].tokens", stage["tokens"]),
                    {kind: _quadratic(f"stages[{number}].items.{kind}", of) for kind, of in stage["items"].items()},
                    _number(f"stages[{number}].microbatch", stage["microbatch"]),
                )
                for number, stage in enumerate(document["stages"])
            )
            forward = _number("forward", document["forward"])
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"coefficients: lack or mistake a key: {error}") from None
        if not stages or not 0 < forward < 1:
            raise InputError("coefficients: allowed are one stage or more, and a forward between 0 and 1")
        return Costs(stages, forward)

    @staticmethod
    def read(path: str | os.PathLike[str]) -> Costs:
        """Of a file that `python -m pipeweaver.data` wrote. Raises InputError, FileError."""
        try:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
        except OSError as error:
            raise FileError(f"{path}: cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise InputError(f"{path}: is no JSON: {error}") from None
        if not isinstance(document, dict):
            raise InputError(f"{path}: is no JSON object")
        return Costs.from_dict(document)


BY_TOKENS = Costs((StageCosts(Quadratic(0.0, 1.0, 0.0)),))
"""A token is a token: what is balanced where no coefficients are known."""


def _of_stage(stage: StageCosts, sizes: Sizes) -> Times:
    times = stage.tokens.of(sizes.tokens)
    for kind, items in sizes.items.items():
        of = stage.items.get(kind)
        if of is not None:
            times = times + items.sums(of.of(items.lengths))
    return times


def _number(name: str, value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < float("inf"):
        raise InputError(f"coefficients: {name}: is {value!r}, must be a number from 0")
    return float(value)


def _quadratic(name: str, value: object) -> Quadratic:
    if not isinstance(value, (list, tuple)) or len(value) != 3:
        raise InputError(f"coefficients: {name}: is {value!r}, must be three numbers [a, b, c]")
    return Quadratic(*(_number(name, one) for one in value))
