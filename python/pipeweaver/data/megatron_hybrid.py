"""The scheduler of Megatron Core 0.16 (hybrid context parallelism), with costs of a model in place of squares.

    from pipeweaver.data import megatron_hybrid
    megatron_hybrid.register(costs)     # before the data iterator is wrapped

Imports Megatron.
"""

from __future__ import annotations

import copy
import heapq
from collections import Counter
from typing import Any, Optional

from megatron.core.datasets import data_schedule
from megatron.core.pipeline_parallel.hybrid_cp_schedule import BalancedCPScheduler

from .costs import Costs

Samples = list[tuple[int, int]]  # (id, tokens)


class HybridScheduler(BalancedCPScheduler):  # type: ignore[misc]
    """Samples by group and GPU of the data and context parallel ranks; a sample that is too long for one GPU is on as
    many neighbours as it needs.

    Deals all sizes side by side in one group, each on its part of the GPUs, the longest first: nobody waits for a next
    group. Where the sizes do not go side by side, or Megatron's own answer (by these costs or by squares) takes less by
    these costs, it is that."""

    costs: Optional[Costs] = None

    def get_total_workload(self, seq_length: int, cp_size: Optional[int] = None) -> float:
        """Of a sample on each of its GPUs: by `costs`, else its square."""
        gpus = self.gpus_needed(seq_length) if cp_size is None else cp_size
        a, b, c = (1.0, 0.0, 0.0) if self.costs is None else self.costs.of_tokens()
        return ((a * seq_length + b) * seq_length + c) / gpus

    def gpus_needed(self, seq_len: int) -> int:
        """As Megatron has it, where an empty sample needs one as well."""
        return int(super().gpus_needed(max(1, seq_len)))

    def get_groups_and_subsamples(self, sample_id_seqlens: Samples, config: Any) -> tuple[Any, Any]:
        """(lengths, ids) by group and GPU."""
        mine = self._side_by_side(sorted(sample_id_seqlens, key=lambda one: (-one[1], one[0])))
        plain = copy.copy(self)
        plain.costs = None
        theirs = [of._of_megatron(sample_id_seqlens, config) for of in (self, plain)]
        found = [one for one in (mine, *theirs) if one is not None]
        if not found:
            raise RuntimeError(
                f"{len(sample_id_seqlens)} samples do not go on {self.total_hdp_gpus} GPUs; raise "
                "max_seqlen_per_dp_cp_rank or the global batch"
            )
        return min(found, key=self.time_of)

    def time_of(self, schedule: tuple[Any, Any]) -> float:
        """Groups wait for each other: the sum of what each one's slowest GPU takes."""
        total = 0.0
        for group, ids in zip(*schedule):
            gpus = Counter(id for mine in ids for id in mine)
            total += max(
                sum(self.get_total_workload(length, gpus[id]) for length, id in zip(lengths, mine))
                for lengths, mine in zip(group, ids)
            )
        return total

    def _of_megatron(self, samples: Samples, config: Any) -> Optional[tuple[Any, Any]]:
        """None where it asserts or lacks an answer, as it does with few samples."""
        try:
            schedule: tuple[Any, Any] = super().get_groups_and_subsamples(samples, config)
        except (AssertionError, TypeError, IndexError):
            return None
        return schedule

    def _side_by_side(self, samples: Samples) -> Optional[tuple[Any, Any]]:
        by_need: dict[int, Samples] = {}
        for sample in samples:
            by_need.setdefault(self.gpus_needed(sample[1]), []).append(sample)
        widths = self._widths(by_need)
        if widths is None:
            return None
        lengths: list[list[int]] = []
        ids: list[list[int]] = []
        for need, width in sorted(widths.items(), reverse=True):
            for block in self._dealt(by_need[need], need, width // need):
                lengths += [[length for _, length in block] for _ in range(need)]
                ids += [[id for id, _ in block] for _ in range(need)]
        return [lengths], [ids]

    def _widths(self, by_need: dict[int, Samples]) -> Optional[dict[int, int]]:
        """GPUs for the samples of each need, by their work; None where they do not all have some."""
        left = self.total_hdp_gpus
        widths = {need: need for need in by_need}
        left -= sum(widths.values())
        work = {need: need * sum(self.get_total_workload(length) for _, length in of) for need, of in by_need.items()}
        while left > 0:
            open_to = [need for need in widths if need <= left and widths[need] // need < len(by_need[need])]
            if not open_to:
                return None
            busiest = max(open_to, key=lambda need: (work[need] / widths[need], need))
            widths[busiest] += busiest
            left -= busiest
        return widths if left == 0 else None

    def _dealt(self, samples: Samples, need: int, blocks: int) -> list[Samples]:
        """The longest first, each to the block that has least."""
        heap = [(0.0, block) for block in range(blocks)]
        dealt: list[Samples] = [[] for _ in range(blocks)]
        for sample in samples:
            load, block = heap[0]
            dealt[block].append(sample)
            heapq.heapreplace(heap, (load + self.get_total_workload(sample[1], need), block))
        return dealt


def register(costs: Optional[Costs] = None) -> type[HybridScheduler]:
    """Makes HybridCPDataLoaderWrapper build this scheduler, with these costs. Returns the class."""
    named = type("HybridScheduler", (HybridScheduler,), {"costs": costs, "__module__": __name__})
    data_schedule.BalancedCPScheduler = named
    return named

