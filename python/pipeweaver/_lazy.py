"""Packages that import a module of theirs when one of its names is first used: what needs neither the compiled part nor
NumPy does without."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from .errors import NotBuiltError

_CORE = "pipeweaver._core"


def lazily(
    package: str, names: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package with these names, by the module that has them. The modules are
    attributes, too."""
    module_of = {name: module for module, of_module in names.items() for name in of_module}

    def get(name: str) -> Any:
        if name in names:
            return _imported(f"{package}.{name}")
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(_imported(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names, *module_of})

    return get, listed


def core() -> Any:
    """The compiled part, for modules that others import without it. Raises NotBuiltError."""
    return _imported(_CORE)


def _imported(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != _CORE:
            raise
        raise NotBuiltError(f"{_CORE} is not built: `pip install .` in the checkout builds it") from None
