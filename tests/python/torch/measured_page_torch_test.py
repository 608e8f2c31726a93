"""docs/measured-runs.md, tried literally."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from checkout import ROOT

PAGE = (ROOT / "docs/measured-runs.md").read_text()


@pytest.mark.alone
def test_the_commands_of_the_page_record_compare_import_and_plan_again(pipeweaver, tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "bin").mkdir()
    torchrun = tmp_path / "bin/torchrun"
    torchrun.write_text(f"#!/bin/sh\nexec {sys.executable} -m torch.distributed.run \"$@\"\n")
    torchrun.chmod(0o755)
    path = f"{tmp_path}/bin:{pipeweaver.path.resolve().parent}:{os.environ['PATH']}"
    printed = []
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        done = subprocess.run(["bash", "-e", "-c", block], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=400, env={**os.environ, "PATH": path, "GLOO_SOCKET_IFNAME": "lo"})
        assert done.returncode == 0, f"{block}{done.stderr[-3000:]}"
        printed.append(done.stdout)
    assert len(printed) == 4
    assert "5 steps, the last took " in printed[0]
    assert re.search(r"^difference .* = longer passes .* \+ transfers and waiting ", printed[1], re.MULTILINE)
    passes = re.search(r"^llm +I +[0-9]+ +[0-9.]+ ms", PAGE, re.MULTILINE).group(0)
    assert re.search(f"^{passes} ", printed[1], re.MULTILINE), "the page's table"
    assert re.search(r"^vit +forward .* x[0-9.]+ ", printed[2], re.MULTILINE)
    assert (tmp_path / "again/plan.json").exists()
