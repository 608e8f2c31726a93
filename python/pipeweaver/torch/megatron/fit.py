"""Whether a plan is one for this call of Megatron's, and whether this configuration can be run in any order."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import PipeweaverError
from ..actions import Actions, Compute, Place, RankActions, Stage
from .call import Call
from .core import core
from .recompute import check_recompute

# What of Megatron rests on its own order of passes: key of its config, the value that is allowed, why.
NEEDS_ITS_OWN_ORDER = (
    ("overlap_moe_expert_parallel_comm", False, "it merges passes of two microbatches"),
    ("hybrid_context_parallel", False, "it has microbatches of its own"),
    ("fine_grained_activation_offloading", False, "it loads activations in the order of its own schedule"),
    ("defer_embedding_wgrad_compute", False, "it pairs activations and gradients by Megatron's order"),
    ("num_microbatches_with_partial_activation_checkpoints", None, "it counts microbatches in Megatron's order"),
    ("delay_wgrad_compute", False, "it computes weight gradients in Megatron's order"),
    ("mtp_standalone", False, "its stages send other shapes"),
    ("cuda_graph_impl", "none", "graphs are replayed in the order in which they were captured"),
)


def check_call(call: Call) -> None:
    """Raises PipeweaverError with what cannot be run under any plan."""
    config = call.config
    for key, allowed, why in NEEDS_ITS_OWN_ORDER:
        value = getattr(config, key, allowed)
        if value != allowed:
            raise PipeweaverError(f"config.{key} is {value}, must be {allowed}: {why}")
    if call.groups.stages > 1 and config.pipeline_dtype is None:
        raise PipeweaverError("config.pipeline_dtype is None, the type of what stages send is needed")
    chunks = getattr(config, "virtual_pipeline_model_parallel_size", None) or 1
    if chunks != len(call.model):
        raise PipeweaverError(f"config.virtual_pipeline_model_parallel_size is {chunks}, there are {len(call.model)} "
                              "model chunks")
    if call.adjust_tensor_shapes_fn is not None and len(call.model) > 1:
        raise PipeweaverError("adjust_tensor_shapes_fn is given, Megatron has none with several model chunks")
    given = [id(one) for one in call.iterators if one is not None]
    if len(set(given)) < len(given):
        raise PipeweaverError("data_iterator has the same iterator for two model chunks, each needs its own")
    kind = getattr(core("enums").ModelType, "encoder_and_decoder", None)
    if kind is not None and core("utils").get_model_type(call.model[0]) == kind:
        raise PipeweaverError("the model is an encoder and a decoder, a plan is run on one row of stages")


def check_plan(call: Call, actions: Actions | RankActions) -> None:
    """Raises PipeweaverError unless the plan is for these ranks, chunks and replicas."""
    groups = call.groups
    if actions.ranks != groups.stages:
        raise PipeweaverError(f"the plan is for {actions.ranks} ranks, the pipeline has {groups.stages}")
    if actions.replicas not in (1, groups.replicas):
        raise PipeweaverError(f"the plan is for {actions.replicas} replicas, there are {groups.replicas}")
    if actions.replicas > 1 and actions.replica != groups.replica:
        raise PipeweaverError(f"the plan is of replica {actions.replica}, this is replica {groups.replica}")
    _check_stages(call, actions.stages)


def _check_stages(call: Call, stages: Mapping[int, Stage]) -> None:
    chains = sorted({stage.chain for stage in stages.values()})
    if len(chains) != 1:
        raise PipeweaverError(f"the plan has the chains {', '.join(chains)}, Megatron's schedule runs one")
    if sorted(stages) != list(range(call.stages)):
        raise PipeweaverError(f"the plan has {len(stages)} stages, {len(call.model)} model chunks on each of "
                              f"{call.groups.stages} ranks are {call.stages}")
    for number, stage in sorted(stages.items()):
        if stage.rank != number % call.groups.stages:
            raise PipeweaverError(f"stage {number} is on rank {stage.rank} in the plan, Megatron builds it on rank "
                                  f"{number % call.groups.stages}")
        if not (stage.trainable and stage.gradient):
            raise PipeweaverError(f"stage {number} is frozen in the plan, Megatron's schedule trains all stages")


def check_passes(call: Call, own: RankActions) -> None:
    """Raises PipeweaverError unless each of the rank's stages has one F and one B of each microbatch."""
    found: dict[str, set[Place]] = {"F": set(), "B": set()}
    for action in own.actions:
        if not isinstance(action, Compute):
            continue
        if action.op in "IW":
            raise PipeweaverError(f"the plan splits the backward of {action.place}, Megatron's layers give both "
                                  "gradients at once: plan with --split never")
        if action.place.item:
            raise PipeweaverError(f"the plan has sub-microbatches ({action.place}), Megatron passes microbatches whole")
        check_recompute(call, own.stages[action.place.stage], action)
        found[action.op].add(action.place)
    numbers = {place.microbatch for place in found["F"]}
    if numbers != set(range(call.num_microbatches)):
        raise PipeweaverError(f"the plan has {len(numbers)} microbatches, num_microbatches is {call.num_microbatches}")
    for stage in own.on_rank(own.rank):
        for op, places in found.items():
            left = numbers - {place.microbatch for place in places if place.stage == stage}
            if left:
                raise PipeweaverError(f"microbatch {min(left)} has no {op} of stage {stage} in the plan, in Megatron "
                                      "each passes all stages")
