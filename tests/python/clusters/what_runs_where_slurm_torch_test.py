"""docs/what-runs-where.md: its scripts and commands run on two nodes of Slurm, and train over gloo."""

import os
import pathlib
import re
import sqlite3
import sys

import pytest
from absent import left_out, needed
from checkout import ROOT
from getting_started import blocks, page_of
from slurm_cluster import SlurmCluster, free_ports, missing

needed("pipeweaver.torch")
if missing():
    left_out(f"Slurm is not installed: no {', '.join(missing())}")

PAGE = page_of("docs/what-runs-where.md")
LINE = re.compile(r"^(step \d+, process \d+: replica \d+ rank \d+ on node \d+), loss ([0-9.]+)$", re.MULTILINE)
SERVED = re.compile(r"^step (\d+) rank (\d+): loss ([0-9.]+), (served|by policy), waited", re.MULTILINE)


@pytest.fixture(scope="module")
def slurm(pipeweaver, tmp_path_factory):
    """A cluster whose jobs find the program and this Python, in a folder beside the examples."""
    cluster = SlurmCluster()
    cluster.work = tmp_path_factory.mktemp("work")
    (cluster.work / "examples").symlink_to(ROOT / "examples")
    paths = [pipeweaver.path.resolve().parent, pathlib.Path(sys.executable).parent, cluster.environment["PATH"]]
    ports = free_ports(3)
    cluster.environment |= {"PATH": ":".join(map(str, paths)), "GLOO_SOCKET_IFNAME": "lo", "LISTEN": "127.0.0.1",
                            "MASTER_PORT": str(ports[0]), "SERVE_PORT": str(ports[1]), "STEPS": "3",
                            "PET_MASTER_PORT": str(ports[2]), "OMP_NUM_THREADS": "1"}
    yield cluster
    cluster.end()


def ended(slurm, *jobs):
    """What the jobs printed, in the end."""
    def over():
        return all(slurm.states()[job] not in ("PENDING", "RUNNING", "COMPLETING") for job in jobs)

    slurm.wait("end of the jobs", 240, over)
    said = "".join((slurm.work / f"slurm-{job}.out").read_text() for job in jobs)
    assert {slurm.states()[job] for job in jobs} == {"COMPLETED"}, said
    return said


def submitted(slurm, name):
    """Submits the script of the page that has this job name; its number."""
    script, = [text for text in blocks("bash", PAGE) if f"--job-name={name} " in text]
    (slurm.work / f"{name}.sbatch").write_text(script)
    return slurm("sbatch", "--parsable", f"{name}.sbatch", cwd=slurm.work).strip()


def test_a_job_plans_once_and_trains_on_two_nodes(slurm):
    printed = dict(LINE.findall(ended(slurm, submitted(slurm, "planned"))))
    shown = dict(LINE.findall("".join(blocks("", PAGE))))
    assert len(printed) == 16 and len(shown) == 4
    for line, loss in shown.items():
        assert float(printed[line]) == pytest.approx(float(loss), abs=0.01)
    last = {loss for line, loss in printed.items() if line.startswith("step 3,")}
    assert len(last) == 1 and float(last.pop()) < 5


def test_a_job_waits_for_another_that_plans(slurm):
    lines, = blocks("sh", PAGE)
    said = slurm("bash", "-e", "-c", lines + 'echo "$planned"', cwd=slurm.work)
    trains, plans = re.search(r"Submitted batch job (\d+)\n(\d+)", said).groups()
    assert len(LINE.findall(ended(slurm, plans, trains))) == 16


def test_a_service_on_the_first_node_plans_for_all(slurm):
    job = submitted(slurm, "served")
    lines = SERVED.findall(ended(slurm, job))
    assert sorted((int(step), int(rank)) for step, rank, *_ in lines) == [(s, r) for s in range(3) for r in range(4)]
    for step in "012":
        assert len({loss for number, _, loss, _ in lines if number == step}) == 1
    with sqlite3.connect(slurm.work / f"keys-{job}/state/state.sqlite") as state:
        assert [count for count, in state.execute("select count(*) from session")] == [1]
    assert all((slurm.work / f"keys-{job}" / name).stat().st_mode & 0o077 == 0 for name in os.listdir(
        slurm.work / f"keys-{job}"))
