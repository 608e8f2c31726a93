"""Recomputation by pass, by Megatron's own checkpoints."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from ...errors import PipeweaverError
from ..actions import Compute, Stage
from .call import Call
from .core import core


def _block_of(chunk: torch.nn.Module) -> Any:
    """The chunk's TransformerBlock, None if it has none."""
    with contextlib.suppress(RuntimeError):
        found = core("utils").get_attr_wrapped_model(chunk, "decoder", allow_none=False)
        return found if hasattr(found, "_checkpointed_forward") and hasattr(found, "layers") else None
    return None


def check_recompute(call: Call, stage: Stage, action: Compute) -> None:
    """Raises PipeweaverError where the pass cannot be recomputed as planned."""
    if action.recompute == "none":
        return
    if action.recompute == "offload":
        raise PipeweaverError(f"the plan offloads activations of stage {stage.stage} to the host, which Megatron's "
                              "train_step does not do by pass: plan with --recompute none,half,full")
    if call.config.recompute_granularity is not None:
        raise PipeweaverError(f"the plan says what is recomputed, and so does config.recompute_granularity "
                              f"({call.config.recompute_granularity}): leave out one of them")
    if _block_of(call.model[call.chunk_of(stage.stage)]) is None:
        raise PipeweaverError(f"the plan recomputes {action.recompute} of stage {stage.stage}, whose chunk has no "
                              "TransformerBlock named decoder")
    if action.recompute.startswith("blocks:") and len(stage.parts) > 1:
        raise PipeweaverError(f"the plan recomputes {action.recompute} in each of the {len(stage.parts)} modules of "
                              f"stage {stage.stage}, Megatron counts the layers of one")


@contextlib.contextmanager
def recomputed(chunk: torch.nn.Module, recompute: str) -> Iterator[None]:
    """Inside, the chunk's forward keeps what `recompute` says. half: its first layers' inputs, half of the layers
    rounded up; blocks:N: the first N layers'; full: the first layer's alone."""
    block = None if recompute == "none" else _block_of(chunk)
    if block is None or not len(block.layers):
        yield
        return
    layers, config = len(block.layers), block.config
    number = (layers + 1) // 2 if recompute == "half" else int(recompute.partition(":")[2] or layers)
    asked = {"recompute_granularity": "full", "recompute_method": "uniform" if recompute == "full" else "block",
             "recompute_num_layers": min(number, layers)}
    before = {key: getattr(config, key) for key in asked}
    try:
        for key, value in asked.items():
            setattr(config, key, value)
        yield
    finally:
        for key, value in before.items():
            setattr(config, key, value)
