"""A capacity study on two nodes of Ray on loopback, one of which dies in the middle."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest
from absent import needed
from capacity_study import CELLS, STUDY, results

needed("pipeweaver")
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
needed("ray")
cluster_utils = needed("ray.cluster_utils")
utils = needed("ray._private.utils")


# Python on the node that will die: it judges one cell of a shard, says so, and then takes for ever.
HANGS = """\
import pathlib, time
import pipeweaver._shards as shards

def hang(work, shard, judge=shards.judge):
    judge(work, shards.Shard(shard.index, shard.cells[:1]))
    pathlib.Path({marker!r}).write_text(str(shard.index))
    time.sleep(600)

shards.judge = hang
"""


class Nodes:
    """Two nodes with a core each, one of which hangs in its first shard; the driver is none of them."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ray-"))  # short, since the path of a socket must be
        self.marker = self.folder / "hangs"
        self.cluster = cluster_utils.Cluster()

    def begin(self):
        # Ray notes its head here, whatever its folder is, and does not make it.
        pathlib.Path(utils.get_ray_address_file(None)).parent.mkdir(parents=True, exist_ok=True)
        node = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 100 << 20}
        self.cluster.add_node(**node, temp_dir=str(self.folder))
        (self.folder / "sitecustomize.py").write_text(HANGS.format(marker=str(self.marker)))
        os.environ["PYTHONPATH"] = str(self.folder)
        try:
            self.other = self.cluster.add_node(**node)
        finally:
            del os.environ["PYTHONPATH"]

    def lose(self, driver, out):
        """In the middle of a shard the node beside the head is gone at once, and all that runs on it. Returns the
        shard's number."""
        deadline = time.monotonic() + 300
        while not self.marker.exists() or not list(out.glob("cells/*.json")):
            assert driver.poll() is None and time.monotonic() < deadline, driver.communicate()
            time.sleep(0.05)
        self.cluster.remove_node(self.other, allow_graceful=False)
        return self.marker.read_text()

    def end(self):
        with contextlib.suppress(Exception):  # of a cluster that never came up
            self.cluster.shutdown()
        for pid in filter(str.isdigit, os.listdir("/proc")):  # Ray forgets a node that came up too late
            with contextlib.suppress(OSError):
                if f"{self.folder}/" in pathlib.Path(f"/proc/{pid}/cmdline").read_text():
                    os.kill(int(pid), signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def alone(pipeweaver, tmp_path_factory):
    """A study's file, and its results as the one command writes and prints them."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.yaml").write_text(STUDY)
    printed = pipeweaver("capacity", folder / "study.yaml", "--out", folder / "rent", "--quiet")
    return folder / "study.yaml", results(folder / "rent"), printed


@pytest.fixture
def nodes():
    """Ray gives a node 30 s to come up, which on a busy machine may be too few."""
    for tries_left in (2, 1, 0):
        nodes = Nodes()
        try:
            nodes.begin()
            break
        except Exception:
            nodes.end()
            if tries_left == 0:
                raise
    yield nodes
    nodes.end()


def begin(study, out, *options):
    command = [sys.executable, "-m", "pipeweaver.capacity", str(study), "--out", str(out), *options]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)


def test_a_lost_node_changes_no_byte(alone, nodes, tmp_path):
    study, expected, printed = alone
    out = tmp_path / "rent"
    driver = begin(study, out, "--address", nodes.cluster.address, "--shards", "4")
    nodes.lose(driver, out)
    said, warned = driver.communicate(timeout=300)
    assert (driver.returncode, said) == (0, printed), warned
    assert results(out) == expected


def test_what_is_lost_for_good_is_named_and_the_rest_kept(alone, nodes, tmp_path):
    study, expected, _ = alone
    out = tmp_path / "rent"
    driver = begin(study, out, "--address", nodes.cluster.address, "--shards", "4", "--retries", "0", "--quiet")
    lost = nodes.lose(driver, out)
    said, warned = driver.communicate(timeout=300)
    assert (driver.returncode, said) == (3, "")
    assert warned.splitlines()[-1] == (f"pipeweaver.capacity: shard {lost}: its worker was lost, 1 of 1 tries; what "
                                       "the others judged stays, run it again to go on")
    kept = {path: path.stat().st_mtime_ns for path in out.glob("cells/*.json")}
    assert len(kept) == CELLS - 2
    assert results(out).keys() < expected.keys()
    assert begin(study, out, "--engine", "local").wait(300) == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert results(out) == expected


def test_no_cluster_is_one_line(alone, tmp_path):
    driver = begin(alone[0], tmp_path / "rent", "--address", "127.0.0.1:9")
    said, warned = driver.communicate(timeout=300)
    assert (driver.returncode, said) == (3, "")
    assert warned.startswith("pipeweaver.capacity: --address: no Ray cluster at 127.0.0.1:9: ")
    assert len(warned.splitlines()) == 1 and not (tmp_path / "rent").exists()


RAISES = """\
import sys
import pipeweaver
from pipeweaver._ray import OnRay
from pipeweaver._shards import Shard, Work

with OnRay(sys.argv[1], 1, 1) as judge:
    try:
        list(judge(Work("rent.yaml", '{"format": "pipeweaver-study/1", "axes": {}}', 1, "/"), [Shard(0, [0])], print))
    except pipeweaver.InputError as error:
        print("driver:", error)
"""


def test_what_a_task_raises_its_driver_raises(nodes):
    done = subprocess.run([sys.executable, "-c", RAISES, nodes.cluster.address], capture_output=True, text=True,
                          timeout=300)
    assert done.stdout.endswith("driver: rent.yaml: axes: has no `model`, which every study needs\n"), done.stderr
