"""docs/data-plan.md and docs/megatron-data-plan.md: their blocks run one after the other, and print what they show."""

import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys

import pytest
from absent import needed
from checkout import ROOT
from megatron_names import newer_megatron  # noqa: F401

needed("torch")
needed("pipeweaver.data")

BLOCK = re.compile(r"^```(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def ran(kind, text, names, environment):
    """What the block prints."""
    if kind == "sh":
        done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", text], env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, f"{text}{done.stderr}"
        return done.stdout
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, "page", "exec"), names)
    return printed.getvalue()


@pytest.mark.parametrize("page", ["data-plan.md", "megatron-data-plan.md"])
def test_a_page_prints_what_it_shows(pipeweaver, tmp_path, monkeypatch, newer_megatron, page):  # noqa: F811
    if page.startswith("megatron"):
        monkeypatch.setattr(needed("megatron.core.datasets.data_schedule"), "BalancedCPScheduler", None)
    paths = [pipeweaver.path.resolve().parent, pathlib.Path(sys.executable).parent, os.environ["PATH"]]
    environment = {**os.environ, "PATH": ":".join(map(str, paths)), "OMP_NUM_THREADS": "1"}
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    printed, names, shown = "", {"__name__": "page"}, 0
    for kind, text in BLOCK.findall((ROOT / "docs" / page).read_text()):
        if kind == "":
            missing = [line for line in text.splitlines() if line not in printed.splitlines()]
            assert missing == [], f"docs/{page} shows what the block before does not print:\n{printed}"
            shown += 1
        else:
            printed = ran(kind, text, names, environment)
    assert shown >= 3
