"""Names of Megatron Core as of August 2026 that its installed release lacks."""

import enum
import sys

import pytest
from absent import needed


@pytest.fixture
def newer_megatron(monkeypatch):
    """The module with the schedulers, and in it what ours rest on, with the signature that it has there."""
    data_schedule = needed("megatron.core.datasets.data_schedule")

    class DpBalancedScheduler:
        def __init__(self, max_seqlen_per_dp_cp_rank, cp_size, dp_size, microbatch_group_size_per_vp_stage):
            self.max_seqlen_per_dp_cp_rank, self.cp_size, self.dp_size = max_seqlen_per_dp_cp_rank, cp_size, dp_size
            self.microbatch_group_size_per_vp_stage = microbatch_group_size_per_vp_stage

        def get_required_sample_keys(self):
            return ["tokens"]

    names = enum.Enum("PackingSchedulerEnum", {"DP_BALANCED": "dp_balanced"})
    for name, value in {"DpBalancedScheduler": DpBalancedScheduler, "PackingSchedulerEnum": names,
                        "scheduler_map": {names.DP_BALANCED: DpBalancedScheduler}}.items():
        monkeypatch.setattr(data_schedule, name, value, raising=False)
    forget()
    yield data_schedule
    forget()


def forget():
    """Our class is of the Megatron that was there when it was imported."""
    sys.modules.pop("pipeweaver.data.megatron_packing", None)
    vars(sys.modules.get("pipeweaver.data", forget)).pop("megatron_packing", None)
