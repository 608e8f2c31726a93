"""Options as the command has them: keys with hyphens, times and sizes as texts with a unit."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from .errors import InputError

Numbers = npt.NDArray[np.int64]
Path = Union[str, "os.PathLike[str]"]
Config = Union[Mapping[str, Any], Path]
Batch = Union[Sequence[Mapping[str, Any]], Path]
Stop = Union[Callable[[], bool], None]
Progress = Union[Callable[[dict[str, Any]], object], None]


def as_json(name: str, value: object) -> str:
    """The value as JSON. Raises InputError for what JSON cannot say."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: is not made of what JSON has: {error}") from None


def seconds(value: float | str) -> str:
    """A budget: a number is seconds, a text has a unit."""
    return value if isinstance(value, str) else f"{round(value * 1e9)}ns"


def size(value: int | str | None, unit: str) -> str | None:
    """A size or speed: a number is bytes (a second), a text has a unit."""
    return value if value is None or isinstance(value, str) else f"{value}{unit}"


def as_options(name: str, options: Mapping[str, Any]) -> str:
    """The options as a configuration file's content; what is None is left out."""
    given: dict[str, Any] = {}
    for key, value in options.items():
        if value is None:
            continue
        if key == "budget" and not isinstance(value, str):
            value = seconds(value)
        given[key.replace("_", "-")] = os.fspath(value) if isinstance(value, os.PathLike) else value
    return as_json(name, given)


def as_arguments(config: Config, batch: Batch | None) -> tuple[str, str | None, str | None, str | None]:
    """What the compiled functions take: a configuration's name and content, the batch's name and samples."""
    if isinstance(config, Mapping):
        name, content = "config", as_options("config", config)
    else:
        name, content = os.fspath(config), None
    return name, content, *as_batch(batch)


def as_batch(batch: Batch | None) -> tuple[str | None, str | None]:
    """The batch's name and samples, one a line; without samples the name is a file's."""
    if batch is None:
        return None, None
    if isinstance(batch, (str, os.PathLike)):
        return os.fspath(batch), None
    return "batch", "".join(as_json(f"batch:{i + 1}", sample) + "\n" for i, sample in enumerate(batch))
