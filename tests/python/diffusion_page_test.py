"""docs/diffusion.md: its commands run one after the other, print what it shows, and leave what its launches need."""

import os
import pathlib
import subprocess
import sys

from absent import needed
from getting_started import ROOT, blocks, page_of

needed("pipeweaver.data.convert")

PAGE = page_of("docs/diffusion.md")


def test_the_page_goes_from_sizes_to_launches(pipeweaver, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = f"{pathlib.Path(sys.executable).parent}:{pipeweaver.path.resolve().parent}:{os.environ['PATH']}"
    printed = [subprocess.run(["bash", "-e", "-c", block], cwd=tmp_path, env={**os.environ, "PATH": path},
                              capture_output=True, text=True, check=True).stdout for block in blocks("sh", PAGE)]
    assert printed[2] == blocks("", PAGE)[0]
    # What a model file leaves out is written with its default.
    shown = (tmp_path / "shown.json").read_text()
    assert '"min_tokens": 1' in shown and '"max_tokens": 400' in shown
    assert (tmp_path / "planned/replica-000/actions.json").is_file()
    flags = (tmp_path / "flags/torchtitan.sh").read_text()
    assert "tensor_parallel_degree 1\n" in flags and "pipeline_parallel_degree 1\n" in flags
    assert "fsdp_reshard_after_forward never" in flags and "degree 16" in flags
