"""What the Python tests share: the binary under test, a plan that it made, and how they are dealt to workers."""

import os
import pathlib
import subprocess

import pytest
from absent import left_out
from checkout import ROOT
from cli_shared import BATCH, PLAN
from getting_started import follow
from served import Server

# Seconds of the files that take long, here and one after the other: they begin first, so that no worker is left with
# one of them at the end. What is not listed takes a second or two.
SECONDS = {
    "remote_test.py": 50, "service_faults_test.py": 45, "service_units_test.py": 10,
    "served_by_nobody_torch_test.py": 20, "capacity_slurm_test.py": 45, "capacity_ray_test.py": 30,
    "capacity_engines_test.py": 10,
    "wheel_test.py": 15, "mutated_inputs_test.py": 25,
    "megatron_schedule_torch_test.py": 90, "data_plan_torch_test.py": 90, "data_plan_pages_torch_test.py": 12,
    "executor_torch_test.py": 35, "executor_layouts_torch_test.py": 40,
    "executor_inner_torch_test.py": 20, "cp_sat_test.py": 33, "data_plan_test.py": 10, "manual_test.py": 25,
    "emulate_test.py": 24, "mcp_test.py": 15,
    "replicas_test.py": 20, "package_test.py": 20, "executor_faults_torch_test.py": 17, "getting_started_test.py": 15,
    "getting_started_torch_test.py": 15, "plan_test.py": 12, "service_openapi_test.py": 12, "torch_csv_test.py": 11,
    "titan_torch_test.py": 30, "selfcheck_torch_test.py": 40,
    "cli_torch_test.py": 10, "check_commands_test.py": 10, "service_test.py": 10, "hugging_face_test.py": 10,
    "bench_plan_test.py": 9, "bench_service_test.py": 25, "interrupt_test.py": 60,
    "browser_service_test.py": 40, "browser_ui_test.py": 60, "browser_play_test.py": 6,
     "browser_playground_test.py": 5, "browser_capacity_test.py": 40,
    "study_pages_test.py": 120, "check_answers_test.py": 40, "pipelining_example_torch_test.py": 40,
    "diffusion_page_torch_test.py": 25, "whole_plan_test.py": 20,
    "executor_example_torch_test.py": 16, "profile_torch_test.py": 8,
    "measured_test.py": 12, "measured_page_torch_test.py": 12, "measured_torch_test.py": 8, "drift_test.py": 8,
    "partition_test.py": 7, "browser_report_test.py": 6, "layout_test.py": 60, "costdb_calibrate_test.py": 5,
}
# Files of one group run on one worker and share what their fixtures make; a file is a group of its own unless it is
# here, and so is a test that is here. Other tests of the names below it share nothing dear: each goes to whichever
# worker is free.
TOGETHER = {"getting_started_test.py": "docs", "getting_started_torch_test.py": "docs",
            "study_pages_test.py::test_a_page_prints_what_it_shows_in_under_two_minutes[three-trainings.md]": "shares",
            "study_pages_test.py::test_the_speeds_are_what_the_study_says_and_a_job_may_name_it": "shares"}
APART = ("cp_sat_test.py", "service_openapi_test.py", "study_pages_test.py", "layout_test.py", "interrupt_test.py",
         "manual_test.py::test_the_examples_of_a_page_run")


def group_of(nodeid):
    """The name of the tests that must run on the same worker as this one."""
    place = nodeid.rpartition("/")[2]
    file = place.partition("::")[0]
    return TOGETHER.get(place) or (place if place.startswith(APART) else TOGETHER.get(file, file))


def pytest_ignore_collect(collection_path, config):
    """Where only tests that run alone are asked for, other files are not imported, PyTorch and Megatron with them."""
    is_file = collection_path.suffix == ".py" and config.option.markexpr == "alone"
    return True if is_file and "mark.alone" not in collection_path.read_text() else None


def pytest_collection_modifyitems(items):
    """Long files first."""
    items.sort(key=lambda item: -SECONDS.get(item.path.name, 0))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Deals tests to workers by group_of(), in the order above, whatever --dist says: pytest-xdist 3.8 does not see its
    own marks of groups under pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

    config.option.loadscopereorder = False
    return ByGroup(config, log)


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
        # On a slow machine there are lines of progress before it.
        lines = [line for line in done.stderr.splitlines() if not line.endswith((" left", " % done"))]
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


@pytest.fixture
def begin(pipeweaver):
    """Begins servers that are gone when the test ends."""
    servers = []

    def begin(*options, **more):
        servers.append(Server(pipeweaver.path, *options, **more))
        return servers[-1]

    yield begin
    for server in servers:
        server.kill()


@pytest.fixture(scope="session")
def planned(pipeweaver, tmp_path_factory):
    """A plan made with a fixed number of rounds on one thread."""
    folder = tmp_path_factory.mktemp("plan") / "one"
    pipeweaver(*PLAN, *BATCH, "--max-rounds", "20", "--threads", "1", "--out", folder)
    return folder


@pytest.fixture(scope="session")
def followed(pipeweaver, tmp_path_factory):
    """docs/getting-started.md, followed: the folder, and what each block of commands printed."""
    folder = tmp_path_factory.mktemp("getting_started")
    return folder, follow(pipeweaver, folder)
