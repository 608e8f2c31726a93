"""Options as the command has them: keys with hyphens, times and sizes as texts with a unit."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _core
from .errors import InputError

Numbers = npt.NDArray[np.int64]
Path = Union[str, "os.PathLike[str]"]
Config = Union[Mapping[str, Any], Path]
Batch = Union[Sequence[Mapping[str, Any]], Path]
Stop = Union[Callable[[], bool], None]
Progress = Union[Callable[[dict[str, Any]], object], None]


def as_json(name: str, value: object) -> str:
    """The value as JSON, NumPy's numbers and arrays included. Raises InputError for what JSON cannot say."""
    try:
        return json.dumps(value, allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{name}: is not made of what JSON has: {error}") from None


def _plain(value: object) -> object:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"Object of type {type(value).__name__}")


def size(value: int | str | None, unit: str) -> str | None:
    """A size or speed: a number is bytes (a second), a text has a unit."""
    return value if value is None or isinstance(value, str) else f"{value}{unit}"


def as_path(path: Path) -> str:
    """The path as a text. Raises InputError where it is none."""
    text = os.fsdecode(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{text!r}: is no path in UTF-8") from None
    return text


def as_priority(priority: int) -> int:
    """The priority of a batch. Raises InputError for what is none."""
    if not 0 <= priority <= 100:
        raise InputError(f"priority: is {priority}, must be 0 to 100")
    return priority


def as_options(name: str, options: Mapping[str, Any]) -> str:
    """The options as a configuration file's content; what is None is left out."""
    given: dict[str, Any] = {}
    for key, value in options.items():
        if value is None:
            continue
        if key == "budget":
            value = _seconds(value)
        if key == "costs":
            value = getattr(value, "path", value)  # of a CostDatabase
            if value is None:
                continue
        given[str(key).replace("_", "-")] = as_path(value) if isinstance(value, os.PathLike) else value
    return as_json(name, given)


def _seconds(value: Any) -> Any:
    """A budget: a number is seconds, a text has a unit."""
    return f"{round(value * 1e9)}ns" if isinstance(value, (int, float)) and math.isfinite(value) else value


def as_asked(config: Config, batch: Batch | None, replica: int | None = None) -> _core.Asked:
    """What a configuration and a batch ask for, of one replica or of those that the configuration says."""
    if isinstance(config, Mapping):
        asked = _core.Asked("config", as_options("config", config), *as_batch(batch))
    else:
        asked = _core.Asked(as_path(config), None, *as_batch(batch))
    if replica is not None:
        asked.of_replica(replica)
    return asked


def as_batch(batch: Batch | None) -> tuple[str | None, str | None]:
    """The batch's name and samples, one a line; without samples the name is a file's."""
    if batch is None:
        return None, None
    if isinstance(batch, (str, os.PathLike)):
        return as_path(batch), None
    return "batch", "".join(as_json(f"batch:{i + 1}", sample) + "\n" for i, sample in enumerate(batch))
