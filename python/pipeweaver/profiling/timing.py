"""How long a function takes, with its spread."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..errors import InputError

Run = Callable[[], object]

_fewest, _most = 5, 1000  # repetitions
_enough = 11  # repetitions that can say that the spread is small
_small_spread_percent = 2.0
_units = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def parse_seconds(text: str) -> float:
    """A time with its unit. Raises InputError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|min|h)", text)
    if not found or float(found[1]) <= 0:
        raise InputError(f"--budget: is {text!r}, must be a time above 0 with a unit like 20s or 5min")
    return float(found[1]) * _units[found[2]]


class Clock(Protocol):
    """Takes times on a device."""

    def now(self) -> float:
        """Seconds, for the budget."""

    def sample(self, run: Run) -> float:
        """Microseconds that `run` takes on the device."""


class CpuClock:
    """The processor's own time; caches are as the repetition before left them."""

    def now(self) -> float:
        return time.perf_counter()

    def sample(self, run: Run) -> float:
        begun = time.perf_counter_ns()
        run()
        return (time.perf_counter_ns() - begun) / 1e3


@dataclass(frozen=True)
class Measurement:
    median_us: float
    spread_percent: float  # half the range that nine of ten repetitions lie in
    repetitions: int


def spread_percent(samples: list[float]) -> float:
    """Half the range that the middle nine of ten samples lie in, in percent of their median."""
    ordered = sorted(samples)
    left_out = len(ordered) // 20  # at either end
    middle = ordered[left_out : len(ordered) - left_out]
    return 100 * (middle[-1] - middle[0]) / 2 / statistics.median(ordered)


def measure(clock: Clock, run: Run, seconds: float) -> Measurement:
    """Warms up with a tenth of the time, then repeats until the spread is small or `seconds` are used up."""
    begun = clock.now()

    def run_for(share: float) -> bool:
        return clock.now() - begun < share * seconds

    clock.sample(run)
    for _ in range(20):
        if not run_for(0.1):
            break
        clock.sample(run)
    samples: list[float] = []
    while len(samples) < _fewest or (run_for(1.0) and len(samples) < _most):
        samples.append(max(clock.sample(run), 1e-3))
        if len(samples) >= _enough and spread_percent(samples) <= _small_spread_percent:
            break
        if len(samples) >= 3 and clock.now() - begun > 4 * seconds:
            break  # so slow that fewer must do
    return Measurement(statistics.median(samples), spread_percent(samples), len(samples))
