"""What a test does where something that it needs is absent.

It is left out, saying so, or fails where nothing may be left out."""

import importlib
import os

import pytest


def may_skip():
    """Not under CI=true, unless PIPEWEAVER_MAY_SKIP says otherwise: there a test that is left out is a hole."""
    return os.environ.get("PIPEWEAVER_MAY_SKIP", "0" if os.environ.get("CI") == "true" else "1") != "0"


def left_out(reason):
    """Ends the test, or the collection of the file that is being imported."""
    if may_skip():
        pytest.skip(reason, allow_module_level=True)
    pytest.fail(f"{reason}, and PIPEWEAVER_MAY_SKIP=0 or CI=true lets no test be left out", pytrace=False)


def needed(module):
    """The module of that name, for the top of a test file; its tests are left out where it cannot be imported.

    Of the package that a checkout has without its compiled part, nothing can."""
    try:
        if module.partition(".")[0] == "pipeweaver":
            importlib.import_module("pipeweaver._core")
        return importlib.import_module(module)
    except ImportError as error:
        left_out(f"{module} cannot be imported: {error}")
