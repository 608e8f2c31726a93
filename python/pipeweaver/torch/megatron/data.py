"""A chunk's data iterator, asked for microbatches in the plan's order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import PipeweaverError


class Microbatches:
    """Draws from `iterator` in its own order, one batch for each microbatch, and keeps what is not wanted yet.
    `iterator` None: this rank reads no data."""

    def __init__(self, iterator: Any) -> None:
        self.iterator = iterator
        self.kept: dict[int, Any] = {}
        self.drawn = 0

    def of(self, microbatch: int) -> Iterator[Any] | None:
        """What forward_step_func is given for this microbatch."""
        return None if self.iterator is None else _One(self, microbatch)

    def take(self, microbatch: int) -> Any:
        """Raises what the iterator raises, StopIteration at its end."""
        while self.drawn <= microbatch:
            self.kept[self.drawn] = next(self.iterator)
            self.drawn += 1
        return self.kept.pop(microbatch)


class _One(Iterator[Any]):
    """Gives one microbatch."""

    def __init__(self, source: Microbatches, microbatch: int) -> None:
        self.source, self.microbatch, self.taken = source, microbatch, False

    def __next__(self) -> Any:
        if self.taken:
            raise PipeweaverError(f"forward_step_func draws a second time from data_iterator for microbatch "
                                  f"{self.microbatch}, once is allowed")
        self.taken = True
        return self.source.take(self.microbatch)
