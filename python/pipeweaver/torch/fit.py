"""Whether this process can run a program: its chunks, the tensors' shapes, the calls of this PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import torch

from ..errors import PipeweaverError
from .actions import Compute, Stage
from .passes import in_part
from .program import DTYPES, Program


def check_fit(program: Program, chunks: Mapping[int, torch.nn.Module]) -> None:
    """Raises PipeweaverError that says what is missing."""
    _check_torch(program)
    _check_chunks(program, chunks)
    _check_shapes(program)


def _check_chunks(program: Program, chunks: Mapping[int, torch.nn.Module]) -> None:
    """There is a chunk for each of the rank's stages and no other, frozen where the plan has it frozen."""
    for number, stage in sorted(program.stages.items()):
        if number not in chunks:
            parts = " and ".join(_part_text(stage, k) for k in range(len(stage.parts)))
            raise PipeweaverError(f"there is no chunk for stage {number} ({parts}), which the plan has here")
        trained = any(weight.requires_grad for weight in chunks[number].parameters())
        if trained and not stage.trainable:
            raise PipeweaverError(f"stage {number} is frozen in the plan, but its chunk has parameters that require "
                                  "gradients")
    for number in sorted(chunks):
        if number not in program.stages:
            there = f"on rank {program.actions.stages[number].rank}" if number in program.actions.stages else "nowhere"
            raise PipeweaverError(f"there is a chunk for stage {number}, which the plan has {there}")


def _part_text(stage: Stage, k: int) -> str:
    part = stage.parts[k]
    if part.layers is None or part.first_layer is None:
        return part.module
    return f"{part.module} layers {part.first_layer} to {part.first_layer + part.layers - 1}"


def _check_shapes(program: Program) -> None:
    for tensor in program.actions.tensors.values():
        if tensor.shape is None:
            raise PipeweaverError(f"tensor {tensor.tensor} of stage {tensor.source.stage} has no shape: give the "
                                  "stages' output shapes, actions.with_shapes({stage: shape})")
        if tensor.dtype not in DTYPES:
            raise PipeweaverError(f"tensor {tensor.tensor}: is of type '{tensor.dtype}', known are {', '.join(DTYPES)}")


def _check_torch(program: Program) -> None:
    if any(in_part(action.recompute) for action in program.actions.actions if isinstance(action, Compute)):
        # What torch.utils.checkpoint loads at its first call, which takes seconds: not in the middle of a step.
        importlib.import_module("torch._dynamo")
    missing = [] if hasattr(torch.autograd.graph, "get_gradient_edge") else ["torch.autograd.graph.get_gradient_edge"]
    if any(link.split for link in program.links.values()):
        try:
            from torch.distributed.pipelining import _backward

            missing += [f"torch.distributed.pipelining._backward.{name}"
                        for name in ("stage_backward_input", "stage_backward_weight") if not hasattr(_backward, name)]
        except ImportError:
            missing.append("torch.distributed.pipelining._backward")
    if missing:
        raise PipeweaverError(f"PyTorch {torch.__version__} has no {' and no '.join(missing)}, which this plan needs")
