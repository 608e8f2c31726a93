"""What engines of capacity studies share: shards, and the one function that judges one, wherever it runs."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from . import _core


@dataclass(frozen=True)
class Work:
    """A study, as tasks need it."""

    name: str  # what errors call it
    document: str  # itself, as JSON
    threads: int  # of a task
    folder: str  # from which the study's own paths go


@dataclass(frozen=True)
class Shard:
    index: int
    cells: list[int]  # that are still to be judged


class Engine(Protocol):
    """Something that runs shards, for as long as it is entered."""

    workers: int  # shards that it runs at once

    def __enter__(self) -> Engine: ...
    def __exit__(self, *error: object) -> None: ...
    def __call__(self, work: Work, shards: Sequence[Shard], tell: Callable[[], None]) -> Iterator[dict[str, bytes]]:
        """The files of each shard's cells by name, in any order; `tell` is called now and then while it waits."""


@functools.lru_cache(maxsize=2)
def _study(name: str, document: str, folder: str) -> _core.Study:
    """Read once in a process: its shards share the costs of layers."""
    with contextlib.suppress(OSError):  # a node that has no such folder needs none unless the study names files
        os.chdir(folder)
    return _core.Study(name, document)


def judge(work: Work, shard: Shard) -> dict[str, bytes]:
    """The files of the shard's cells by name. A function of the study and of the cells."""
    study = _study(work.name, work.document, work.folder)
    names = study.files
    return {names[cell]: study.judge(cell, work.threads) for cell in shard.cells}


class OnThisMachine:
    """One shard after the other, in this process."""

    workers = 1

    def __enter__(self) -> OnThisMachine:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __call__(self, work: Work, shards: Sequence[Shard], tell: Callable[[], None]) -> Iterator[dict[str, bytes]]:
        for shard in shards:
            for cell in shard.cells:  # each is kept when it is judged
                yield judge(work, Shard(shard.index, [cell]))
