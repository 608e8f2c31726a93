"""What the tests of the studies share: the fixtures of tests/python, and both programs.

    pytest studies/tests       with PIPEWEAVER_BIN and PIPEWEAVER_STUDIES_BIN, or both programs in build/check/bin;
                               pipeweaver-bench lies beside the first
"""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
STUDIES = ROOT / "studies"
sys.path.insert(0, str(STUDIES))

spec = importlib.util.spec_from_file_location("product_conftest", ROOT / "tests/python/conftest.py")
product = importlib.util.module_from_spec(spec)
spec.loader.exec_module(product)
shared = product.shared


class Studies(product.Pipeweaver):
    """The program of the studies, run to its end or for ten minutes."""

    def fails(self, *arguments):
        """Runs it, requires a failure with one line on stderr and nothing on stdout; returns (exit status, line)."""
        done = subprocess.run([self.path, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True)
        assert done.returncode != 0 and done.stdout == ""
        [line] = done.stderr.splitlines()
        assert line.startswith("pipeweaver_studies: ")
        return done.returncode, line


def program(variable, name):
    return pathlib.Path(os.environ.get(variable, ROOT / "build/check/bin" / name)).resolve()


@pytest.fixture(scope="session")
def pipeweaver():
    """The product's program: PIPEWEAVER_BIN, else that of the check build."""
    return product.Pipeweaver(program("PIPEWEAVER_BIN", "pipeweaver"))


@pytest.fixture(scope="session")
def studies():
    """That of the studies: PIPEWEAVER_STUDIES_BIN, else that of the check build."""
    return Studies(program("PIPEWEAVER_STUDIES_BIN", "pipeweaver_studies"))


@pytest.fixture(scope="session")
def script(pipeweaver, studies):
    """Runs a script of the studies with both programs, and returns what it prints."""
    environment = {**os.environ, "PIPEWEAVER_BIN": str(pipeweaver.path), "PIPEWEAVER_STUDIES_BIN": str(studies.path)}

    def run(name, *words, timeout=300):
        done = subprocess.run([sys.executable, STUDIES / name, *map(str, words)], env=environment, capture_output=True,
                              text=True, timeout=timeout)
        assert done.returncode == 0, f"{name}: {done.stderr}"
        return done.stdout
    return run
