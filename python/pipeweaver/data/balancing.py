"""balance(): one step's samples into microbatches, replicas and an order, in microseconds a sample."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .assignment import Assignment, assigned
from .costs import BY_TOKENS, Costs, StageCosts, Times
from .longest_first import longest_first
from .pack import Bins, first_fit_decreasing_count, in_order, pack
from .pipeline import makespans
from .share import Places, Shares, deal, ordered
from .sizes import AnySizes, Sizes

METHODS = ("best", "longest-first", "in-turn")

_MORE = (1.0, 1.1, 1.25)  # microbatches over the fewest that are tried
_FEW = 20_000  # samples of which all of these are tried
_MOST_PACKINGS = 40  # each with a few more bins than the one before


def balance(
    sizes: AnySizes,
    replicas: int,
    *,
    budget: int | None = None,
    microbatches: int | None = None,
    costs: Costs | None = None,
    group: int = 1,
    equal: bool = True,
    method: str = "best",
) -> Assignment:
    """Packs a step's samples into microbatches of at most `budget` tokens, shares these out among the replicas and
    orders each replica's for 1F1B on the stages of `costs`; the slowest replica is then the fastest that was found.

    sizes         Sizes, tokens of each sample, or samples as pipeweaver.batch_of() gives them
    budget        tokens of a microbatch; without one and without `microbatches` every replica has one microbatch, or
                  `group`
    microbatches  of each replica, by whatever method; else as many as are best
    costs         of coefficients(); else a token costs what any other does
    group         microbatches of a replica are a multiple of it (a group of virtual pipeline stages)
    equal         every replica has as many; else, where samples are too few for that, some have one less (without
                  `group`)
    method        "best": never slower by `costs` than "longest-first", what frameworks ship, nor than "in-turn", the
                  samples as they come

    A function of its arguments alone: ranks that call it with the same need not talk. Raises InputError."""
    given = Sizes.of(sizes)
    _check(given, replicas, budget, microbatches, group, method)
    if group > 1 and not equal:
        raise InputError(f"group: is {group}, must be 1 where replicas need not have equally many microbatches")
    step = _Step(given, replicas, budget, microbatches, costs or BY_TOKENS, group, equal)
    found = step.of(method)
    if found is None:
        raise InputError(_impossible(step))
    return found


def _impossible(step: _Step) -> str:
    samples, asked = len(step.sizes), step.asked
    if asked is None or asked * step.replicas > samples:
        counts = f"{asked} each" if asked is not None else f"equally many, in multiples of {step.group}"
        return (
            f"balance: {samples} samples are too few for microbatches of {step.replicas} replicas, {counts}, with a "
            "sample at least"
        )
    return (
        f"microbatches: {asked} of each of {step.replicas} replicas are not found to hold the {samples} samples in a "
        f"budget of {step.budget} tokens; allowed are more, or a larger budget"
    )


def _check(
    sizes: Sizes, replicas: int, budget: int | None, microbatches: int | None, group: int, method: str
) -> None:
    for name, value in (("replicas", replicas), ("budget", budget), ("microbatches", microbatches), ("group", group)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1):
            raise InputError(f"{name}: is {value!r}, must be a whole number from 1")
    if method not in METHODS:
        raise InputError(f"method: is '{method}', must be one of {', '.join(METHODS)}")
    if microbatches is not None and microbatches % group:
        raise InputError(f"microbatches: are {microbatches}, must be a multiple of group, {group}")
    if len(sizes) < replicas:
        raise InputError(f"replicas: are {replicas}, more than the step's {len(sizes)} samples")
    if budget is not None and sizes.tokens.max() > budget:
        place = int(np.argmax(sizes.tokens))
        raise InputError(
            f"budget: sample {sizes.ids[place]!r} has {sizes.tokens[place]} tokens, a microbatch holds {budget}"
        )


@dataclass(frozen=True)
class _Found:
    """[replica][microbatch] -> samples."""

    microbatches: list[Bins]
    step_ns: float

    @property
    def is_whole(self) -> bool:
        """Whether no replica and no microbatch is without a sample."""
        return all(mine and all(mine) for mine in self.microbatches)


class _Step:
    def __init__(
        self,
        sizes: Sizes,
        replicas: int,
        budget: int | None,
        microbatches: int | None,
        costs: Costs,
        group: int,
        equal: bool,
    ) -> None:
        self.sizes, self.replicas, self.budget = sizes, replicas, budget
        self.asked = group if budget is None and microbatches is None else microbatches
        self.costs, self.group, self.equal = costs, group, equal
        self.times = costs.of(sizes)

    def of(self, method: str) -> Assignment | None:
        """None: samples are too few for the microbatches that are wanted."""
        ways: dict[str, Callable[[], list[_Found]]] = {"longest-first": self.longest_first, "in-turn": self.in_turn}
        found = ways[method]() if method in ways else self.balanced() + self.longest_first() + self.in_turn()
        possible = [one for one in found if one.is_whole and self._is_wanted(one)]
        if not possible:
            return None
        best = min(possible, key=lambda one: one.step_ns)
        return assigned(best.microbatches, self.sizes, best.step_ns)

    def _is_wanted(self, found: _Found) -> bool:
        counts = [len(mine) for mine in found.microbatches]
        return max(counts) - min(counts) <= (0 if self.equal else 1) and self.asked in (None, max(counts))

    def _as_they_come(self) -> Bins:
        if self.budget is not None or self.asked is None:
            return in_order(self.sizes.tokens, self.budget)
        bins = min(self.asked * self.replicas, len(self.sizes))
        return [part.tolist() for part in np.array_split(np.arange(len(self.sizes)), bins)]

    def in_turn(self) -> list[_Found]:
        bins = self._filled(self._padded(self._as_they_come()))
        return self._in_given_order(bins, np.arange(len(bins)).reshape(-1, self.replicas).T)

    def longest_first(self) -> list[_Found]:
        weights = self.times.sum(axis=1).tolist()
        shares = longest_first(weights, self.sizes.tokens, self._as_they_come(), self.budget, self.replicas)
        each = max(self.asked or 0, -(-len(shares[0]) // self.group) * self.group)
        shares = [mine + [[]] * (each - len(mine)) for mine in shares]
        bins = self._filled([samples for mine in shares for samples in mine])
        bins = _levelled(bins, each)
        return self._in_given_order(bins, np.arange(len(bins)).reshape(self.replicas, -1))

    def balanced(self) -> list[_Found]:
        packed = [self._packed(each) for each in self._counts()]
        return [self._shared(bins) for bins in packed if bins is not None]

    def _counts(self) -> list[int]:
        """Microbatches of a replica that are tried."""
        if self.asked is not None:
            return [self.asked]
        assert self.budget is not None
        fewest = first_fit_decreasing_count(self.sizes.tokens, self.budget)
        more = _MORE if len(self.sizes) <= _FEW else _MORE[1:2]
        unit = self.replicas * self.group
        return sorted({-(-int(factor * fewest) // unit) * self.group for factor in more})

    def _packed(self, each: int) -> Bins | None:
        works = _kinds(self.costs, self.sizes)
        most = len(self.sizes) if self.equal else -(-len(self.sizes) // self.replicas) * self.replicas
        for _ in range(_MOST_PACKINGS):
            bins = each * self.replicas
            if bins > most:
                return None
            found = pack(works, self.sizes.tokens, self.budget, min(bins, len(self.sizes)))
            if found is not None:
                return self._padded(found)
            if self.asked is not None:
                return None
            each += max(1, each // 20 // self.group) * self.group
        return None

    def _padded(self, bins: Bins) -> Bins:
        """With empty ones, as many for each replica."""
        unit = self.replicas * self.group
        return bins + [[]] * max(-len(bins) % unit, (self.asked or 0) * self.replicas - len(bins))

    def _filled(self, bins: Bins) -> Bins:
        """Each empty one takes the last sample of the one with most, while that has two."""
        if all(bins):
            return bins
        filled = [list(samples) for samples in bins]
        heap = [(-len(samples), place) for place, samples in enumerate(filled)]
        heapq.heapify(heap)
        for samples in filled:
            if samples or -heap[0][0] < 2:
                continue
            count, place = heap[0]
            samples.append(filled[place].pop())
            heapq.heapreplace(heap, (count + 1, place))
        return filled

    def _times(self, bins: Bins) -> Times:
        """[microbatch, stage]."""
        counts = np.fromiter((len(one) for one in bins), dtype=np.int64, count=len(bins))
        order = np.fromiter((sample for one in bins for sample in one), dtype=np.int64, count=int(counts.sum()))
        sums = np.concatenate([np.zeros((1, self.times.shape[1])), np.cumsum(self.times[order], axis=0)])
        last = np.cumsum(counts)
        of_bins: Times = sums[last] - sums[last - counts] + (counts > 0)[:, None] * self.costs.of_microbatch()
        return of_bins

    def _shared(self, bins: Bins) -> _Found:
        times = self._times(bins)
        shares = deal(times, self.replicas, [not one for one in bins])
        return self._found(bins, ordered(times, shares, self.costs.forward))

    def _in_given_order(self, bins: Bins, places: Places) -> list[_Found]:
        spans = makespans(self._times(bins)[places], self.costs.forward)
        return [self._found(bins, Shares(places, float(spans.max())))]

    def _found(self, bins: Bins, shares: Shares) -> _Found:
        taken = [[bins[microbatch] for microbatch in mine] for mine in shares.places.tolist()]
        if not self.equal:
            taken = [[samples for samples in mine if samples] for mine in taken]
        return _Found(taken, shares.makespan)


def _levelled(bins: Bins, each: int) -> Bins:
    """`each` bins of a replica behind those of the one before: who has most that are not empty gives to who has fewest,
    until they differ by one."""
    rows = [bins[first : first + each] for first in range(0, len(bins), each)]
    counts = [sum(map(bool, row)) for row in rows]
    while max(counts) - min(counts) > 1:
        most, least = counts.index(max(counts)), counts.index(min(counts))
        given = next(place for place in reversed(range(each)) if rows[most][place])
        taken = next(place for place in range(each) if not rows[least][place])
        rows[most][given], rows[least][taken] = rows[least][taken], rows[most][given]
        counts[most], counts[least] = counts[most] - 1, counts[least] + 1
    return [samples for row in rows for samples in row]


def _kinds(costs: Costs, sizes: Sizes) -> Times:
    """[sample, 2]: the work of its tokens, and that of its items, all stages together."""
    by_tokens = Costs(tuple(StageCosts(stage.tokens) for stage in costs.stages))
    tokens = by_tokens.of(Sizes(sizes.tokens)).sum(axis=1)
    return np.stack([tokens, costs.of(sizes).sum(axis=1) - tokens], axis=1)
