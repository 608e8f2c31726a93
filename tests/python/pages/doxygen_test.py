"""Doxyfile: the comments of include/ are pages without a warning, with what users of the libraries call."""

import shutil
import subprocess

from absent import left_out
from checkout import ROOT


def test_the_headers_are_pages_without_a_warning(tmp_path):
    if not shutil.which("doxygen"):
        left_out("doxygen is not installed")
    config = (ROOT / "Doxyfile").read_text() + f"OUTPUT_DIRECTORY = {tmp_path}\n"
    done = subprocess.run(["doxygen", "-"], input=config, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    planner = (tmp_path / "html/namespacepipeweaver_1_1planner.html").read_text()
    for name in ("emulate", "make_plan", "Way"):
        assert f">{name}<" in planner, name
    assert (tmp_path / "html/structpipeweaver_1_1planner_1_1Way.html").is_file()
