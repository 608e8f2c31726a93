"""Needs measured one after the other, most important first, until a budget is used up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .needs import Need
from .timing import Clock, Measurement, Run, measure

Make = Callable[[Need], Run]
Report = Callable[[Need, Measurement], None]


@dataclass
class Session:
    """What was measured by `clock`, and what could not be.

    `make` makes a need's function and raises what `refusals` lists where it cannot; `free_bytes` and `bytes_of` keep
    it from asking for more memory than there is."""

    clock: Clock
    make: Make
    refusals: tuple[type[Exception], ...] = ()
    free_bytes: Callable[[], int] | None = None
    bytes_of: Callable[[Need], int] | None = None
    report: Report = lambda need, measurement: None
    measured: dict[tuple[str, ...], tuple[Need, Measurement]] = field(default_factory=dict)
    refused: dict[tuple[str, ...], tuple[Need, str]] = field(default_factory=dict)

    def run(self, needs: list[Need], until: float) -> bool:
        """Measures those that are not measured yet, in their order, until the clock shows `until`. True if none is
        left. A need's time is half its share of what is left of the budget, half the same for all."""
        left = [need for need in needs if need.key not in self.measured and need.key not in self.refused]
        share_left = sum(need.share for need in left)
        for place, need in enumerate(left):
            seconds = until - self.clock.now()
            if seconds <= 0:
                return False
            part = need.share / share_left if share_left > 0 else 0.0
            self._one(need, seconds * (part + 1 / (len(left) - place)) / 2)
            share_left -= need.share
        return True

    def _one(self, need: Need, seconds: float) -> None:
        try:
            self._check_memory(need)
            measurement = measure(self.clock, self.make(need), seconds)
        except self.refusals as error:
            self.refused[need.key] = (need, (str(error).splitlines() or ["failed"])[0])
            return
        self.measured[need.key] = (need, measurement)
        self.report(need, measurement)

    def _check_memory(self, need: Need) -> None:
        if self.free_bytes is None or self.bytes_of is None:
            return
        free, wanted = self.free_bytes(), self.bytes_of(need)
        if wanted > 0.8 * free:
            raise MemoryError(f"takes about {wanted / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are free")
