"""Data sets of Megatron-Energon: which shards are of a split, and which sets a metadata set blends.

Source: docs "Dataset Format on Disk" and "Metadataset" of NVIDIA/Megatron-Energon; src/megatron/energon/metadataset.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ...errors import FileError, InputError, NotBuiltError

One = TypeVar("One")


@dataclass(frozen=True)
class Part:
    """One data set of a blend."""

    path: Path
    split: str
    weight: float = 1


def is_metadata_set(source: Path) -> bool:
    return source.is_file() and source.suffix in (".yaml", ".yml")


def sets_of_split(source: Path, split: str) -> list[Part]:
    """What a metadata set blends for a split. Raises InputError."""
    given = json.loads(_read_yaml(source))
    splits = given.get("splits") if isinstance(given, dict) else None
    if not isinstance(splits, dict):
        raise InputError(f"{source}: has no splits, as metadata sets of Energon have")
    if split not in splits:
        raise InputError(f"--split: is '{split}', {source} has {', '.join(sorted(splits)) or 'none'}")
    return list(_parts(source, splits[split], split, 1))


def _parts(source: Path, given: Any, split: str, weight: float) -> Iterator[Part]:
    """Of a path, or of a blend, which may hold others."""
    if not isinstance(given, dict):
        raise InputError(f"{source}: splits.{split}: is no data set and no blend of some")
    several = given.get("blend", given.get("datasets"))
    if several is None:
        if "path" not in given:
            raise InputError(f"{source}: splits.{split}: has {', '.join(given)}; allowed are path and blend")
        path = source.parent / str(given["path"])
        if not path.exists():
            raise FileError(f"{source}: splits.{split}: {path}: there is no such data set")
        yield Part(path, str(given.get("split_part", split)), weight)
        return
    if not isinstance(several, list) or not several:
        raise InputError(f"{source}: splits.{split}: blends nothing")
    weights = [_weight(source, one) for one in several]
    for one, own in zip(several, weights):
        yield from _parts(source, one, split, weight * own / sum(weights))


def _weight(source: Path, one: Any) -> float:
    weight = one.get("weight", 1) if isinstance(one, dict) else 1
    if not isinstance(weight, (int, float)) or not 0 < weight < math.inf:
        raise InputError(f"{source}: weight: is {weight!r}, must be a number above 0")
    return weight


def blended(parts: Sequence[Iterator[One]], weights: Sequence[float]) -> Iterator[One]:
    """In turn, so that each has its share at all times, until one ends."""
    taken = [0] * len(parts)
    while True:
        turn = min(range(len(parts)), key=lambda i: ((taken[i] + 1) / weights[i], i))
        try:
            one = next(parts[turn])
        except StopIteration:
            return
        taken[turn] += 1
        yield one


def shards_of_split(source: Path, shards: list[Path], split: str) -> list[Path]:
    """Of an Energon data set the shards of one split; else all."""
    document = source / ".nv-meta" / "split.yaml"
    if not document.is_file():
        return shards
    given = json.loads(_read_yaml(document))
    parts = given.get("split_parts", {}) if isinstance(given, dict) else {}
    if split not in parts:
        raise InputError(f"--split: is '{split}', {document} has {', '.join(parts) or 'none'}")
    excluded = {name for one in given.get("exclude") or [] for name in _expanded(str(one))}
    wanted = [name for one in parts[split] or [] for name in _expanded(str(one)) if name not in excluded]
    missing = next((name for name in wanted if not (source / name).is_file()), None)
    if missing is not None:
        raise InputError(f"{document}: names {missing}, which is not there")
    if not wanted:
        raise InputError(f"{document}: split '{split}' has no shards")
    return [source / name for name in wanted]


def _read_yaml(document: Path) -> str:
    """The document as JSON, by the compiled part, else by PyYAML."""
    try:
        from ... import _core
    except NotBuiltError:
        return _by_pyyaml(document)
    return _core.read_document(str(document))


def _by_pyyaml(document: Path) -> str:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise InputError(
            f"{document}: YAML is read by the compiled part, which `pip install .` in the checkout builds, or by the "
            "package pyyaml; allowed without them is a folder of shards without .nv-meta") from None
    try:
        return json.dumps(yaml.safe_load(document.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise InputError(f"{document}: is no YAML: {' '.join(str(error).split())}") from None


def _expanded(name: str) -> Iterator[str]:
    """shard_{000..010}.tar"""
    found = re.search(r"\{(\d+)\.\.(\d+)\}", name)
    if not found:
        yield name
        return
    for number in range(int(found[1]), int(found[2]) + 1):
        yield from _expanded(name[: found.start()] + str(number).zfill(len(found[1])) + name[found.end() :])
