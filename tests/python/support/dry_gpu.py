"""GPUs that are not there: tensors on them have shapes and no memory, PyTorch is told what it would be told."""

import types

import torch
import torch.distributed as dist
import torch.distributed._tools.fake_collectives  # noqa: F401  messages of tensors without memory
import torch.testing._internal.distributed.fake_pg  # noqa: F401  the backend "fake"
from torch.overrides import TorchFunctionMode

Tensor = torch.Tensor


class FakeEvent:
    """On a GPU where every mark comes a millisecond after the one before, and the host is ahead of it."""

    made = 0

    def __init__(self, enable_timing):
        assert enable_timing
        self.at = self.stream = None

    def record(self, stream):
        assert stream.startswith("stream of cuda:")
        FakeEvent.made += 1
        self.at, self.stream = FakeEvent.made, stream

    def query(self):
        return False

    def synchronize(self):
        assert self.at is not None

    def elapsed_time(self, other):
        assert self.stream == other.stream  # elsewhere the last one's end says nothing of the others'
        return float(other.at - self.at)


def tell(monkeypatch, gpus=1):
    """Has PyTorch see GPUs; what it is told, in order."""
    told = []

    def patch(name, stand_in):
        monkeypatch.setattr(torch.cuda, name, stand_in)

    patch("Event", FakeEvent)
    patch("is_available", lambda: True)
    patch("device_count", lambda: gpus)
    patch("get_device_name", lambda device=None: "NVIDIA H100 80GB HBM3")
    patch("set_device", lambda device: told.append(f"take {device}"))
    patch("current_stream", lambda device: f"stream of {device}")
    patch("synchronize", lambda device=None: told.append("synchronize"))
    patch("_sleep", lambda cycles: told.append(f"sleep {cycles}"))
    patch("empty_cache", lambda: told.append("empty cache"))
    patch("mem_get_info", lambda device: (79 << 30, 80 << 30))
    patch("memory_allocated", lambda device: 100)
    patch("memory_reserved", lambda device: 100)
    patch("max_memory_allocated", lambda device: 1100)
    patch("max_memory_reserved", lambda device: 2000)
    patch("reset_peak_memory_stats", lambda device: told.append("peaks from here"))
    return told


class OnMeta(TorchFunctionMode):
    """Tensors that are asked for on a GPU come without memory. Copied to the host they are zeros, as numbers ones."""

    def __torch_function__(self, function, types_, arguments=(), named=None):
        named = named or {}
        if function is torch.device:  # names one: what is asked of its type is what is walked here
            return function(*arguments, **named)
        first = arguments[0] if arguments else None
        without = isinstance(first, Tensor) and first.is_meta
        if without and function in (Tensor.__float__, Tensor.item):
            return 1.0
        if without and function is Tensor.to and _host(arguments[1]):
            return torch.zeros(first.shape, dtype=first.dtype)
        if function is Tensor.pin_memory or function is Tensor.copy_ and arguments[1].is_meta and not without:
            return first
        return function(*map(_there, arguments), **{name: _there(value) for name, value in named.items()})


def _host(where):
    return isinstance(where, torch.device | str) and torch.device(where).type == "cpu"


def _there(value):
    return torch.device("meta") if isinstance(value, torch.device) and value.type == "cuda" else value


def without_generators(monkeypatch):
    """Numbers of a GPU are not drawn: there are none."""
    made, forked = torch.Generator, []

    class OfHost:
        def __new__(cls, device="cpu"):
            return made()

    monkeypatch.setattr(torch, "Generator", OfHost)
    fork = torch.random.fork_rng

    def fork_rng(devices, enabled=True, device_type="cuda"):
        forked.extend(map(str, devices))
        return fork([], enabled, device_type=device_type)

    monkeypatch.setattr(torch.random, "fork_rng", fork_rng)
    return forked


def fake_groups(monkeypatch, backend=None):
    """Has groups of processes do nothing, under the name of `backend` (None: their own), and takes down what they are
    asked for: (send or receive, tag, type, device), and other collectives by name."""
    asked = types.SimpleNamespace(backends=[], messages=[], collectives=[])
    begin, name_of = dist.init_process_group, dist.get_backend

    def init_process_group(backend, **named):
        asked.backends.append(backend)
        begin("fake", **named)

    def message(kind, original):
        def call(tensor, **named):
            asked.messages.append((kind, named["tag"], tensor.dtype, tensor.device.type))
            return original(tensor, **named)
        return call

    monkeypatch.setattr(dist, "init_process_group", init_process_group)
    monkeypatch.setattr(dist, "get_backend", lambda group=None: backend or name_of(group))
    monkeypatch.setattr(dist, "isend", message("send", dist.isend))
    monkeypatch.setattr(dist, "irecv", message("receive", dist.irecv))
    barrier, reduce = dist.barrier, dist.all_reduce

    def all_reduce(tensor, **named):
        asked.collectives.append(("all_reduce", tensor.device.type))
        work = reduce(tensor, **named)  # says for ever that it is under way
        return types.SimpleNamespace(is_completed=lambda: True, wait=work.wait) if work is not None else None

    monkeypatch.setattr(dist, "all_reduce", all_reduce)

    def meet(device_ids=None):
        asked.collectives.append(("barrier", device_ids))
        barrier()

    monkeypatch.setattr(dist, "barrier", meet)
    return asked


def eager_adam(monkeypatch):
    """Has Adam do without its kernel for a GPU, which refuses tensors without memory; how often it was asked for."""
    asked, adam = [], torch.optim.AdamW

    def made(weights, fused, **named):
        asked.append(fused)
        return adam(weights, **named)

    monkeypatch.setattr(torch.optim, "AdamW", made)
    return asked
