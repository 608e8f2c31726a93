"""pipeweaver.torch, from the installed package or, without the compiled module, from the sources."""

import importlib
import pathlib
import sys
import types

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "python/pipeweaver"


def load():
    """The module pipeweaver.torch. It is pure Python: where the package cannot be imported as a whole, it is without."""
    try:
        return importlib.import_module("pipeweaver.torch")
    except ImportError:
        bare = sys.modules["pipeweaver"] = types.ModuleType("pipeweaver")
        bare.__path__ = [str(SOURCES)]
        try:
            return importlib.import_module("pipeweaver.torch")
        finally:
            del sys.modules["pipeweaver"]  # others that want the whole package must not find this


package = load()
check, check_fit, program_of, Pass = (
    getattr(sys.modules[f"pipeweaver.torch.{module}"], name)
    for module, name in (("check", "check"), ("fit", "check_fit"), ("program", "program_of"), ("passes", "Pass")))
Actions, Executor, PipeweaverError, Place = package.Actions, package.Executor, package.PipeweaverError, package.Place
parse_actions, read_actions, task_seed = package.parse_actions, package.read_actions, package.task_seed
