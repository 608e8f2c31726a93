"""The packing scheduler that Megatron Core has since August 2026, by a model's costs.

    from pipeweaver.data import megatron_packing
    megatron_packing.register(costs)     # before wrap_data_iterator() runs

It is of `megatron.core.datasets.data_schedule`, for `sequence_packing_scheduler` "dp_balanced" of the configuration.
Imports Megatron; its release 0.16.1 has no such scheduler.
"""

from __future__ import annotations

from typing import Optional

from megatron.core.datasets import data_schedule

from .balancing import balance
from .costs import Costs
from .sizes import Sizes

try:
    from megatron.core.datasets.data_schedule import DpBalancedScheduler, PackingSchedulerEnum
except ImportError:
    raise ImportError(
        "this Megatron Core has no packing schedulers (they came in August 2026): pipeweaver.data.megatron_hybrid is "
        "for the releases before"
    ) from None


class PackingScheduler(DpBalancedScheduler):  # type: ignore[misc]
    """Which samples share a microbatch, and which data parallel rank runs it when; what else a step needs (fetching,
    sending, packing) is Megatron's own."""

    costs: Optional[Costs] = None

    def get_groups_and_subsamples(self, sample_id_seqlens: list[tuple[int, int]]) -> list[list[list[int]]]:
        """[microbatch][data and context parallel rank] -> ids. Context parallel ranks share a microbatch. Raises
        InputError where a sample is longer than a microbatch, or samples are too few."""
        sizes = Sizes([tokens for _, tokens in sample_id_seqlens], ids=[id for id, _ in sample_id_seqlens])
        assignment = balance(
            sizes,
            self.dp_size,
            budget=self.max_seqlen_per_dp_cp_rank * self.cp_size,
            costs=self.costs,
            group=self.microbatch_group_size_per_vp_stage or 1,
        )
        by_replica = [assignment.ids(replica) for replica in range(self.dp_size)]
        return [
            [by_replica[rank // self.cp_size][microbatch] for rank in range(self.dp_size * self.cp_size)]
            for microbatch in range(assignment.microbatches)
        ]


def register(costs: Optional[Costs] = None) -> type[PackingScheduler]:
    """Takes the place of `dp_balanced` in Megatron's map of schedulers. Returns the class."""
    named = type("PackingScheduler", (PackingScheduler,), {"costs": costs, "__module__": __name__})
    data_schedule.scheduler_map[PackingSchedulerEnum.DP_BALANCED] = named
    return named
