"""`python -m pipeweaver.capacity` on this machine: the files of the command, and its errors."""

import os
import signal
import subprocess
import sys
import time

import pytest
from absent import needed
from capacity_study import CELLS, STUDY, results

pipeweaver = needed("pipeweaver")
capacity = needed("pipeweaver.capacity")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    file = tmp_path_factory.mktemp("study") / "study.yaml"
    file.write_text(STUDY)
    return file


@pytest.fixture(scope="session")
def command(pipeweaver):
    """The binary; its fixture has the package's name."""
    return pipeweaver


def run(*arguments, before=""):
    """The module as a program, after some Python."""
    script = f"import sys\n{before}\nfrom pipeweaver.capacity import main\nsys.exit(main(sys.argv[1:]))"
    return subprocess.run([sys.executable, "-c", script, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=300)


def test_one_shard_after_the_other_gives_the_files_of_the_command(command, study, tmp_path):
    printed = command("capacity", study, "--out", tmp_path / "command", "--quiet")
    told = []
    assert capacity.run(study, tmp_path / "module", engine="local", shards=3, progress=told.append) == printed
    assert results(tmp_path / "module") == results(tmp_path / "command")
    assert [one.done for one in told] == list(range(1, CELLS + 1))
    assert told[-1].seconds_left == 0 and all(one.seconds_left > 0 for one in told[:-1])
    assert str(told[0]).startswith(f"1 of {CELLS} cells, ")


def test_cells_that_are_there_are_not_judged_again(study, tmp_path):
    capacity.run(study, tmp_path, engine="local")
    files = sorted(tmp_path.glob("cells/*.json"))
    times = [path.stat().st_mtime_ns for path in files]
    files[2].unlink()
    told = []
    capacity.run(study, tmp_path, engine="local", shards=5, progress=told.append)
    assert [one.done for one in told] == [CELLS]
    again = [path.stat().st_mtime_ns for path in files]
    assert [k for k in range(CELLS) if again[k] != times[k]] == [2]


def test_a_file_that_was_copied_in_part_is_judged_again(study, tmp_path):
    capacity.run(study, tmp_path, engine="local")
    file = min(tmp_path.glob("cells/*.json"))
    whole = file.read_bytes()
    file.write_bytes(whole[:100])
    capacity.run(study, tmp_path, engine="local")
    assert file.read_bytes() == whole


def test_a_cell_of_other_content_is_refused(study, tmp_path):
    mine = capacity._core.Study.read(str(study))
    other = capacity._core.Study("other", mine.document.replace('"max-rounds":2', '"max-rounds":3'))
    with pytest.raises(pipeweaver.InputError, match="another version of pipeweaver, or other content"):
        capacity._keep(frozenset(mine.files), tmp_path, {other.files[0]: b"{}"})
    assert list(tmp_path.iterdir()) == []


def test_without_ray_the_line_says_how_to_get_it(study, tmp_path):
    done = run(study, "--out", tmp_path / "rent", before="sys.modules['ray'] = None")
    assert done.returncode == 2
    assert done.stderr.startswith("pipeweaver.capacity: --engine: ray needs Ray, which cannot be imported")
    assert done.stderr.endswith("pip install ray, or take --engine local\n")
    assert not (tmp_path / "rent").exists()


@pytest.mark.parametrize("arguments, status, line", [
    (["STUDY"], 2, "missing --out DIR: a folder for the results"),
    (["--out", "rent"], 2, "the following arguments are required: STUDY"),
    (["STUDY", "--out", "OUT", "--engine", "dask"], 2, "--engine: is 'dask', must be one of ray, local"),
    (["STUDY", "--out", "OUT", "--engine", "local", "--address", "auto"], 2,
     "--address: goes with --engine ray alone"),
    (["STUDY", "--out", "OUT", "--shards", "0"], 2, "--shards: is 0, must be 1 to 100000"),
    (["STUDY", "--out", "OUT", "--shards", "x"], 2, "argument --shards: is 'x', must be a whole number"),
    (["STUDY", "--out", "OUT", "--threads", "0"], 2, "--threads: is 0, must be 1 to 1024"),
    (["STUDY", "--out", "OUT", "--retries", "1001"], 2, "--retries: is 1001, must be 0 to 1000"),
    (["/nowhere.yaml", "--out", "OUT", "--engine", "local"], 3, "/nowhere.yaml"),
    (["BAD", "--out", "OUT", "--engine", "local"], 2, "BAD:2: "),
])
def test_what_is_wrong_is_one_line(study, tmp_path, arguments, status, line):
    bad = tmp_path / "bad.yaml"
    bad.write_text("format: pipeweaver-study/1\naxis: {}\n")
    names = {"STUDY": study, "OUT": tmp_path / "rent", "BAD": bad}
    done = run(*(names.get(word, word) for word in arguments))
    assert (done.returncode, done.stdout) == (status, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("pipeweaver.capacity: " + line.replace("BAD", str(bad)))
    assert not (tmp_path / "rent").exists()


def test_ctrl_c_keeps_what_is_judged(tmp_path):
    study, out = tmp_path / "long.yaml", tmp_path / "rent"
    few, many = "global-batch: [32, 64]", "global-batch: [32, 64, 96, 128, 160, 192, 224, 256]"
    assert few in STUDY
    study.write_text(STUDY.replace(few, many))
    cells = 4 * CELLS  # so many that not all are judged before the signal comes
    process = subprocess.Popen([sys.executable, "-m", "pipeweaver.capacity", str(study), "--out", str(out), "--engine",
                                "local"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    while not list(out.glob("cells/*.json")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGINT)
    said, warned = process.communicate(timeout=300)
    assert (process.returncode, said) == (130, "")
    assert warned == "pipeweaver.capacity: interrupted; what was judged stays, run it again to go on\n"
    assert 0 < len(list(out.glob("cells/*.json"))) < cells
