"""What the Python tests share: the binary under test, a plan that it made, and how they are dealt to workers."""

import os
import pathlib
import subprocess

import pytest
from absent import left_out
from checkout import ROOT
from cli_shared import BATCH, PLAN, full
from getting_started import follow
from served import Server

# Seconds of the files that take long, here and one after the other: they begin first, so that no worker is left with
# one of them at the end. What is not listed takes a second or two.
SECONDS = {
    "browser_ui_test.py": 194, "megatron_schedule_torch_test.py": 106, "study_pages_test.py": 95,
    "layout_test.py": 86, "manual_test.py": 76, "package_test.py": 61, "selfcheck_torch_test.py": 56,
    "capacity_ray_test.py": 54, "sharded_targets_test.py": 44, "plan_test.py": 38, "capacity_test.py": 38,
    "executor_torch_test.py": 35, "service_openapi_test.py": 34, "cp_sat_test.py": 30, "interrupt_test.py": 29,
    "groups_test.py": 27, "sharded_launch_test.py": 26, "readme_test.py": 26, "emulate_test.py": 25,
    "capacity_slurm_test.py": 25, "data_plan_torch_test.py": 25, "field_cases_test.py": 25, "replicas_test.py": 25,
    "what_runs_where_slurm_torch_test.py": 24, "check_answers_test.py": 24, "executor_faults_torch_test.py": 24,
    "service_faults_test.py": 24, "titan_torch_test.py": 23, "executor_layouts_torch_test.py": 23,
    "check_torch_test.py": 22, "hugging_face_test.py": 22, "service_test.py": 22, "remote_test.py": 21,
    "bench_service_test.py": 20, "options_test.py": 20, "validate_command_test.py": 19, "profile_torch_test.py": 17,
    "partition_test.py": 17, "plan_now_test.py": 17, "mix_test.py": 16, "browser_service_test.py": 16,
    "executor_example_torch_test.py": 16, "browser_report_test.py": 16, "bad_options_test.py": 16,
    "check_commands_test.py": 15, "measured_test.py": 15, "bench_plan_test.py": 15, "capacity_scripts_test.py": 14,
    "placement_test.py": 14, "check_readings_test.py": 14, "schema_test.py": 14,
    "pipelining_example_torch_test.py": 14, "anchor_test.py": 13, "mcp_test.py": 13, "validate_test.py": 13,
    "megatron_flags_test.py": 13, "skill_test.py": 12, "wheel_test.py": 12, "capacity_engines_test.py": 11,
    "batch_file_test.py": 11, "whole_plan_test.py": 11, "convert_forms_test.py": 10, "cli_torch_test.py": 9,
    "data_plan_pages_torch_test.py": 9, "what_runs_where_ray_test.py": 9, "ui_test.py": 9, "round_trip_test.py": 9,
    "devices_test.py": 8, "emit_test.py": 8, "data_plan_test.py": 7, "output_kind_test.py": 7,
    "browser_play_test.py": 7, "own_sizes_test.py": 7, "encoders_test.py": 7, "yaml_test.py": 7, "check_test.py": 7,
    "streams_test.py": 7, "mutated_inputs_test.py": 6, "diffusion_page_torch_test.py": 6, "input_test.py": 6,
    "one_number_test.py": 6, "browser_capacity_test.py": 6, "getting_started_test.py": 5,
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


def pytest_collection_modifyitems(config, items):
    """Long files first; tests that are marked `full_form` only where full forms are run, or what they need is named."""
    items.sort(key=lambda item: -SECONDS.get(item.path.name, 0))
    if full() or "PIPEWEAVER_PLAYGROUND" in os.environ:
        return
    left_out = [item for item in items if item.get_closest_marker("full_form")]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


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
