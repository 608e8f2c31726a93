"""Parts of chunks that several GPUs of a rank run: attention over split sequences, tensor parallel products.

Functions work on rows, the first dimension, and are differentiable. Every GPU of the group calls them together; where
all have the same number of rows they are padded with zeros behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from ..errors import PipeweaverError
from .step import Share
from .unit_shares import Piece

Tensor = torch.Tensor
Attend = Callable[[Tensor, Tensor, Tensor, Sequence[int]], Tensor]


def inner_groups(inner: Any, tp: int) -> tuple[Any, Any]:
    """This process's groups inside its rank, for stages whose copies have `tp` GPUs: those of its copy, and those with
    the same number in all copies. Called by all processes of `inner` together."""
    ranks, me = dist.get_process_group_ranks(inner), dist.get_rank(inner)
    if tp < 1 or len(ranks) % tp:
        raise PipeweaverError(f"tp is {tp}, allowed is what divides the rank's {len(ranks)} GPUs")
    first = me - me % tp
    return tuple(dist.new_group(found, backend=dist.get_backend(inner), use_local_synchronization=True)
                 for found in (ranks[first:first + tp], ranks[me % tp::tp]))


def rows_of_part(rows: int, group: Any) -> int:
    """Rows that each GPU of the group has of so many, zeros behind the last ones included."""
    return -(-rows // dist.get_world_size(group))


def _padded(x: Tensor, rows: int) -> Tensor:
    return x if len(x) == rows else torch.cat([x, x.new_zeros((rows - len(x), *x.shape[1:]))])


def _gather(x: Tensor, group: Any, rows: int) -> Tensor:
    found = [torch.empty_like(x, memory_format=torch.contiguous_format) for _ in range(dist.get_world_size(group))]
    if x.numel():
        dist.all_gather(found, x.contiguous(), group=group)
    return torch.cat(found)[:rows]


def _own(x: Tensor, group: Any) -> Tensor:
    each = rows_of_part(len(x), group)
    return _padded(x, each * dist.get_world_size(group))[dist.get_rank(group) * each:][:each]


def _reduce_scatter(x: Tensor, group: Any) -> Tensor:
    size, each = dist.get_world_size(group), rows_of_part(len(x), group)
    found = x.new_empty((each, *x.shape[1:]))
    if found.numel():
        dist.reduce_scatter(found, list(_padded(x, each * size).contiguous().chunk(size)), group=group)
    return found


def _all_reduce(x: Tensor, group: Any) -> Tensor:
    total = x.clone(memory_format=torch.contiguous_format)
    if total.numel():
        dist.all_reduce(total, group=group)
    return total


def _apply(function: Any, *arguments: Any) -> Tensor:
    found: Tensor = function.apply(*arguments)
    return found


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any, rows: int, alike: bool) -> Tensor:
        ctx.group, ctx.alike, ctx.each = group, alike, len(x)
        return _gather(x, group, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        whole = _padded(gradient, ctx.each * dist.get_world_size(ctx.group))
        return (_own if ctx.alike else _reduce_scatter)(whole, ctx.group), None, None, None


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        ctx.group, ctx.rows = group, len(x)
        return _own(x, group).clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        return _gather(gradient, ctx.group, ctx.rows), None


class _ReduceScatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        ctx.group, ctx.rows = group, len(x)
        return _reduce_scatter(x, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        return _gather(gradient, ctx.group, ctx.rows), None


class _Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        return _all_reduce(gradient, ctx.group), None


class _Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any) -> Tensor:
        return _all_reduce(x, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        return gradient, None


def gather_rows(x: Tensor, group: Any, rows: int, alike: bool = False) -> Tensor:
    """[rows of a part, ...] -> [rows, ...]. The gradients of the group's GPUs are summed; with `alike` all do the same
    with the whole, and have the same gradient."""
    return _apply(_Gather, x, group, rows, alike)


def scatter_rows(x: Tensor, group: Any, alike: bool = False) -> Tensor:
    """[rows, ...], the same on all GPUs -> this one's part. The gradient is that of its own part alone; with `alike`
    the whole one, for what all have done alike to get x."""
    return _apply(_Scatter, x, group) if alike else _own(x, group)


def reduce_rows(x: Tensor, group: Any) -> Tensor:
    """[rows, ...], of which the sum over the group is meant -> this GPU's part of the sum."""
    return _apply(_ReduceScatter, x, group)


class ColumnParallel(torch.nn.Module):
    """x W^T + b of which each GPU of `group` has `outputs / size` columns; weights are those of torch.nn.Linear with
    the same seed. x is whole, or with `sequence_parallel` this GPU's part of `rows`."""

    def __init__(self, inputs: int, outputs: int, group: Any, sequence_parallel: bool = False, bias: bool = True,
                 dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.group, self.sequence_parallel = group, sequence_parallel
        whole = torch.nn.Linear(inputs, outputs, bias=bias, dtype=dtype)
        self.weight = _parameter(whole.weight, 0, group)
        self.bias = _parameter(whole.bias, 0, group) if bias else None

    def forward(self, x: Tensor, rows: int | None = None) -> Tensor:
        if self.sequence_parallel:
            x = gather_rows(x, self.group, len(x) * dist.get_world_size(self.group) if rows is None else rows)
        else:
            x = _apply(_Copy, x, self.group)
        return torch.nn.functional.linear(x, self.weight, self.bias)


class RowParallel(torch.nn.Module):
    """x W^T + b of which each GPU of `group` has `inputs / size` columns of x. Gives the whole sum, or with
    `sequence_parallel` this GPU's part of its rows."""

    def __init__(self, inputs: int, outputs: int, group: Any, sequence_parallel: bool = False, bias: bool = True,
                 dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.group, self.sequence_parallel = group, sequence_parallel
        whole = torch.nn.Linear(inputs, outputs, bias=bias, dtype=dtype)
        self.weight = _parameter(whole.weight, 1, group)
        self.bias = whole.bias
        if bias and sequence_parallel:
            of_parts(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.nn.functional.linear(x, self.weight)
        x = reduce_rows(x, self.group) if self.sequence_parallel else _apply(_Reduce, x, self.group)
        return x if self.bias is None else x + self.bias


def of_parts(weight: torch.nn.Parameter) -> torch.nn.Parameter:
    """Marks a weight that every GPU of a copy has whole, and uses on its part of the rows: the executor sums its
    gradients over them, as over copies and replicas. Megatron's mark."""
    weight.sequence_parallel = True  # type: ignore[attr-defined]
    return weight


def _parameter(whole: Tensor, dim: int, group: Any) -> torch.nn.Parameter:
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    if whole.shape[dim] % size:
        raise PipeweaverError(f"{whole.shape[dim]} columns cannot be had by {size} GPUs in equal parts")
    weight = torch.nn.Parameter(whole.detach().chunk(size, dim)[rank].clone())
    weight.partition_dim = dim  # type: ignore[attr-defined]
    return weight


class _Exchange(torch.autograd.Function):
    """To heads: [own rows, heads, width] -> [all rows, own heads, width], or back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Any, rows: Sequence[int], to_heads: bool) -> Tensor:
        ctx.group, ctx.rows, ctx.to_heads = group, rows, to_heads
        return (_to_heads if to_heads else _to_rows)(x, group, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        return (_to_rows if ctx.to_heads else _to_heads)(gradient, ctx.group, ctx.rows), None, None, None


def _to_heads(x: Tensor, group: Any, rows: Sequence[int]) -> Tensor:
    size, rank = len(rows), dist.get_rank(group)
    heads, width = x.shape[1] // size, x.shape[2]
    sent = x.reshape(-1, size, heads, width).transpose(0, 1).contiguous()
    found = x.new_empty((sum(rows), heads, width))
    _all_to_all(found, sent.view(-1, width), group, [count * heads for count in rows], [rows[rank] * heads] * size)
    return found


def _to_rows(x: Tensor, group: Any, rows: Sequence[int]) -> Tensor:
    size, rank = len(rows), dist.get_rank(group)
    heads, width = x.shape[1], x.shape[2]
    found = x.new_empty((size, rows[rank], heads, width))
    _all_to_all(found, x.contiguous(), group, [rows[rank] * heads] * size, [count * heads for count in rows])
    return found.transpose(0, 1).reshape(rows[rank], size * heads, width)


def _all_to_all(found: Tensor, sent: Tensor, group: Any, takes: list[int], gives: list[int]) -> None:
    width = sent.shape[-1]
    if sum(takes) + sum(gives):
        dist.all_to_all_single(found.view(-1, width), sent.reshape(-1, width), takes, gives, group=group)


def exchange_heads(x: Tensor, group: Any, rows: Sequence[int]) -> Tensor:
    """[own rows, heads, width] -> [sum of rows, own heads, width]: GPU k of the group had rows[k] of the rows, and has
    its part of the heads of all of them."""
    _check_heads(x.shape[1], len(rows))
    return _apply(_Exchange, x, group, tuple(rows), True)


def exchange_rows(x: Tensor, group: Any, rows: Sequence[int]) -> Tensor:
    """The way back: [sum of rows, own heads, width] -> [own rows, heads, width]."""
    return _apply(_Exchange, x, group, tuple(rows), False)


def _check_heads(heads: int, copies: int) -> None:
    if heads % copies:
        raise PipeweaverError(f"{heads} heads cannot be had by {copies} copies in equal parts: sequences cannot be "
                              "split over them")


def cu_seqlens(lengths: Sequence[int], device: torch.device | str = "cpu") -> Tensor:
    """Where sequences of these lengths begin, one behind the other, and the end: what varlen attention kernels take."""
    return torch.nn.functional.pad(torch.tensor(list(lengths), dtype=torch.int32), (1, 0)).cumsum(
        0, dtype=torch.int32).to(device)


def attend(q: Tensor, k: Tensor, v: Tensor, lengths: Sequence[int]) -> Tensor:
    """[rows, heads, width]: each sequence by itself. Put your varlen kernel in its place."""
    attention, out, at = torch.nn.functional.scaled_dot_product_attention, [v[:0]], 0
    for length in lengths:
        one, other, value = (x[at:at + length].transpose(0, 1) for x in (q, k, v))
        out.append(attention(one, other, value).transpose(0, 1))
        at += length
    return torch.cat(out)


def shared_attention(q: Tensor, k: Tensor, v: Tensor, share: Share, group: Any, attend: Attend = attend) -> Tensor:
    """Attention of a copy's pieces, [rows, heads, width] in their order. Sequences that lie whole on it are its own;
    those that are split go to the other copies by heads and back (Ulysses). `group`: the GPUs with this one's number
    in all copies."""
    if share.unit is None or share.pieces is None:
        raise PipeweaverError("shared_attention is of stages with copies")
    unit, split = share.unit, set(share.unit.split())
    ours = [piece.sequence in split for piece in share.pieces]
    own_q, own_k, own_v = (_chosen(x, share.pieces, ours, False) for x in (q, k, v))
    whole = attend(own_q, own_k, own_v, [piece.rows for piece, shared in zip(share.pieces, ours) if not shared])
    if not split:
        return whole
    rows = [sum(piece.rows for piece in pieces if piece.sequence in split) for pieces in unit.copies]
    exchanged = [exchange_heads(_chosen(x, share.pieces, ours, True), group, rows) for x in (q, k, v)]
    order = _by_sequence([piece for pieces in unit.copies for piece in pieces if piece.sequence in split])
    all_q, all_k, all_v = (x if order is None else x[order.to(x.device)] for x in exchanged)
    found = attend(all_q, all_k, all_v, [unit.lengths[sequence] for sequence in sorted(split)])
    if order is not None:
        found = found[torch.argsort(order).to(found.device)]
    return _merged(whole, exchange_rows(found, group, rows), share.pieces, ours)


def _chosen(x: Tensor, pieces: Sequence[Piece], ours: Sequence[bool], shared: bool) -> Tensor:
    parts = torch.split(x, [piece.rows for piece in pieces]) if pieces else []
    return torch.cat([x[:0], *(part for part, one in zip(parts, ours) if one == shared)])


def _by_sequence(pieces: Sequence[Piece]) -> Tensor | None:
    """Which row comes where, sequence by sequence; None: they are in that order."""
    at, begins = 0, []
    for piece in pieces:
        begins.append((piece.sequence, piece.first, at, at + piece.rows))
        at += piece.rows
    if begins == sorted(begins):
        return None
    return torch.cat([torch.arange(first, end) for _, _, first, end in sorted(begins)])


def _merged(whole: Tensor, split: Tensor, pieces: Sequence[Piece], ours: Sequence[bool]) -> Tensor:
    parts, at = [whole[:0]], {False: 0, True: 0}
    for piece, shared in zip(pieces, ours):
        source = split if shared else whole
        parts.append(source[at[shared]:at[shared] + piece.rows])
        at[shared] += piece.rows
    return torch.cat(parts)
