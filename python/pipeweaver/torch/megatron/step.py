"""One call on one rank: passes are Megatron's own forward_step and backward_step."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from ..actions import Compute, Place, Reduce, Tensor
from ..clocks import clock_of
from ..program import Program
from ..transport import Transport
from ..walk import Walk
from .call import Call
from .core import core
from .data import Microbatches
from .recompute import recomputed
from .sync import GradientSync


class MegatronStep(Walk):
    """Runs the rank's list. `tokens` is the sum of what the loss function counted here; `most_alive` counts passes with
    activations at once."""

    def __init__(self, program: Program, transport: Transport, call: Call) -> None:
        super().__init__(program, transport, clock_of(call.device))
        self.call, self.schedules = call, core("pipeline_parallel.schedules")
        self.data = [Microbatches(iterator) for iterator in call.iterators]
        self.sync = GradientSync(call.config, call.model)
        self.tokens = torch.zeros([], dtype=torch.int, device=call.device)
        self.stores: dict[int, list[Any]] = {}  # by microbatch: what losses were reduced to
        self.kept: dict[Place, tuple[torch.Tensor | None, torch.Tensor]] = {}  # input and output
        self.begun: set[int] = set()  # chunks that have had a forward
        self.last = {action.place.stage: action.place for action in program.actions.actions
                     if isinstance(action, Compute) and action.op == "B"}
        self.most_alive = 0

    def data_store(self) -> list[Any]:
        """What forward_backward functions give: by microbatch, empty but on the last stage."""
        return [one for _, store in sorted(self.stores.items()) for one in store]

    def dtype_of(self, tensor: Tensor) -> torch.dtype:
        return self.call.dtype

    def reduce(self, action: Reduce) -> None:
        self.sync.complete([self.call.chunk_of(stage) for stage in action.stages])

    def compute(self, action: Compute) -> None:
        if action.op == "F":
            self._forward(action)
        else:
            self._backward(action.place)

    def _forward(self, action: Compute) -> None:
        place, links = action.place, self.program.links[action.place]
        x = None if links.previous is None else self.ready.pop(links.previous.tensor).detach()
        if x is not None and not self.call.forward_only:
            x.requires_grad_()
        output, tokens = self._forward_step(action, x)
        self.tokens += tokens.to(self.tokens.device)
        for tensor in links.out:
            self.hand_over(tensor, output.detach())
        if self.call.forward_only:
            return
        # What is sent has the memory; the output itself only leads to its graph.
        if links.out:
            self.schedules.deallocate_output_tensor(output, self.call.config.deallocate_pipeline_outputs)
        self.kept[place] = (x, output)
        self.most_alive = max(self.most_alive, len(self.kept))

    def _forward_step(self, action: Compute, x: torch.Tensor | None) -> tuple[Any, torch.Tensor]:
        """Output, or on the last stage the scaled loss, and the number of tokens."""
        call, place = self.call, action.place
        chunk = call.chunk_of(place.stage)
        first = self.schedules.check_first_val_step(call.first_val_step, call.forward_only, chunk not in self.begun)
        self.begun.add(chunk)
        with recomputed(call.model[chunk], action.recompute):
            output, tokens = self.schedules.forward_step(
                call.forward_step_func, self.data[chunk].of(place.microbatch), call.model[chunk],
                call.num_microbatches, x, self.stores.setdefault(place.microbatch, []), call.config,
                cp_group_size=call.groups.context.size(), collect_non_loss_data=call.collect_non_loss_data,
                is_first_microbatch=first, current_microbatch=place.microbatch,
                vp_stage=chunk if len(call.model) > 1 else None, is_last_stage=place.stage == call.stages - 1)
        return output, tokens

    def _backward(self, place: Place) -> None:
        links = self.program.links[place]
        x, output = self.kept.pop(place)
        gradients = [self.ready.pop(tensor.gradient) for tensor in links.out if tensor.gradient is not None]
        with self.sync.backward(self.last[place.stage] == place):
            gradient = self.schedules.backward_step(x, output, gradients[0] if gradients else None,
                                                    *self._model_type(), self.call.config)
        if links.previous is None or links.previous.gradient is None or x is None:
            return
        if gradient is None:  # the chunk does not depend on it
            gradient = torch.zeros_like(x)
        self.hand_over(self.program.actions.tensors[links.previous.gradient], gradient)

    def _model_type(self) -> tuple[Any, ...]:
        """megatron-core 0.16's backward_step takes it, later ones do not."""
        if "model_type" in inspect.signature(self.schedules.backward_step).parameters:
            return (self.schedules.get_model_type(self.call.model[0]),)
        return ()
