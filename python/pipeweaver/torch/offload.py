"""What a pass keeps for its backward, in the host's memory until then."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

Tensor = torch.Tensor


class _Saved:
    """A tensor that autograd keeps. `own` is it on its device, `host` its copy; each is there while it is needed."""

    def __init__(self, own: Tensor, group: int) -> None:
        self.own: Tensor | None = own
        self.host: Tensor | None = None
        self.device, self.group, self.key = own.device, group, _key_of(own)


def _storage(tensor: Tensor) -> tuple[torch.device, int]:
    return tensor.device, tensor.untyped_storage().data_ptr()


def _key_of(tensor: Tensor) -> tuple[Any, ...]:
    return (*_storage(tensor), tensor.storage_offset(), tensor.dtype, tuple(tensor.shape), tensor.stride(),
            tensor._version)


class _Link:
    """The link to the host, one copy at a time each way. On a GPU copies run beside its compute: out() and back() begin
    them, and wait() has compute that comes later wait for all of that way."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.streams: list[torch.cuda.Stream] = []
        if device.type == "cuda":
            self.streams = [torch.cuda.Stream(device) for _ in range(2)]  # type: ignore[no-untyped-call]

    @contextlib.contextmanager
    def _beside(self, way: int) -> Iterator[None]:
        if not self.streams:
            yield
            return
        self.streams[way].wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.streams[way]):
            yield

    def out(self, own: Tensor) -> Tensor:
        # In the order in memory that it has, in which alone a copy is one piece and needs no room on its way.
        host = torch.empty_like(own, device="cpu", pin_memory=bool(self.streams))
        with self._beside(0):
            return host.copy_(own, non_blocking=bool(self.streams))

    def back(self, host: Tensor) -> Tensor:
        own = torch.empty_like(host, device=self.device)
        if self.streams:
            own.record_stream(self.streams[1])  # it may be let go without having been waited for
        with self._beside(1):
            return own.copy_(host, non_blocking=bool(self.streams))

    def wait(self, way: int) -> None:
        if self.streams:
            torch.cuda.current_stream(self.device).wait_stream(self.streams[way])


@functools.cache
def _link_of(device: torch.device) -> _Link:
    """One for each device: passes share it."""
    return _Link(device)


class Offload:
    """The saved tensors of one pass. A block's go to the host while the next block runs and come back a block ahead; a
    forward ends when its last copy has. Tensors in `kept` (weights, inputs) stay where they are."""

    def __init__(self, blocks: Sequence[torch.nn.Module], kept: Iterable[Tensor]) -> None:
        self.blocks = blocks
        self.kept = {_storage(tensor) for tensor in kept}
        self.groups: list[list[_Saved]] = [[]]
        self.known: dict[tuple[Any, ...], _Saved] = {}
        self.links: set[_Link] = set()
        self.at: int | None = None  # the group whose tensors are back

    @contextlib.contextmanager
    def forward(self) -> Iterator[None]:
        """Around a forward with a graph."""
        hooks = [block.register_forward_hook(lambda *_: self._end_block()) for block in self.blocks]
        try:
            with torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack):
                yield
        finally:
            for hook in hooks:
                hook.remove()
        self._end_block()
        self._end_block()

    def _pack(self, tensor: Tensor) -> Tensor | _Saved:
        plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout == torch.strided
        if not plain or not tensor.numel() or _storage(tensor) in self.kept:
            return tensor
        saved = self.known.get(_key_of(tensor))
        if saved is None:
            # Without its graph, of which it may be an output: that would be a circle.
            saved = _Saved(tensor.detach(), len(self.groups) - 1)
            self.known[saved.key] = saved
            self.groups[-1].append(saved)
        return saved

    def _end_block(self) -> None:
        """Lets go of what has gone out beside this block, and sends this block's."""
        for link in self.links:
            link.wait(0)
        for saved in self.groups[-2] if len(self.groups) > 1 else ():
            saved.own = None
            self.known.pop(saved.key, None)
        for saved in self.groups[-1]:
            assert saved.own is not None
            link = _link_of(saved.own.device)
            self.links.add(link)
            saved.host = link.out(saved.own)
        self.groups.append([])

    def _unpack(self, packed: Tensor | _Saved) -> Tensor:
        if not isinstance(packed, _Saved):
            return packed
        if self.at != packed.group or packed.own is None:
            self._arrive(packed.group)
        assert packed.own is not None
        return packed.own

    def _arrive(self, group: int) -> None:
        """Has compute wait for the group, lets go of those behind it, and sends for the one in front."""
        self._fetch(group)
        for link in self.links:
            link.wait(1)
        for later in self.groups[group + 1 :]:
            for saved in later:
                saved.own = None
        self._fetch(group - 1)
        self.at = group

    def _fetch(self, group: int) -> None:
        for saved in self.groups[group] if group >= 0 else ():
            if saved.own is None and saved.host is not None:
                saved.own = _link_of(saved.device).back(saved.host)
