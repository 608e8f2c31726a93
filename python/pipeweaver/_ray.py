"""Shards as tasks of Ray. Nodes need this package, and no file system in common: tasks take the study's text and give
the bytes of their files."""

from __future__ import annotations

import importlib
import os
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ._shards import Shard, Work, judge
from .errors import FileError, InputError, PipeweaverError

_seconds_of_a_wait = 0.5
_seconds_to_answer = 10.0


def _imported() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise InputError(
            f"--engine: ray needs Ray, which cannot be imported ({error}): pip install ray, or take --engine local"
        ) from None


def _require_answer(address: str) -> None:
    """Raises FileError where nothing listens at host:port; Ray itself tries for minutes. Other forms are Ray's to
    read."""
    found = re.fullmatch(r"(?:ray://)?\[?([^\[\]]+)\]?:(\d{1,5})", address)
    if not found:
        return
    try:
        socket.create_connection((found[1], int(found[2])), _seconds_to_answer).close()
    except (OSError, OverflowError) as error:
        raise FileError(f"--address: no Ray cluster at {address}: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


class OnRay:
    """A cluster: the one at `address`, or as Ray finds or begins one where it is None. It is left as it was."""

    def __init__(self, address: str | None, retries: int, threads: int) -> None:
        self.ray = _imported()
        self.address, self.retries, self.threads = address, retries, threads
        self.workers = 1

    def __enter__(self) -> OnRay:
        if self.address is not None:
            _require_answer(self.address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # of a cluster that is begun here
        try:
            self.ray.init(address=self.address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise FileError(f"--address: no Ray cluster at {self.address or 'hand'}: {_first_line(error)}") from None
        self.workers = max(1, int(self.ray.cluster_resources().get("CPU", 1)) // self.threads)
        return self

    def __exit__(self, *error: object) -> None:
        self.ray.shutdown()  # ends this driver's tasks, too

    def __call__(self, work: Work, shards: Sequence[Shard], tell: Callable[[], None]) -> Iterator[dict[str, bytes]]:
        task = self.ray.remote(num_cpus=self.threads, max_retries=self.retries)(judge)
        waiting = {task.options(name=f"shard {shard.index}").remote(work, shard): shard for shard in shards}
        lost = []
        while waiting:
            done, _ = self.ray.wait(list(waiting), num_returns=1, timeout=_seconds_of_a_wait)
            for reference in done:
                shard = waiting.pop(reference)
                files = self._files(reference, shard)
                if files is None:
                    lost.append(shard.index)
                else:
                    yield files
            tell()
        if lost:
            tries = self.retries + 1
            named = f"shard {lost[0]}: its worker was" if len(lost) == 1 else (
                f"shards {', '.join(map(str, sorted(lost)))}: their workers were")
            raise FileError(f"{named} lost, {tries} of {tries} tries; what the others judged stays, run it again to "
                            "go on")

    def _files(self, reference: Any, shard: Shard) -> dict[str, bytes] | None:
        """What a task gave; None where its workers were lost. Raises what it raised."""
        try:
            files: dict[str, bytes] = self.ray.get(reference)
            return files
        except self.ray.exceptions.RayTaskError as error:
            cause = error.cause
            if isinstance(cause, PipeweaverError):
                raise cause from None
            raise FileError(f"shard {shard.index}: {type(cause).__name__}: {_first_line(cause)}") from None
        except self.ray.exceptions.RayError:
            return None
