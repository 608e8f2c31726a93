"""How long replicas take under 1F1B, by the times of their microbatches on each stage; many pipelines at once.

No transfers: what is compared are orders and shares of the same microbatches.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .costs import Times


@lru_cache(maxsize=64)
def _order(stages: int, microbatches: int) -> tuple[tuple[int, bool, int], ...]:
    """Passes as (stage, is a backward, microbatch), each behind all that it waits for."""
    lists = [_of_stage(stages - stage - 1, microbatches) for stage in range(stages)]
    done: set[tuple[int, bool, int]] = set()
    order: list[tuple[int, bool, int]] = []
    at = [0] * stages
    while len(order) < 2 * stages * microbatches:
        for stage in range(stages):
            while at[stage] < 2 * microbatches:
                backward, microbatch = lists[stage][at[stage]]
                before = (stage + 1, True, microbatch) if backward else (stage - 1, False, microbatch)
                if 0 <= before[0] < stages and before not in done:
                    break
                done.add((stage, backward, microbatch))
                order.append((stage, backward, microbatch))
                at[stage] += 1
    return tuple(order)


def _of_stage(ahead: int, microbatches: int) -> list[tuple[bool, int]]:
    """One stage's passes: `ahead` forwards, then forwards and backwards in turn, then the backwards that are left."""
    warm = min(ahead, microbatches)
    passes = [(False, m) for m in range(warm)]
    for m in range(warm, microbatches):
        passes += [(False, m), (True, m - warm)]
    return passes + [(True, m) for m in range(microbatches - warm, microbatches)]


def makespans(times: Times, forward: float) -> Times:
    """[pipeline] of [pipeline, microbatch, stage], forward and backward together; `forward` is the first's part."""
    pipelines, microbatches, stages = times.shape
    if stages == 1 or microbatches == 0:
        total: Times = times.sum(axis=(1, 2))
        return total
    durations = np.ascontiguousarray(times.transpose(2, 1, 0))  # [stage, microbatch, pipeline]
    halves = (forward * durations, (1 - forward) * durations)
    free = np.zeros((stages, pipelines))
    ends = np.zeros((2, stages + 2, microbatches, pipelines))  # a stage before the first and one behind the last
    for stage, backward, microbatch in _order(stages, microbatches):
        before = ends[int(backward), stage + (2 if backward else 0), microbatch]
        np.maximum(free[stage], before, out=free[stage])
        free[stage] += halves[backward][stage, microbatch]
        ends[int(backward), stage + 1, microbatch] = free[stage]
    slowest: Times = free.max(axis=0)
    return slowest
