"""What frameworks ship: each round of microbatches is dealt anew, the longest sample first, then moved and swapped.

A round is one microbatch of every replica. Its samples go to whoever has least so far, within the budget of tokens and
a fifth above the round's average; then the most and the least loaded move or swap a sample while their loads differ by
more than 5 %. As LoongForge (--use-vlm-dp-balance), Megatron-Bridge (#4608) and VeOmni (#1194) describe theirs.
"""

from __future__ import annotations

import heapq

import numpy as np

from .pack import Bins
from .sizes import Counts

TOLERANCE = 0.05
LONGER = 1.2  # than the round's average
MOST_STEPS = 20


def longest_first(
    weights: list[float], tokens: Counts, bins: Bins, budget: int | None, replicas: int
) -> list[Bins]:
    """[replica][microbatch] -> samples of `bins`, as they come; a round deals as many of these as there are replicas. A
    replica has an empty microbatch where a round has fewer samples."""
    lengths = tokens.tolist()
    loads = [0.0] * replicas
    shares: list[Bins] = [[] for _ in range(replicas)]
    for first in range(0, len(bins), replicas):
        given = bins[first : first + replicas]
        given += [[] for _ in range(replicas - len(given))]
        taken = _dealt(given, weights, lengths, budget, loads) or given
        for replica, samples in enumerate(taken):
            shares[replica].append(samples)
            loads[replica] += sum(weights[sample] for sample in samples)
    return shares


class _Round:
    """Samples of a round at the replicas, with loads of all rounds before."""

    def __init__(self, weights: list[float], lengths: list[int], most: float, loads: list[float]) -> None:
        self.weights, self.lengths, self.most = weights, lengths, most
        self.loads = list(loads)
        self.tokens = [0] * len(loads)
        self.samples: Bins = [[] for _ in loads]

    def add(self, replica: int, sample: int, sign: int = 1) -> None:
        self.loads[replica] += sign * self.weights[sample]
        self.tokens[replica] += sign * self.lengths[sample]
        if sign > 0:
            self.samples[replica].append(sample)
        else:
            self.samples[replica].remove(sample)

    def deal(self, samples: list[int]) -> bool:
        """False: one has no place."""
        heap = [(load, replica) for replica, load in enumerate(self.loads)]
        heapq.heapify(heap)
        for sample in sorted(samples, key=lambda one: (-self.weights[one], one)):
            full = []
            while heap and self.tokens[heap[0][1]] + self.lengths[sample] > self.most:
                full.append(heapq.heappop(heap))
            if not heap:
                return False
            replica = heap[0][1]
            self.add(replica, sample)
            heapq.heapreplace(heap, (self.loads[replica], replica))
            for entry in full:
                heapq.heappush(heap, entry)
        return True

    def refine(self) -> None:
        for _ in range(MOST_STEPS):
            high, low = int(np.argmax(self.loads)), int(np.argmin(self.loads))
            gap = self.loads[high] - self.loads[low]
            if gap <= TOLERANCE * self.loads[high] or not self.samples[high]:
                return
            given = max(self.samples[high], key=lambda one: self.weights[one])
            taken = min(self.samples[low], key=lambda one: self.weights[one], default=None)
            then = [(self._gap(high, low, given, other), other is not None, other) for other in {None, taken}]
            left, _, other = min(then, key=lambda one: one[:2])
            if left >= gap:
                return
            self.add(high, given, -1)
            self.add(low, given)
            if other is not None:
                self.add(low, other, -1)
                self.add(high, other)

    def _gap(self, high: int, low: int, given: int, taken: int | None) -> float:
        """Between the two afterwards; infinite where it does not fit."""
        work, tokens = self.weights[given], self.lengths[given]
        if taken is not None:
            work, tokens = work - self.weights[taken], tokens - self.lengths[taken]
        if self.tokens[low] + tokens > self.most or self.tokens[high] - tokens > self.most:
            return float("inf")
        return abs(self.loads[high] - self.loads[low] - 2 * work)


def _dealt(
    given: Bins, weights: list[float], lengths: list[int], budget: int | None, loads: list[float]
) -> Bins | None:
    samples = [sample for one in given for sample in one]
    average = sum(lengths[sample] for sample in samples) / len(given)
    longest = max((lengths[sample] for sample in samples), default=0)
    most = max(LONGER * average, longest)
    round = _Round(weights, lengths, most if budget is None else min(most, budget), loads)
    if not round.deal(samples):
        return None
    round.refine()
    return round.samples
