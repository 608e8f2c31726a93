"""One unit's forward and backward through one chunk: what autograd keeps, and when it lets go."""

from __future__ import annotations

import contextlib
import functools
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from .actions import Place
from .offload import Offload

Tensor = torch.Tensor


def task_seed(seed: int, replica: int, place: Place, copy: int = 0) -> int:
    """The seed of the random numbers that a pass draws: the same in its forward, its recomputation, and in any plan
    that has the pass. Copies of a stage draw others, the GPUs of a copy the same."""
    return zlib.crc32(repr((seed, replica, *place) + ((copy,) if copy else ())).encode())


@contextlib.contextmanager
def random_state(seed: int, device: torch.device) -> Iterator[None]:
    """Draws from `seed` inside; the generators are as before afterwards."""
    devices = [device] if device.type != "cpu" else []
    with torch.random.fork_rng(devices, device_type=device.type if devices else "cuda"):
        torch.manual_seed(seed)
        yield


def blocks_of(chunk: torch.nn.Module) -> list[torch.nn.Module]:
    """The chunk's repeated blocks: its `blocks`, or the children of a Sequential; none if it has neither."""
    blocks = getattr(chunk, "blocks", chunk if isinstance(chunk, torch.nn.Sequential) else ())
    return list(blocks)


def in_part(recompute: str) -> bool:
    """Whether blocks are recomputed one by one, some of them or parts of each."""
    return recompute not in ("none", "full", "offload")


@functools.cache
def _products() -> frozenset[object]:
    """What selective recomputation keeps: outputs of products, attention and convolutions."""
    aten = torch.ops.aten
    names = ("mm", "addmm", "bmm", "baddbmm", "linear", "convolution", "_scaled_mm", "_grouped_mm",
             "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
             "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_flash_attention_for_cpu",
             "_scaled_dot_product_fused_attention_overrideable")
    packets = [getattr(aten, name) for name in names if hasattr(aten, name)]
    return frozenset(getattr(packet, overload) for packet in packets for overload in packet.overloads())


def _kept_selectively(context: Any, operator: Any, *arguments: Any, **named: Any) -> Any:
    return CheckpointPolicy.MUST_SAVE if operator in _products() else CheckpointPolicy.PREFER_RECOMPUTE


def _blocks_again(blocks: Sequence[torch.nn.Module], recompute: str, layers: Sequence[int]) -> list[torch.nn.Module]:
    """All of them (selective), the first half (rounded up), or with blocks:N the first N of each of the stage's parts,
    where these are known."""
    if recompute == "selective":
        return list(blocks)
    if recompute == "half":
        return list(blocks[: (len(blocks) + 1) // 2])
    number = int(recompute.partition(":")[2])
    again: list[torch.nn.Module] = []
    begin = 0
    for count in layers if sum(layers) == len(blocks) else [len(blocks)]:
        again += blocks[begin : begin + min(number, count)]
        begin += count
    return again


def checkpointed(run: Callable[..., Any], recompute: str) -> Callable[..., Any]:
    """`run` that keeps its inputs alone for the backward; with `selective` also what its products and attentions give,
    so that norms and activation functions run again."""
    how: dict[str, Any] = {"use_reentrant": False}
    if recompute == "selective":
        how["context_fn"] = functools.partial(create_selective_checkpoint_contexts, _kept_selectively)
    return functools.partial(checkpoint, run, **how)


@contextlib.contextmanager
def recomputed_in_part(chunk: torch.nn.Module, recompute: str, layers: Sequence[int]) -> Iterator[None]:
    """Inside, the chosen blocks are checkpointed(). `layers`: of each part of the stage."""
    chosen = _blocks_again(blocks_of(chunk), recompute, layers)
    for block in chosen:
        block.__dict__["forward"] = checkpointed(block.forward, recompute)
    try:
        yield
    finally:
        for block in chosen:
            del block.__dict__["forward"]


class Pass:
    """Forward, then backward (B) or input gradient and weight gradient (I, W).

    `run` gives the chunk's output, or the weighted loss that follows it; `leaves` are its inputs from other passes,
    those with requires_grad get gradients. `recompute` is none, selective, half, full or blocks:N (run again in B or
    I), or offload (kept in the host's memory); `layers` are those of each part of the stage."""

    def __init__(self, chunk: torch.nn.Module, run: Callable[[], Tensor], leaves: Sequence[Tensor], recompute: str,
                 split: bool, backward: bool, layers: Sequence[int] = ()) -> None:
        self.weights = [weight for weight in chunk.parameters() if weight.requires_grad]
        self.chunk: torch.nn.Module | None = chunk
        self.run: Callable[[], Tensor] | None = run
        self.leaves = list(leaves)
        self.recompute = "full" if in_part(recompute) and not blocks_of(chunk) else recompute
        self.layers = layers
        # A checkpoint computes again for every weight's gradient apart, and what is on the host would come back for W
        # once more: I is then the whole backward.
        self.split = split and not in_part(self.recompute) and self.recompute != "offload"
        self.has_backward = backward
        self.output: Any = None
        self.kept_gradient: Tensor | None = None
        self.groups: list[dict[str, Any]] = []

    @property
    def alive(self) -> bool:
        """Whether activations of this pass are kept."""
        return self.output is not None or bool(self.groups)

    def forward(self) -> Tensor:
        """The detached output."""
        assert self.run is not None
        if not self.has_backward or self.recompute == "full":
            with torch.no_grad():
                output = self.run()
            if not self.has_backward:
                self._let_go()
            return output.detach()
        output = self._with_graph()
        self._keep(output)
        return output.detach()

    def again(self) -> None:
        """Runs a forward that is recomputed whole once more; to be called at the start of B or I."""
        if self.recompute == "full" and self.has_backward:
            self._keep(self._with_graph())

    def _with_graph(self) -> Tensor:
        assert self.run is not None and self.chunk is not None
        with torch.enable_grad(), self._keeping(self.chunk):
            return self.run()

    def _keeping(self, chunk: torch.nn.Module) -> contextlib.AbstractContextManager[None]:
        """Inside, a forward keeps what `recompute` says."""
        if self.recompute == "offload":
            return Offload(blocks_of(chunk), [*chunk.parameters(), *chunk.buffers(), *self.leaves]).forward()
        if in_part(self.recompute):
            return recomputed_in_part(chunk, self.recompute, self.layers)
        return contextlib.nullcontext()

    def _keep(self, output: Tensor) -> None:
        self.run = None
        if not output.requires_grad:
            return
        if self._splits():
            # Detached in place by the helper, which a view does not allow.
            self.output = output.clone() if output._is_view() else output
        else:
            # The edge keeps the graph, but not the output itself.
            self.output = torch.autograd.graph.get_gradient_edge(output)

    def _splits(self) -> bool:
        return self.split and bool(self.weights) and any(leaf.requires_grad for leaf in self.leaves)

    def backward(self, gradient: Tensor | None) -> list[Tensor | None]:
        """B: gradients of the leaves (None where there is none); weights accumulate theirs. `gradient` None: of a
        loss."""
        if self.output is not None:
            torch.autograd.backward([self.output], [gradient])
        gradients = [leaf.grad for leaf in self.leaves]
        self._let_go()
        return gradients

    def input_gradient(self, gradient: Tensor | None) -> list[Tensor | None]:
        """I: as backward(), without the weights'. Where no input has a gradient nothing is done until W; where no
        weight has one, or some blocks are recomputed or offloaded, this is the whole backward."""
        if self._splits() and self.output is not None:
            return self._input_gradient(gradient)
        if any(leaf.requires_grad for leaf in self.leaves):
            return self.backward(gradient)
        self.kept_gradient = gradient
        return [None for _ in self.leaves]

    def _input_gradient(self, gradient: Tensor | None) -> list[Tensor | None]:
        from torch.distributed.pipelining._backward import stage_backward_input

        output_gradients = None if gradient is None else [gradient]
        inputs, self.groups = stage_backward_input([self.output], output_gradients, self.leaves, iter(self.weights))
        gradients = list(inputs)
        self.output = None
        self.leaves = []
        return gradients

    def weight_gradient(self) -> None:
        """W."""
        from torch.distributed.pipelining._backward import stage_backward_weight

        if self.groups:
            stage_backward_weight(iter(self.weights), self.groups)
        elif self.output is not None:
            torch.autograd.backward([self.output], [self.kept_gradient])
        self._let_go()

    def _let_go(self) -> None:
        self.output, self.run, self.chunk, self.kept_gradient = None, None, None, None
        self.leaves, self.groups, self.weights = [], [], []
