"""What the Python tests share: the binary under test, a plan that it made, and how they are dealt to workers."""

import os
import pathlib
import subprocess

import pytest
from absent import left_out
from cli_shared import BATCH, PLAN

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Seconds of the files that take long, here and one after the other: they begin first, so that no worker is left with
# one of them at the end. What is not listed takes a second or two.
SECONDS = {
}
# Files of one group run on one worker and share what their fixtures make; a file is a group of its own unless it is
# here. Tests of the files below it share nothing dear: each goes to whichever worker is free.
TOGETHER = {}
APART = {"cp_sat_test.py"}


def group_of(item):
    """The name of the tests that must run on the same worker as this one, or None."""
    name = item.path.name
    return None if name in APART else TOGETHER.get(name, name.removesuffix(".py"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Long files first; with pytest-xdist, groups."""
    items.sort(key=lambda item: -SECONDS.get(item.path.name, 0))
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if group := group_of(item):
                item.add_marker(pytest.mark.xdist_group(group))


def pytest_configure(config):
    """Workers take groups in the order above, not those of many tests first."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


class Pipeweaver:
    """The command, run to its end or for ten minutes."""

    def __init__(self, path):
        self.path = path

    def run(self, *arguments):
        """Runs `pipeweaver arguments...` to whatever end."""
        command = [str(self.path), *map(str, arguments)]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)

    def __call__(self, *arguments):
        """Runs it, requires exit status 0 and returns stdout."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"{' '.join(done.args)}: exit status {done.returncode}: {done.stderr}"
        return done.stdout

    def fails(self, *arguments):
        """Runs it, requires a failure with one line on stderr and nothing on stdout; returns (exit status, line)."""
        done = self.run(*arguments)
        assert done.returncode > 0, f"{' '.join(done.args)}: exit status {done.returncode}: {done.stderr}"
        assert done.stdout == ""
        lines = done.stderr.splitlines()
        assert len(lines) == 1, done.stderr
        assert lines[0].startswith("pipeweaver: ")
        return done.returncode, lines[0]


@pytest.fixture(scope="session")
def shared():
    """The folder with the reference data and the referee."""
    folder = pathlib.Path(os.environ.get("PIPEWEAVER_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        left_out(f"the reference data is not at {folder}")
    return folder


@pytest.fixture(scope="session")
def pipeweaver():
    """The binary named by PIPEWEAVER_BIN, else that of preset "check"."""
    return Pipeweaver(pathlib.Path(os.environ.get("PIPEWEAVER_BIN", ROOT / "build/check/bin/pipeweaver")))


@pytest.fixture(scope="session")
def planned(pipeweaver, tmp_path_factory):
    """A plan made with a fixed number of rounds on one thread."""
    folder = tmp_path_factory.mktemp("plan") / "one"
    pipeweaver(*PLAN, *BATCH, "--max-rounds", "20", "--threads", "1", "--out", folder)
    return folder
