"""The package in a checkout where nothing is built: what runs there, and what says that it needs the compiled part."""

import json
import pathlib
import shlex
import shutil
import subprocess
import sys
import tarfile

import pytest
from absent import needed
from checkout import ROOT
from getting_started import blocks, page_of

PAGE = page_of("docs/your-own-data.md")
NOT_BUILT = "pipeweaver._core is not built: `pip install .` in the checkout builds it"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """What a fresh clone has of the package, and the page's photos."""
    top = tmp_path_factory.mktemp("checkout")
    for name in ("pipeweaver", "python/pipeweaver", "examples/photos"):
        shutil.copytree(ROOT / name, top / name, ignore=shutil.ignore_patterns("_core*.so", "bin", "__pycache__"))
    return top


def python(folder, *arguments, **environment):
    """Python with its standard library alone: no package of this environment or of the user is there."""
    return subprocess.run([sys.executable, "-S", "-s", *arguments], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)


def test_a_batch_file_is_made_as_the_page_says(checkout):
    program, *arguments = shlex.split(blocks("sh", PAGE)[0])
    assert program == "python3"  # Debian has no python
    done = python(checkout, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == blocks("", PAGE)[0]
    samples = [json.loads(line) for line in (checkout / "batch.jsonl").read_text().splitlines()]
    assert [sample["id"] for sample in samples] == ["chart", "harbour", "street"]


def test_a_data_plan_needs_numpy_alone(checkout):
    packages = pathlib.Path(needed("numpy").__file__).parents[1]
    script = """
from pipeweaver.data import AssignedSteps, EpochSteps, Sizes, balance
steps = EpochSteps(Sizes([5, 6, 7, 8]), 1, 2)
assignment = balance([5, 6, 7, 8], 2)
print(type(balance).__name__, assignment.microbatches, len(AssignedSteps([assignment])))
"""
    done = python(checkout, "-c", script, PYTHONPATH=f"{checkout / 'python'}:{packages}")
    assert (done.returncode, done.stdout) == (0, "function 1 1\n"), done.stderr


@pytest.mark.parametrize("script", ["from pipeweaver import Planner", "import pipeweaver; pipeweaver.__version__",
                                    "from pipeweaver import _core", "import pipeweaver.capacity",
                                    "from pipeweaver.drift import Drift; Drift()"])
def test_what_needs_the_compiled_part_says_so(checkout, script):
    done = python(checkout, "-c", script)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"pipeweaver.errors.NotBuiltError: {NOT_BUILT}"


def test_commands_that_need_it_say_so_in_one_line(checkout, tmp_path):
    done = python(checkout, "-m", "pipeweaver.data", "job.json")
    assert (done.returncode, done.stderr) == (3, f"pipeweaver: {NOT_BUILT}\n")
    (tmp_path / ".nv-meta").mkdir()
    split = tmp_path / ".nv-meta/split.yaml"
    split.write_text("split_parts: {train: [0.tar]}\n")
    tarfile.open(tmp_path / "0.tar", "w").close()
    done = python(checkout, "-m", "pipeweaver.data.convert", str(tmp_path), "--out", "energon.jsonl")
    assert (done.returncode, done.stderr) == (
        2, f"pipeweaver: {split}: YAML is read by the compiled part, which `pip install .` in the checkout builds, or "
        "by the package pyyaml; allowed without them is a folder of shards without .nv-meta\n")
    assert not (checkout / "energon.jsonl").exists()


@pytest.mark.parametrize("name", ["pipeweaver", "pipeweaver.data"])
def test_a_package_lists_its_names_before_they_are_loaded(checkout, name):
    done = python(checkout, "-c", f"import {name} as package; print({{*package.__all__}} - {{*dir(package)}})\n"
                                  "package.nothing")
    assert done.stdout == "set()\n"
    assert done.stderr.splitlines()[-1] == f"AttributeError: module '{name}' has no attribute 'nothing'"


def test_an_installed_package_goes_before_the_checkout(checkout, tmp_path):
    (tmp_path / "pipeweaver").mkdir()
    (tmp_path / "pipeweaver/__init__.py").write_text("")
    (tmp_path / "pipeweaver/__main__.py").write_text("print(__file__)")
    done = python(checkout, "-m", "pipeweaver", PYTHONPATH=str(tmp_path))
    assert (done.stdout, done.stderr) == (f"{tmp_path}/pipeweaver/__main__.py\n", "")
