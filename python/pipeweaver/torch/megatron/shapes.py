"""The shapes of what Megatron's stages send."""

from __future__ import annotations

from dataclasses import replace

from ...errors import PipeweaverError
from ..actions import RankActions, Tensor
from .call import Call

Shape = tuple[int, ...]


def shaped(call: Call, own: RankActions) -> RankActions:
    """`own` with Megatron's shapes: [positions of this rank, sequences, width], the same of all microbatches, or with
    config.variable_seq_lengths each of the plan's rows."""
    if call.config.variable_seq_lengths:
        return replace(own, tensors={k: replace(one, shape=_own_length(call, one)) for k, one in own.tensors.items()})
    received, sent = _fixed(call)
    tensors = {}
    for number, one in own.tensors.items():
        _check_rows(call, one)
        # An activation that this rank takes and its gradient, which it gives, are what comes from the stage before.
        forward = one if one.kind == "activation" else own.tensors[one.of if one.of is not None else number]
        local = own.stages[forward.target.stage].rank == own.rank
        tensors[number] = replace(one, shape=received if local else sent)
    return replace(own, tensors=tensors)


def _fixed(call: Call) -> tuple[Shape, Shape]:
    """What a stage takes and gives."""
    length = call.seq_length
    if len(call.model) == 1 and call.decoder_seq_length is not None:
        length = call.decoder_seq_length
    one = (_positions(call, length), call.micro_batch_size, call.config.hidden_size)
    if call.adjust_tensor_shapes_fn is None:
        return one, one
    received, sent = call.adjust_tensor_shapes_fn([one], [one])
    if len(received) != 1 or len(sent) != 1:
        raise PipeweaverError(f"adjust_tensor_shapes_fn gives {len(received)} shapes to receive and {len(sent)} to "
                              "send, one of each is allowed")
    return tuple(received[0]), tuple(sent[0])


def _positions(call: Call, length: int) -> int:
    """Of a sequence, those of this rank."""
    length //= call.groups.context.size()
    return int(length // call.groups.tensor.size() if call.config.sequence_parallel else length)


def _check_rows(call: Call, tensor: Tensor) -> None:
    """A plan that knows shapes counts no more rows than there are."""
    if tensor.shape is None or call.adjust_tensor_shapes_fn is not None:
        return
    rows, width = call.seq_length * call.micro_batch_size, call.config.hidden_size
    if len(tensor.shape) != 2 or tensor.shape[0] > rows or tensor.shape[1] != width:
        raise PipeweaverError(f"tensor {tensor.tensor} is {list(tensor.shape)} in the plan, Megatron sends {rows} rows "
                              f"of width {width} (seq_length {call.seq_length}, micro_batch_size "
                              f"{call.micro_batch_size})")


def _own_length(call: Call, tensor: Tensor) -> Shape:
    if tensor.shape is None:
        raise PipeweaverError("config.variable_seq_lengths is set, and the plan does not know shapes")
    share = call.micro_batch_size * call.groups.context.size()
    if call.config.sequence_parallel:
        share *= call.groups.tensor.size()
    rows, width = tensor.shape[0], call.config.hidden_size
    if len(tensor.shape) != 2 or rows % share or tensor.shape[1] != width:
        raise PipeweaverError(f"tensor {tensor.tensor} is {list(tensor.shape)} in the plan, rows in multiples of "
                              f"{share} of width {width} are needed")
    return rows // share, call.micro_batch_size, width
