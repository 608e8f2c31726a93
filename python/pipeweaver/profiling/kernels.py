"""A function for each operator that runs it with PyTorch, on tensors of its own.

A step's work as eager PyTorch does it: matrix products in the layout of torch.nn.Linear, the weight gradient added to
one in fp32; scaled_dot_product_attention; norms, residual additions, rotary embeddings and activation functions one
kernel after the other; the loss over fp32 logits; Adam with fp32 weights, the copy to the number format of the passes,
and the cleared gradient. A backward runs on a graph that was made before, so no forward is timed with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.nn import functional

from .needs import Need
from .timing import Run

Tensor = torch.Tensor
Dtype = torch.dtype

_formats = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
_head = 64  # values that a rotary embedding takes together


class CannotRun(Exception):
    """PyTorch has no such operator here; says why."""


class Kernels:
    """Makes operators on a device; `dtype`: in this number format instead of the one that is asked for."""

    def __init__(self, device: torch.device, dtype: str | None = None) -> None:
        self._device = device
        self._dtype = dtype

    def make(self, need: Need) -> Run:
        """The operator, ready to run. Raises CannotRun, and torch.OutOfMemoryError."""
        name = self._dtype or need.row.get("dtype", "bf16")
        if name not in _formats:
            raise CannotRun(f"{name} is not measured")
        dtype = _formats[name]
        makers: dict[str, Callable[[Need, Dtype], Run]] = {"gemm": self._gemm, "attention": self._attention}
        try:
            return makers.get(need.table, self._memory_bound)(need, dtype)
        except (NotImplementedError, TypeError) as error:
            raise CannotRun(str(error).splitlines()[0]) from None

    def _gemm(self, need: Need, dtype: Dtype) -> Run:
        m, n, k = need["m"], need["n"], need["k"]
        if need.pass_ == "forward":
            x, w = self._random(dtype, m, k), self._random(dtype, n, k).t()
            return lambda: torch.mm(x, w)
        dy = self._random(dtype, m, n)
        if need.pass_ == "backward_input":
            w = self._random(dtype, n, k)
            return lambda: torch.mm(dy, w)
        x, gradient = self._random(dtype, m, k), self._zeros(n, k)
        if dtype == torch.float32:
            return lambda: gradient.addmm_(dy.t(), x)
        return lambda: gradient.add_(torch.mm(dy.t(), x))

    def _attention(self, need: Need, dtype: Dtype) -> Run:
        def heads(count: int) -> Tensor:
            # As a projection leaves them: heads beside one another in each position.
            return self._random(dtype, need["batch"], need["seq_len"], count, need["head_dim"]).transpose(1, 2)

        q, k, v = heads(need["q_heads"]), heads(need["kv_heads"]), heads(need["kv_heads"])
        grouped = need["q_heads"] != need["kv_heads"]

        def forward() -> Tensor:
            return functional.scaled_dot_product_attention(
                q, k, v, is_causal=need["causal"] == 1, enable_gqa=grouped
            )

        return self._passes(need, [q, k, v], lambda: [forward()])

    def _memory_bound(self, need: Need, dtype: Dtype) -> Run:
        kind = need.row["kind"]
        if kind == "norm_activation":
            return self._norms_and_activation(need, dtype)
        if kind == "embedding":
            return self._embedding(need, dtype)
        if kind == "cross_entropy":
            return self._cross_entropy(need, dtype)
        if kind == "optimizer":
            return self._optimizer(need, dtype)
        raise CannotRun(f"what kernels '{kind}' stands for is not known")

    def _norms_and_activation(self, need: Need, dtype: Dtype) -> Run:
        columns = need["columns"]
        streams = [self._random(dtype, need["rows"], columns) for _ in range(need["norms"])]
        branches = [self._random(dtype, need["rows"], columns) for _ in range(need["norms"])]
        weights = [self._random(dtype, columns) for _ in range(need["norms"])]
        rotated = self._random(dtype, max(need["rotated"] // _head, 0), _head)
        sine, cosine = self._random(dtype, _head // 2), self._random(dtype, _head // 2)
        gated = need["up"] > need["down"]
        up = [self._random(dtype, need["down"]) for _ in range(2 if gated else 1 if need["up"] else 0)]

        def norm(x: Tensor, weight: Tensor) -> Tensor:
            if gated:
                return functional.rms_norm(x, (columns,), weight)
            return functional.layer_norm(x, (columns,), weight)

        def forward() -> list[Tensor]:
            results = []
            for x, branch, weight in zip(streams, branches, weights):
                results.append(norm(x + branch, weight))
            if len(rotated):
                a, b = rotated.chunk(2, dim=-1)
                results.append(torch.cat((a * cosine - b * sine, b * cosine + a * sine), dim=-1))
            if gated:
                results.append(functional.silu(up[0]) * up[1])
            elif up:
                results.append(functional.gelu(up[0], approximate="tanh"))
            return results

        return self._passes(need, [*streams, *branches, *weights, *([rotated] if len(rotated) else []), *up], forward)

    def _embedding(self, need: Need, dtype: Dtype) -> Run:
        ids = torch.randint(0, need["vocab"], (need["rows"],), device=self._device)
        if need.pass_ == "forward":
            table = self._random(dtype, need["vocab"], need["columns"])
            return lambda: functional.embedding(ids, table)
        gradient, dy = self._zeros(need["vocab"], need["columns"]), self._random(dtype, need["rows"], need["columns"])
        return lambda: gradient.index_add_(0, ids, dy.float())

    def _cross_entropy(self, need: Need, dtype: Dtype) -> Run:
        logits = self._random(dtype, need["rows"], need["columns"])
        labels = torch.randint(0, need["columns"], (need["rows"],), device=self._device)
        return self._passes(need, [logits], lambda: [functional.cross_entropy(logits.float(), labels)])

    def _optimizer(self, need: Need, dtype: Dtype) -> Run:
        weight = self._random(torch.float32, need["columns"]).requires_grad_()
        weight.grad = self._random(torch.float32, need["columns"])
        gradient, used = weight.grad, torch.empty_like(weight, dtype=dtype, requires_grad=False)
        adam = torch.optim.AdamW([weight], lr=1e-6, fused=True)

        def step() -> None:
            adam.step()
            with torch.no_grad():
                used.copy_(weight)
                gradient.zero_()

        return step

    def _passes(self, need: Need, inputs: Sequence[Tensor], forward: Callable[[], list[Tensor]]) -> Run:
        """The forward, or the backward after one."""
        if need.pass_ == "forward":
            return _without_graph(forward)
        for tensor in inputs:
            tensor.requires_grad_()
        results = forward()
        gradients = [torch.ones_like(result) for result in results]
        return lambda: torch.autograd.grad(results, inputs, gradients, retain_graph=True)

    def _random(self, dtype: Dtype, *shape: int) -> Tensor:
        return torch.randn(shape, dtype=dtype, device=self._device).mul_(0.1)

    def _zeros(self, *shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.float32, device=self._device)


def _without_graph(forward: Callable[[], list[Tensor]]) -> Run:
    def run() -> list[Tensor]:
        with torch.no_grad():
            return forward()

    return run


def bytes_of(need: Need) -> int:
    """About what the operator and its tensors take, for a look at what is free."""
    if need.table == "gemm":
        m, n, k = need["m"], need["n"], need["k"]
        return 4 * (m * k + n * k + m * n) + 4 * n * k
    if need.table == "attention":
        positions = need["batch"] * need["seq_len"] * need["head_dim"]
        return 12 * positions * (2 * need["q_heads"] + 2 * need["kv_heads"])
    if need.row["kind"] == "optimizer":
        return 20 * need["columns"]  # a weight, its gradient, two moments and the copy; their traffic is more
    return 3 * need["traffic_bytes"] + 8 * need["vocab"] * need["columns"]
