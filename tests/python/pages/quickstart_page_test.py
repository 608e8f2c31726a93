"""What quickstart.sh plans is what README.md shows, whatever the machine and however many threads it has."""

import re
import shlex

from checkout import ROOT
from cli_shared import digests


def planned_by(script):
    """The arguments of the plan that the script makes."""
    command = re.search(r"^(?:build/release/bin/)?pipeweaver (plan (?:.*\\\n)*.*)", script.read_text(), re.MULTILINE)[1]
    return shlex.split(command.replace("\\\n", " "))


def test_the_quickstart_plans_the_readmes_step_and_the_same_files_on_any_number_of_threads(pipeweaver, tmp_path):
    arguments = planned_by(ROOT / "quickstart.sh")
    assert arguments[-2] == "--out" and "--budget" not in arguments and "--max-rounds" not in arguments
    assert arguments[:-1] == planned_by(ROOT / "README.md")[:-1]
    for threads in (1, 2):
        done = pipeweaver.run(*arguments[:-1], tmp_path / str(threads), "--threads", threads)
        assert done.returncode == 0, done.stderr
    assert digests(tmp_path / "1") == digests(tmp_path / "2")
