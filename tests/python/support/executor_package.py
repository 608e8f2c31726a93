"""pipeweaver.torch of the installed package or, with PIPEWEAVER_PACKAGE=sources, of the sources without the rest."""

import importlib
import os
import sys
import types

from absent import needed
from checkout import ROOT

SOURCES = ROOT / "python/pipeweaver"


def load():
    """The module pipeweaver.torch. It is pure Python, so it can be had without the compiled module: only where asked
    for, lest a package that cannot be imported pass for one that works."""
    if os.environ.get("PIPEWEAVER_PACKAGE") != "sources":
        return needed("pipeweaver.torch")
    bare = sys.modules["pipeweaver"] = types.ModuleType("pipeweaver")
    bare.__path__ = [str(SOURCES)]
    try:
        return importlib.import_module("pipeweaver.torch")
    finally:
        del sys.modules["pipeweaver"]  # others that want the whole package must not find this


package = load()
parallel = package.parallel
check, check_fit, program_of, Pass = (
    getattr(sys.modules[f"pipeweaver.torch.{module}"], name)
    for module, name in (("check", "check"), ("fit", "check_fit"), ("program", "program_of"), ("passes", "Pass")))
Actions, Executor, PipeweaverError, Place = package.Actions, package.Executor, package.PipeweaverError, package.Place
actions_of, parse_actions, read_actions = package.actions_of, package.parse_actions, package.read_actions
task_seed = package.task_seed
