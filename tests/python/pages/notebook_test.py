"""examples/plan.ipynb: its cells run one after the other, as a notebook would, and it is kept without outputs."""

import json
import os
import sys
import types

from checkout import ROOT

NOTEBOOK = json.loads((ROOT / "examples/plan.ipynb").read_text())
CODE = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def test_the_cells_run(pipeweaver, tmp_path, monkeypatch, capsys):
    """All but %pip, which installs what is here; what is displayed has to be a file that was written."""
    display = types.ModuleType("IPython.display")
    display.IFrame = lambda file, **_: shown.append((tmp_path / file).read_text())
    shown, names = [], {}
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setenv("PATH", f"{pipeweaver.path.resolve().parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    for cell in CODE:
        if not cell.startswith("%pip install"):
            exec(compile(cell, "examples/plan.ipynb", "exec"), names)
    printed = capsys.readouterr().out
    assert len(shown) == 1 and "<html" in shown[0]
    assert {rung["rung"] for rung in names["plan"]["ladder"]} >= {"now", "data", "schedule"}
    for (tp, pp), step in names["steps"].items():
        assert step > 0 and f"tp {tp} x pp {pp}: {step:.3f} s" in printed
    assert len(set(names["steps"].values())) == 3


def test_it_is_kept_without_outputs():
    for cell in NOTEBOOK["cells"]:
        assert cell.get("outputs", []) == [] and cell.get("execution_count") is None
