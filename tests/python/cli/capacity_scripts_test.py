"""The scripts of `pipeweaver capacity --emit-slurm`, run by an sbatch that is none: one task after the other, here."""

import os
import subprocess

import pytest
from capacity_study import CELLS, STUDY, results

SBATCH = """\
#!/bin/bash
# Notes how it was called, and runs the script: all tasks of an array, or the script once.
printf '%q ' "$@" >>"$CALLS" && echo >>"$CALLS"
script=${@: -1}
array=$(sed -n 's/^#SBATCH --array=0-//p' "$script")
for task in $(seq 0 "${array:-0}"); do
  SLURM_ARRAY_TASK_ID=$task bash "$script" >>"$CALLS.log" || exit
done
echo "7$(grep -c . "$CALLS");a cluster"
"""


@pytest.fixture(scope="module")
def study(pipeweaver, tmp_path_factory):
    """A study's file, and its results as the one command writes them."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.yaml").write_text(STUDY)
    pipeweaver("capacity", folder / "study.yaml", "--out", folder / "rent", "--quiet")
    return folder / "study.yaml", results(folder / "rent")


@pytest.fixture
def submit(tmp_path):
    """Runs submit.sh with that sbatch; returns what it printed and the calls of sbatch."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sbatch").write_text(SBATCH)
    (tmp_path / "bin/sbatch").chmod(0o755)

    def submit(jobs, *options):
        calls = tmp_path / "calls"
        calls.unlink(missing_ok=True)
        environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "CALLS": str(calls)}
        done = subprocess.run(["bash", jobs / "submit.sh", *options], env=environment, cwd="/", capture_output=True,
                              text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout, calls.read_text().splitlines()
    return submit


def test_the_scripts_give_the_bytes_of_the_one_command(pipeweaver, study, submit, tmp_path):
    file, expected = study
    jobs, rent = tmp_path / "jobs of 'mine'", tmp_path / "rent $1 100 %"
    pipeweaver("capacity", file, "--emit-slurm", jobs, "--shards", "3", "--out", rent)
    assert sorted(path.name for path in jobs.iterdir()) == ["array.sbatch", "merge.sbatch", "study.json", "submit.sh"]
    said, calls = submit(jobs, "--partition=cpu", "--time=30")
    assert said == f"shards: job 71, merge: job 72, results and logs: {rent}\n"
    assert results(rent) == expected
    array, merge = calls
    assert "--partition=cpu --time=30 " in array and "--partition=cpu --time=30 " in merge
    assert "--dependency=afterok:71 " in merge and "--dependency" not in array
    assert "100\\ %%/logs/shards-%A-%a.log" in array


@pytest.mark.parametrize("folders", [1, 4])
def test_four_processes_at_once_give_the_bytes_of_the_one_command(pipeweaver, study, tmp_path, folders):
    file, expected = study
    outs = [tmp_path / f"part{shard % folders}" for shard in range(4)]
    processes = [subprocess.Popen([pipeweaver.path, "capacity", file, "--out", out, "--shard", f"{shard}/4", "--quiet"])
                 for shard, out in enumerate(outs)]
    assert [process.wait(300) for process in processes] == [0, 0, 0, 0]
    pipeweaver("capacity", "merge", *sorted(set(outs)), "--out", tmp_path / "rent")
    assert results(tmp_path / "rent") == expected


def test_what_is_judged_is_not_judged_again(pipeweaver, study, submit, tmp_path):
    file, expected = study
    pipeweaver("capacity", file, "--emit-slurm", tmp_path / "jobs", "--shards", "2", "--out", tmp_path / "rent")
    submit(tmp_path / "jobs")
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "rent/cells").iterdir()}
    assert len(times) == CELLS
    last = max(times)
    last.unlink()
    submit(tmp_path / "jobs")
    again = {path: path.stat().st_mtime_ns for path in (tmp_path / "rent/cells").iterdir()}
    assert [path for path in times if again[path] != times[path]] == [last]
    assert results(tmp_path / "rent") == expected


def test_the_program_may_lie_elsewhere_on_the_nodes(pipeweaver, study, submit, tmp_path, monkeypatch):
    file, _ = study
    pipeweaver("capacity", file, "--emit-slurm", tmp_path / "jobs", "--shards", "2", "--out", tmp_path / "rent")
    other = tmp_path / "a program"
    other.write_text(f'#!/bin/bash\necho "$2" >>{tmp_path}/studies\n')
    other.chmod(0o755)
    monkeypatch.setenv("PIPEWEAVER", str(other))
    submit(tmp_path / "jobs")
    assert (tmp_path / "studies").read_text().splitlines() == 2 * [str(tmp_path / "jobs/study.json")] + ["merge"]


@pytest.mark.parametrize("options, line", [
    (["--shards", "0"], "--shards: is '0', must be a whole number from 1 to 1000000"),
    (["--shard", "0/2"], "--emit-slurm and --shard: allowed is one of the two"),
])
def test_bad_options_leave_no_scripts(pipeweaver, study, tmp_path, options, line):
    status, said = pipeweaver.fails("capacity", study[0], "--emit-slurm", tmp_path / "jobs", *options)
    assert (status, said) == (2, f"pipeweaver: {line}")
    assert not (tmp_path / "jobs").exists()


def test_shards_are_slurms(pipeweaver, study, tmp_path):
    status, said = pipeweaver.fails("capacity", study[0], "--out", tmp_path / "rent", "--shards", "3")
    assert (status, said) == (2, "pipeweaver: --shards: goes with --emit-slurm alone")
