"""A capacity study as an array of Slurm on two nodes: a task is requeued in its middle, the node of another dies."""

import pytest
from absent import left_out
from capacity_study import CELLS, STUDY, results
from pipeweaver import _core
from slurm_cluster import SlurmCluster, missing

if missing():
    left_out(f"Slurm is not installed: no {', '.join(missing())}")

SHARDS = 4
# The first time that task 0 or 1 runs it judges one cell and then hangs.
PROGRAM = """\
#!/bin/bash
run=${SLURM_RESTART_COUNT:-0}
[ -z "${SLURM_ARRAY_TASK_ID:-}" ] || echo "$SLURM_ARRAY_TASK_ID $run $SLURMD_NODENAME" >>"$NOTES/runs"
if [ "${SLURM_ARRAY_TASK_ID:-9}" -gt 1 ] || [ "$run" -gt 0 ]; then
  exec "$REAL" "$@"
fi
first=FIRST_$SLURM_ARRAY_TASK_ID
"$REAL" "$@" &
until [ -e "$RENT/cells/${!first}" ]; do sleep 0.01; done
kill -STOP $!
echo "$SLURMD_NODENAME" >"$NOTES/node-$SLURM_ARRAY_TASK_ID"
wait
"""


@pytest.fixture
def slurm():
    cluster = SlurmCluster()
    yield cluster
    cluster.end()


def states_of(slurm, job):
    return {name: state for name, state in slurm.states().items() if name.partition("_")[0] == job}


def test_requeued_tasks_and_a_lost_node_change_no_byte(pipeweaver, slurm, tmp_path):
    # Given a study, its results, and its scripts.
    study, rent, jobs = tmp_path / "study.yaml", tmp_path / "rent 100 %", tmp_path / "jobs"
    study.write_text(STUDY)
    pipeweaver("capacity", study, "--out", tmp_path / "alone", "--quiet")
    pipeweaver("capacity", study, "--emit-slurm", jobs, "--shards", SHARDS, "--out", rent)
    program = tmp_path / "hangs"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    slurm.environment |= {"PIPEWEAVER": str(program), "REAL": str(pipeweaver.path.resolve()),
                          "NOTES": str(tmp_path), "RENT": str(rent)}
    first = _core.Study.read(str(study)).files  # cell c is in shard c mod 4
    slurm.environment |= {"FIRST_0": first[0], "FIRST_1": first[1]}

    # When a task is requeued, and the other node loses power, both in the middle of a shard.
    said = slurm("bash", jobs / "submit.sh", cwd=tmp_path)
    array, merge = said.split(",")[0].split()[-1], said.split(",")[1].split()[-1]
    nodes = [tmp_path / f"node-{task}" for task in (0, 1)]
    slurm.wait("two tasks that hang", 200, lambda: all(node.exists() and node.read_text() for node in nodes))
    kept = {path.name: path.stat().st_mtime_ns for path in (rent / "cells").iterdir()}
    assert 2 <= len(kept) < CELLS
    slurm("scontrol", "requeue", f"{array}_0")
    dead = nodes[1].read_text().strip()
    slurm.kill_node(dead)
    slurm.wait("end of the array", 300, lambda: set(states_of(slurm, array).values()) == {"COMPLETED"})
    slurm.wait("end of the merge", 200, lambda: states_of(slurm, merge)[merge] == "COMPLETED")

    # Then both have run again, on what was left, and the results are those of the one command.
    runs = [line.split() for line in (tmp_path / "runs").read_text().splitlines()]
    assert sorted(run[:2] for run in runs) == [["0", "0"], ["0", "1"], ["1", "0"], ["1", "1"], ["2", "0"], ["3", "0"]]
    assert [node for task, run, node in runs if (task, run) == ("1", "1")] != [dead]
    assert {name: (rent / "cells" / name).stat().st_mtime_ns for name in kept} == kept
    assert results(rent) == results(tmp_path / "alone")
