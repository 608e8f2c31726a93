"""One call of a forward_backward function: its arguments, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ...errors import PipeweaverError
from .core import core


@dataclass(frozen=True)
class Groups:
    """Process groups of this rank. `data` joins the context parallel ranks of all replicas; `experts` the ranks that
    exchange tokens in layers, None where there are no experts. `collection` is what Megatron's own functions take."""

    pipeline: Any
    tensor: Any
    context: Any
    data: Any
    experts: Any
    collection: Any

    @property
    def stages(self) -> int:
        return int(self.pipeline.size())

    @property
    def replicas(self) -> int:
        return int(self.data.size() // self.context.size())

    @property
    def replica(self) -> int:
        """Context parallel ranks of a replica are neighbours in `data`."""
        return int(self.data.rank() // self.context.size())


@dataclass(frozen=True)
class Call:
    """What train_step or evaluate asks for. `model` and `iterators` are lists, a chunk each."""

    forward_step_func: Callable[..., Any]
    iterators: Sequence[Any]
    model: Sequence[torch.nn.Module]
    num_microbatches: int
    seq_length: int
    micro_batch_size: int
    decoder_seq_length: int | None
    forward_only: bool
    collect_non_loss_data: bool
    first_val_step: bool | None
    adjust_tensor_shapes_fn: Callable[..., Any] | None
    force_all_reduce: bool
    groups: Groups
    config: Any = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", core("utils").get_model_config(self.model[0]))

    @property
    def stages(self) -> int:
        """Of the pipeline, all chunks counted."""
        return self.groups.stages * len(self.model)

    @property
    def device(self) -> torch.device:
        return device_of(self.model)

    def chunk_of(self, stage: int) -> int:
        """Megatron builds chunk v of pipeline rank r as stage v * PP + r."""
        return stage // self.groups.stages

    @property
    def dtype(self) -> torch.dtype:
        """Of what is sent."""
        found: torch.dtype | None = self.config.pipeline_dtype
        return found if found is not None else next(self.model[0].parameters()).dtype


def device_of(model: Sequence[torch.nn.Module]) -> torch.device:
    for chunk in model:
        for weight in chunk.parameters():
            return weight.device
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")


def listed(value: Any, chunks: int, what: str) -> list[Any]:
    """`value`, or the one value, as a list with an entry for each chunk."""
    found = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(found) != chunks:
        raise PipeweaverError(f"{what} has {len(found)} entries, there are {chunks} model chunks")
    return found


def groups_of(model: Sequence[torch.nn.Module], p2p_communicator: Any, pg_collection: Any) -> Groups:
    """The groups that were given, else those of parallel_state."""
    config = core("utils").get_model_config(model[0])
    collection = pg_collection if pg_collection is not None else _collection()
    if not hasattr(collection, "pp"):
        raise PipeweaverError("pg_collection is of several modules: a plan is run on one pipeline")
    pipeline = getattr(p2p_communicator, "pp_group", collection.pp)
    if p2p_communicator is not None and not hasattr(p2p_communicator, "pp_group"):
        raise PipeweaverError("p2p_communicator is of several modules: a plan is run on one pipeline")
    experts = None
    if getattr(config, "expert_model_parallel_size", 1) > 1:
        found = getattr(collection, "tp_ep", None)
        experts = found or core("parallel_state").get_expert_tensor_and_model_parallel_group()
    return Groups(pipeline, collection.tp, collection.cp, collection.dp_cp, experts, collection)


def _collection() -> Any:
    """As Megatron's schedules make it."""
    state = core("parallel_state")
    collection = core("process_groups_config").ProcessGroupCollection()
    collection.tp = state.get_tensor_model_parallel_group()
    collection.cp = state.get_context_parallel_group()
    collection.pp = state.get_pipeline_model_parallel_group()
    collection.embd = state.get_embedding_group(check_initialized=False)
    collection.pos_embd = state.get_position_embedding_group(check_initialized=False)
    collection.dp_cp = state.get_data_parallel_group(with_context_parallel=True, partial_data_parallel=False)
    return collection
