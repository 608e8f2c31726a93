"""Microbatches to replicas: as many for each, and pipelines that take equally long."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .costs import Times
from .pipeline import makespans

Places = npt.NDArray[np.int64]

_PAIRS = 400  # orders tried at once: all exchanges of two among 28 microbatches
_ROUNDS = 8
_PASSES = 2000  # of one pipeline, in all rounds: with more microbatches an exchange gains less


@dataclass(frozen=True)
class Shares:
    """`places` [replica, place]: numbers of microbatches in the order that they run in."""

    places: Places
    makespan: float  # of the slowest replica, in ns


def deal(times: Times, replicas: int, empty: list[bool]) -> Places:
    """Of [microbatch, stage]: the longest first, each to the replica whose busiest stage is then the least so, of those
    that have as few; then what is `empty`, so that replicas have as many that are not, or one less. Pre: the number of
    microbatches is a multiple of `replicas`."""
    each = len(times) // replicas
    weights = times.sum(axis=1)
    order = np.lexsort((np.arange(len(times)), -weights, np.array(empty, dtype=bool))).tolist()
    full = len(times) - sum(empty)
    least, more = divmod(full, replicas)
    heap = [(0.0, replica) for replica in range(replicas)]
    shares: list[list[int]] = [[] for _ in range(replicas)]
    of_each = weights.tolist()
    for microbatch in order[:full]:
        load, replica = heapq.heappop(heap)
        while len(shares[replica]) == least and more == 0:
            load, replica = heapq.heappop(heap)
        more -= len(shares[replica]) == least
        shares[replica].append(microbatch)
        if len(shares[replica]) <= least:
            heapq.heappush(heap, (load + of_each[microbatch], replica))
    rest = iter(order[full:])
    shares = [share + [next(rest) for _ in range(each - len(share))] for share in shares]
    return np.array([sorted(share) for share in shares], dtype=np.int64).reshape(replicas, each)


def ordered(times: Times, shares: Places, forward: float) -> Shares:
    """Each replica's microbatches in the best of a few orders; then the slowest replica exchanges places of two while
    that makes it faster."""
    weights = times.sum(axis=1)
    ahead = times[:, 0] - weights / times.shape[1]  # what the first stage has more of than others
    orders = np.stack([_sorted(shares, key) for key in (None, weights, -weights, ahead, -ahead)])
    orders = np.concatenate([orders, _mountains(orders[1:])])
    spans = _spans(times, orders.reshape(-1, shares.shape[1]), forward).reshape(orders.shape[:2])
    best = spans.argmin(axis=0)
    replicas = np.arange(len(shares))
    places, least = orders[best, replicas].copy(), spans[best, replicas].copy()
    if times.shape[1] > 1:
        _exchange(times, places, least, forward)
    return Shares(places, float(least.max()))


def _spans(times: Times, places: Places, forward: float) -> Times:
    return makespans(times[places], forward)


def _sorted(shares: Places, key: Times | None) -> Places:
    if key is None:
        return shares
    return np.take_along_axis(shares, np.argsort(key[shares], axis=1, kind="stable"), axis=1)


def _mountains(orders: Places) -> Places:
    """The first ones of each order at both ends, growing to the middle."""
    return np.concatenate([orders[..., ::2], orders[..., 1::2][..., ::-1]], axis=-1)


def _exchange(times: Times, places: Places, least: Times, forward: float) -> None:
    """Until the slowest replica finds no exchange."""
    first, second = np.triu_indices(places.shape[1], 1)
    if len(first) > _PAIRS:
        chosen = np.linspace(0, len(first) - 1, _PAIRS).astype(np.int64)
        first, second = first[chosen], second[chosen]
    if not len(first):
        return
    rows = np.arange(len(first))
    for _ in range(min(_ROUNDS, _PASSES // times[places[0]].size)):
        slowest = int(least.argmax())
        tried = np.repeat(places[slowest][None], len(first), axis=0)
        tried[rows, first], tried[rows, second] = places[slowest][second], places[slowest][first]
        spans = _spans(times, tried, forward)
        best = int(spans.argmin())
        if spans[best] >= least[slowest] * (1 - 1e-9):
            return
        places[slowest], least[slowest] = tried[best], spans[best]
