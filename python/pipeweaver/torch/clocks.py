"""When the actions of a step ran: by the host's clock on the CPU, by events of its stream on a GPU."""

from __future__ import annotations

import time
from typing import Any, Protocol

import torch


class Clock(Protocol):
    """Marks moments of a step, and says afterwards when they were."""

    def mark(self) -> None:
        """Now: on a GPU, when all that was launched so far has run."""

    def seconds(self) -> list[float]:
        """Of all marks, from the first. On a GPU waits for the last."""


class HostClock:
    def __init__(self) -> None:
        self._marks: list[float] = []

    def mark(self) -> None:
        self._marks.append(time.perf_counter())

    def seconds(self) -> list[float]:
        return [mark - self._marks[0] for mark in self._marks]


class StreamClock:
    """Events on the stream that is current when they are marked. The host does not wait for them before seconds()."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._marks: list[Any] = []

    def mark(self) -> None:
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self._device))
        self._marks.append(event)

    def seconds(self) -> list[float]:
        self._marks[-1].synchronize()
        return [float(self._marks[0].elapsed_time(mark)) / 1e3 for mark in self._marks]


def clock_of(device: torch.device) -> Clock:
    """The clock by which passes on `device` are timed."""
    return StreamClock(device) if device.type == "cuda" else HostClock()
