"""Arguments of the package's commands."""

from __future__ import annotations

import argparse
from typing import NoReturn

from .errors import InputError


class Parser(argparse.ArgumentParser):
    """argparse, but for its errors: they are raised, and become the one line that a command prints."""

    def error(self, message: str) -> NoReturn:
        """Raises InputError."""
        raise InputError(message)
