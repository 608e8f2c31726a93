"""Runs plans inside Megatron's train_step: `PlannedSchedule` stands where its forward_backward_func does.

megatron-core is loaded at the first call, not at the import."""

from .schedule import PlannedSchedule

__all__ = ["PlannedSchedule"]
