"""When gradients of replicas are summed: Megatron's hooks, at the plan's places."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch


class GradientSync:
    """Off, but for each chunk's last backward. On every rank the chunks come to it from the last to the first, under
    any plan: a microbatch's backward leaves chunk v before it comes to chunk v - 1. So replicas with different plans
    start their sums in one order."""

    def __init__(self, config: Any, model: Sequence[torch.nn.Module]) -> None:
        self.model = model
        self.no_sync = config.no_sync_func
        self.grad_sync = _each(config.grad_sync_func, len(model))
        self.reduced: set[int] = set()
        self.context: contextlib.ExitStack | None = None

    def off(self) -> None:
        if self.context is not None:
            return
        self.context = contextlib.ExitStack()
        for enter in self.no_sync if isinstance(self.no_sync, list) else [self.no_sync]:
            if enter is not None:
                self.context.enter_context(enter())

    def on(self) -> None:
        if self.context is not None:
            self.context.close()
            self.context = None

    @contextlib.contextmanager
    def backward(self, last: bool) -> Iterator[None]:
        """Around a backward; `last`: its chunk's. Where Megatron has no grad_sync_func its hooks start the sums."""
        hooks = last and self.grad_sync is None
        if hooks:
            self.on()
        yield
        if hooks:
            self.off()

    def complete(self, chunks: Sequence[int]) -> None:
        """These chunks' backwards have all ended."""
        for chunk in sorted(set(chunks) - self.reduced, reverse=True):
            self.reduced.add(chunk)
            if self.grad_sync is not None:
                self.on()
                self.grad_sync[chunk](self.model[chunk].parameters())
                self.off()

    def finish(self) -> None:
        """At the step's end."""
        self.complete(range(len(self.model)))
        self.on()


def _each(function: Any, chunks: int) -> list[Callable[..., Any]] | None:
    if function is None or isinstance(function, list):
        return function
    return [function] * chunks
