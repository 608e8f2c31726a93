"""Steps of a job: which samples each has, epoch by epoch, and how these are assigned."""

from __future__ import annotations

import hashlib
import json
import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Union

import numpy as np

from ..errors import InputError
from .assignment import Assignment, Microbatch
from .balancing import METHODS, balance
from .costs import BY_TOKENS, Costs
from .sizes import AnySizes, Sizes

_REMEMBERED = 64  # steps: a loader asks for them ahead of the loop


class Steps(Protocol):
    """What a sampler needs: as many steps an epoch, each an assignment of places in the data set."""

    replicas: int

    def __len__(self) -> int: ...

    def plan(self, epoch: int, step: int) -> Assignment: ...

    def fingerprint(self) -> dict[str, Any]: ...


class EpochSteps:
    """A data set of known sizes, in an order of its own every epoch (by `seed`), in steps of `samples_per_step` or a
    few less so that all have as many, one more or less: in an epoch every sample comes exactly once. Each step is
    shared out by balance(). Raises InputError where a step would have fewer samples than replicas."""

    def __init__(
        self,
        sizes: AnySizes,
        replicas: int,
        samples_per_step: int,
        *,
        budget: int | None = None,
        costs: Costs | None = None,
        seed: int = 0,
        shuffle: bool = True,
        method: str = "best",
    ) -> None:
        self.sizes = Sizes.of(sizes)
        self.replicas, self.budget, self.seed, self.shuffle, self.method = replicas, budget, seed, shuffle, method
        self.costs = costs or BY_TOKENS
        _check(replicas, samples_per_step, seed, method)
        if samples_per_step < 1 or len(self.sizes) == 0:
            raise InputError(
                f"samples_per_step: is {samples_per_step} of {len(self.sizes)} samples, allowed are 1 and more of some"
            )
        self._steps = -(-len(self.sizes) // samples_per_step)
        if len(self.sizes) // self._steps < replicas:
            raise InputError(
                f"samples_per_step: steps of {len(self.sizes) // self._steps} samples are too small for "
                f"{replicas} replicas, each needs one"
            )
        self.costs.of(self.sizes)  # what they lack is said now, and so is a sample above the budget
        if budget is not None and self.sizes.tokens.max() > budget:
            place = int(np.argmax(self.sizes.tokens))
            raise InputError(
                f"budget: sample {place} has {self.sizes.tokens[place]} tokens, a microbatch holds {budget}"
            )
        self._plans: OrderedDict[tuple[int, int], Assignment] = OrderedDict()
        self._order: tuple[int, Any] | None = None

    def __len__(self) -> int:
        return self._steps

    def plan(self, epoch: int, step: int) -> Assignment:
        """Of places in the data set. The same on every rank and in every process."""
        key = (epoch, step)
        if key not in self._plans:
            self._plans[key] = self._planned(self._places(epoch, step))
            if len(self._plans) > _REMEMBERED:
                self._plans.popitem(last=False)
        return self._plans[key]

    def fingerprint(self) -> dict[str, Any]:
        """What must be equal on all ranks, and when a job goes on."""
        return {
            "samples": len(self.sizes),
            "replicas": self.replicas,
            "steps": self._steps,
            "budget": self.budget,
            "seed": self.seed,
            "shuffle": self.shuffle,
            "method": self.method,
            "costs": _hash(self.costs.to_dict()),
            "sizes": self.sizes.fingerprint(),
        }

    def _places(self, epoch: int, step: int) -> Any:
        if self._order is None or self._order[0] != epoch:
            order = np.arange(len(self.sizes))
            if self.shuffle:
                order = np.random.Generator(np.random.Philox(key=[self.seed, epoch])).permutation(order)
            self._order = (epoch, order)
        each, more = divmod(len(self.sizes), self._steps)
        first = step * each + min(step, more)
        return self._order[1][first : first + each + (step < more)]

    def _planned(self, places: Any) -> Assignment:
        return balance(
            self.sizes.take(places),
            self.replicas,
            budget=self.budget,
            costs=self.costs,
            equal=False,
            method=self.method,
        )


class AssignedSteps:
    """One epoch whose steps are assignments that are there: of `pipeweaver plan`, `plan.assignment`, or files.
    `places`: where the data set has the sample of an id; without it ids are places."""

    def __init__(
        self,
        assignments: Sequence[Union[Assignment, Mapping[str, Any], str, os.PathLike[str]]],
        places: Mapping[Any, int] | None = None,
    ) -> None:
        if isinstance(assignments, (str, bytes, os.PathLike, Mapping)):
            raise InputError("assignments: allowed is a list of them, one for each step")
        if not assignments:
            raise InputError("assignments: are none, allowed is one for each step")
        self._assignments = [_placed(_read(one), places) for one in assignments]
        counts = sorted({len(one.replicas) for one in self._assignments})
        if len(counts) > 1:
            raise InputError(f"assignments: are of {' and '.join(map(str, counts))} replicas, allowed is one number")
        self.replicas = counts[0]

    def __len__(self) -> int:
        return len(self._assignments)

    def plan(self, epoch: int, step: int) -> Assignment:
        if not 0 <= step < len(self):
            raise InputError(f"step: is {step}, must be 0 to {len(self) - 1}")
        return self._assignments[step]

    def fingerprint(self) -> dict[str, Any]:
        return {
            "replicas": self.replicas,
            "steps": len(self),
            "assignments": _hash([one.to_dict() for one in self._assignments]),
        }


def _hash(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _check(replicas: int, samples_per_step: int, seed: int, method: str) -> None:
    for name, value, least in (("replicas", replicas, 1), ("samples_per_step", samples_per_step, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value < 2**64:
            raise InputError(f"{name}: is {value!r}, must be a whole number from {least} to 2^64 - 1")
    if method not in METHODS:
        raise InputError(f"method: is '{method}', must be one of {', '.join(METHODS)}")


def _read(given: Union[Assignment, Mapping[str, Any], str, os.PathLike[str]]) -> Assignment:
    if isinstance(given, Assignment):
        return given
    if isinstance(given, (str, os.PathLike)):
        return Assignment.read(os.fspath(given))
    return Assignment.from_dict(given)


def _placed(assignment: Assignment, places: Mapping[Any, int] | None) -> Assignment:
    if places is None:
        for id in (id for mine in assignment.replicas for one in mine for id in one.samples):
            if isinstance(id, bool) or not isinstance(id, int) or id < 0:
                raise InputError(f"assignment: sample {id!r} is no place; allowed without `places` are numbers from 0")
        return assignment
    try:
        return Assignment(
            tuple(
                tuple(
                    Microbatch(tuple(places[id] for id in one.samples), one.tokens, one.loss_tokens, one.loss_weight)
                    for one in mine
                )
                for mine in assignment.replicas
            ),
            assignment.step_ns,
        )
    except KeyError as error:
        raise InputError(f"assignment: sample {error} is not in the data set") from None
