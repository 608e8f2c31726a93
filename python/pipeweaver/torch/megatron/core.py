"""megatron-core's modules, loaded when they are asked for."""

from __future__ import annotations

import importlib
from typing import Any

from ...errors import PipeweaverError


def core(name: str) -> Any:
    """The module megatron.core.`name`. Raises PipeweaverError where it cannot be had."""
    try:
        return importlib.import_module(f"megatron.core.{name}")
    except ImportError as error:
        raise PipeweaverError(f"pipeweaver.torch.megatron needs megatron-core: {error}") from error
