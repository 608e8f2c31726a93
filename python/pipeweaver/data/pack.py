"""Samples into bins that are alike: in every kind of work, within a budget of tokens.

The longest sample goes first, each into the bin whose larger kind of work is then smallest.
"""

from __future__ import annotations

import bisect
import heapq

import numpy as np

from .costs import Times
from .sizes import Counts

Bins = list[list[int]]

_LOOKS = 250_000  # at bins, for all samples together: what keeps packing at microseconds a sample
_FEWEST_LOOKS = 3
_FILLED = 1e-12  # a bin with samples that cost nothing comes after an empty one


def relative(works: Times, bins: int) -> Times:
    """Parts of an average bin's work of each kind. Nothing has a part in a kind that nothing has."""
    totals = works.sum(axis=0)
    parts: Times = works * (bins / np.where(totals > 0, totals, np.inf))
    return parts


def pack(works: Times, tokens: Counts, budget: int | None, bins: int) -> Bins | None:
    """[sample, kind], of two kinds -> so many bins, each with a sample at least; None where they are not found to hold
    all. Pre: as many samples, none above the budget."""
    parts = relative(works, bins)
    packing = _Packing(bins, int(tokens.sum()) if budget is None else budget)
    looks = max(_FEWEST_LOOKS, _LOOKS // max(1, len(parts)))
    order = np.lexsort((np.arange(len(parts)), -tokens, -parts.max(axis=1)))
    columns = (order, tokens[order], parts[order, 0], parts[order, 1])
    for sample, size, one, other in zip(*(column.tolist() for column in columns)):
        if not packing.add(sample, size, one, other, looks):
            return None
    return packing.bins


class _Packing:
    """Entries of the heaps that a bin has left behind since are dropped where they are met."""

    def __init__(self, bins: int, budget: int) -> None:
        self.bins: Bins = [[] for _ in range(bins)]
        self.rooms = [budget] * bins
        self.ones, self.others = [0.0] * bins, [0.0] * bins  # loads by kind
        self.least = [(0.0, bin, 0) for bin in range(bins)]  # the larger load, bin, its samples
        self.roomiest = [(-budget, bin) for bin in range(bins)]

    def add(self, sample: int, size: int, one: float, other: float, looks: int) -> bool:
        """To the bin whose larger load is then the least, of so many that have least now; where none of these has room,
        to the one with most. False: that has not either."""
        heap, bins, rooms, ones, others = self.least, self.bins, self.rooms, self.ones, self.others
        best, least = -1, float("inf")
        seen = []
        while heap and looks > 0 and heap[0][0] < least:
            entry = heapq.heappop(heap)
            bin = entry[1]
            if entry[2] != len(bins[bin]):
                continue
            looks -= 1
            seen.append(entry)
            if rooms[bin] < size:
                continue
            first, second = ones[bin] + one, others[bin] + other
            then = first if first > second else second
            if then < least:
                best, least = bin, then
            if not entry[2]:
                break  # all empty bins are alike
        if best < 0:
            best = self._with_most_room()
        for entry in seen:
            if entry[1] != best:
                heapq.heappush(heap, entry)
        return self._put(best, sample, size, one, other)

    def _with_most_room(self) -> int:
        while -self.roomiest[0][0] != self.rooms[self.roomiest[0][1]]:
            heapq.heappop(self.roomiest)
        return self.roomiest[0][1]

    def _put(self, bin: int, sample: int, size: int, one: float, other: float) -> bool:
        if self.rooms[bin] < size:
            return False
        self.bins[bin].append(sample)
        self.rooms[bin] -= size
        self.ones[bin] += one
        self.others[bin] += other
        load = max(self.ones[bin], self.others[bin]) + _FILLED
        heapq.heappush(self.least, (load, bin, len(self.bins[bin])))
        heapq.heappush(self.roomiest, (-self.rooms[bin], bin))
        return True


def in_order(tokens: Counts, budget: int | None) -> Bins:
    """As a loader packs: a bin is closed where the next sample does not fit. Without a budget one of each sample."""
    if budget is None:
        return [[sample] for sample in range(len(tokens))]
    packed: Bins = []
    room = -1
    for sample, size in enumerate(tokens.tolist()):
        if size > room:
            packed.append([])
            room = budget
        packed[-1].append(sample)
        room -= size
    return packed


def first_fit_decreasing_count(tokens: Counts, budget: int) -> int:
    """Bins that a best-fit of the longest first takes, by counts of equal room: O(samples * budget's bits)."""
    rooms: list[int] = []  # sorted
    for size in np.sort(tokens)[::-1].tolist():
        place = bisect.bisect_left(rooms, size)
        left = budget - size if place == len(rooms) else rooms.pop(place) - size
        bisect.insort(rooms, left)
    return len(rooms)
