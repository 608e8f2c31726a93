"""What the Python tests share: the binary under test, and a plan that it made."""

import os
import pathlib
import subprocess

import pytest
from cli_shared import BATCH, PLAN

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Pipeweaver:
    """The command, run to its end or for ten minutes."""

    def __init__(self, path):
        self.path = path

    def __call__(self, *arguments):
        """Runs `pipeweaver arguments...`, requires exit status 0 and returns stdout."""
        command = [str(self.path), *map(str, arguments)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{' '.join(command)}: exit status {done.returncode}: {done.stderr}"
        return done.stdout


    def fails(self, *arguments):
        """Runs it, requires a failure with one line on stderr and nothing on stdout; returns (exit status, line)."""
        command = [str(self.path), *map(str, arguments)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        assert done.returncode != 0, f"{' '.join(command)}: succeeded"
        assert done.stdout == ""
        lines = done.stderr.splitlines()
        assert len(lines) == 1, done.stderr
        assert lines[0].startswith("pipeweaver: ")
        return done.returncode, lines[0]


@pytest.fixture(scope="session")
def shared():
    """The folder with the reference data and the referee; tests that need it are left out, saying so, without it."""
    folder = pathlib.Path(os.environ.get("PIPEWEAVER_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"the reference data is not at {folder}")
    return folder


@pytest.fixture(scope="session")
def pipeweaver():
    """The binary named by PIPEWEAVER_BIN, else that of the development build."""
    return Pipeweaver(pathlib.Path(os.environ.get("PIPEWEAVER_BIN", ROOT / "build/dev/bin/pipeweaver")))


@pytest.fixture(scope="session")
def planned(pipeweaver, tmp_path_factory):
    """A plan made with a fixed number of rounds on one thread."""
    folder = tmp_path_factory.mktemp("plan") / "one"
    pipeweaver(*PLAN, *BATCH, "--max-rounds", "20", "--threads", "1", "--out", folder)
    return folder
