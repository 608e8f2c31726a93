"""Imports into a cost database: what stops them, and what they leave. Traces of any size in bounded memory."""

import csv
import ctypes
import gzip
import json
import random
import resource
import signal
import sqlite3
import subprocess
import time
from decimal import Decimal

import pytest
from checkout import ROOT
from used import peak_of

GEMM = "dtype,m,n,k,latency_us\n"


def rows(count, first=1):
    return "".join(f"bf16,{8 * (first + i)},256,512,{10 + (first + i) / 100:.3f}\n" for i in range(count))


@pytest.fixture
def database(pipeweaver, tmp_path):
    """A database of some thousand points, and a table that is not in it yet."""
    (tmp_path / "old.csv").write_text(GEMM + rows(20_000))
    (tmp_path / "new.csv").write_text(GEMM + rows(20_000, first=30_000))
    pipeweaver("costdb", "import", tmp_path / "old.csv", "--device", "h100_sxm", "--out", tmp_path / "own.sqlite")
    return tmp_path / "own.sqlite"


def command(pipeweaver, database, table="new.csv"):
    return [pipeweaver.path, "costdb", "import", database.parent / table, "--device", "h100_sxm", "--into", database]


def points(database):
    """Number of GEMM points, by SQLite itself, which also looks through the file."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return connection.execute("SELECT COUNT(*) FROM gemm").fetchone()[0]


@pytest.mark.alone
def test_killing_an_import_at_20_random_points_leaves_the_old_or_the_new_database(pipeweaver, database, tmp_path):
    old = database.read_bytes()
    began = time.monotonic()
    subprocess.run(command(pipeweaver, database), check=True, capture_output=True)
    whole = time.monotonic() - began
    new = database.read_bytes()
    assert old != new
    chance = random.Random(7)
    killed = 0
    for _ in range(20):
        database.write_bytes(old)
        running = subprocess.Popen(command(pipeweaver, database), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        began = time.monotonic()
        try:
            running.wait(chance.uniform(0, whole))
            whole = min(whole, time.monotonic() - began)  # another program had the cores before
        except subprocess.TimeoutExpired:
            running.kill()
        killed += running.wait() == -signal.SIGKILL
        now = database.read_bytes()
        assert now in (old, new)
        assert points(database) == (20_000 if now == old else 40_000)
    assert killed >= 5
    # What the killed ones left stands in nobody's way, and is gone after the next import.
    database.write_bytes(old)
    subprocess.run(command(pipeweaver, database), check=True, capture_output=True)
    assert database.read_bytes() == new
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "old.csv", "own.sqlite"]


def test_a_disk_that_fills_leaves_the_old_database(pipeweaver, database, tmp_path):
    """A limit on the size of files stands in for the disk: writes fail in the middle."""
    old = database.read_bytes()

    def little_room():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(old), len(old)))

    done = subprocess.run(command(pipeweaver, database), capture_output=True, text=True, preexec_fn=little_room)
    assert done.returncode == 3
    assert done.stderr == f"pipeweaver: {database}: cannot be replaced: File too large\n"
    assert database.read_bytes() == old
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "old.csv", "own.sqlite"]


def test_two_imports_at_once_keep_the_points_of_both(pipeweaver, database, tmp_path):
    (tmp_path / "third.csv").write_text(GEMM + rows(5_000, first=60_000))
    both = [subprocess.Popen(command(pipeweaver, database, table), stdout=subprocess.DEVNULL)
            for table in ("new.csv", "third.csv")]
    assert [one.wait() for one in both] == [0, 0]
    assert points(database) == 45_000


def as_anyone():
    """What this process begins may not write files that say so, not even as root."""
    pr_capbset_drop, cap_dac_override = 24, 1
    ctypes.CDLL(None).prctl(pr_capbset_drop, cap_dac_override, 0, 0, 0)  # refused where there is nothing to drop


def test_media_that_cannot_be_written_are_refused(pipeweaver, database, tmp_path):
    for where, said in {"/proc/own.sqlite": "/proc/own.sqlite",
                        tmp_path / "old.csv/own.sqlite":
                            f"{tmp_path}/old.csv: cannot be created: Not a directory"}.items():
        status, line = pipeweaver.fails("costdb", "import", tmp_path / "new.csv", "--device", "h100_sxm",
                                        "--out", where)
        assert status == 3 and said in line
    old = database.read_bytes()
    database.chmod(0o400)
    done = subprocess.run(command(pipeweaver, database), capture_output=True, text=True, preexec_fn=as_anyone)
    assert (done.returncode, done.stderr) == (3, f"pipeweaver: {database}: cannot be written: Permission denied\n")
    assert database.read_bytes() == old


def test_the_options_say_what_they_are_for(pipeweaver, tmp_path):
    for arguments, said in [
            (["x.csv", "--device", "h100_sxm"], "missing --out FILE: a new database"),
            (["x.csv", "--trace", "t.json"], "give one of --default FOLDER, --trace FILE and tables"),
            (["x.csv", "--device", "h100", "--out", "a", "--into", "b"], "--into: adds to a database"),
            (["x.csv", "--device", "h100", "--out", "a", "--kernels", "k.csv"], "--kernels: is for --trace only"),
            (["--trace", tmp_path / "missing.json"], "missing.json: cannot be read: No such file or directory")]:
        status, line = pipeweaver.fails("costdb", "import", *arguments)
        assert status in (2, 3) and said in line


def test_the_example_trace_gives_points_of_its_device(pipeweaver, tmp_path):
    trace = ROOT / "examples/trace.json"
    out = pipeweaver("costdb", "import", "--trace", trace, "--json", tmp_path / "report.json",
                     "--out", tmp_path / "t.sqlite")
    assert "of these mapped, to 4 points" in out
    report = json.loads((tmp_path / "report.json").read_text())
    assert sum(row["count"] for row in report["rows"] if row["kind"] == "kernel") == report["kernels"] == 6
    assert sum(row["total_ns"] for row in report["rows"] if row["kind"] == "kernel") == report["kernels_ns"]
    with sqlite3.connect(f"file:{tmp_path / 't.sqlite'}?mode=ro", uri=True) as connection:
        assert connection.execute("SELECT m, n, k, latency_ns FROM gemm ORDER BY m").fetchall() == [
            (4096, 5120, 5120, 330_750), (8192, 5120, 5120, 640_900)]
        assert connection.execute("SELECT device FROM source").fetchall() == [("h100_sxm",)]
    wrong = subprocess.run([pipeweaver.path, "costdb", "import", "--trace", trace, "--device", "a100_sxm", "--out",
                            tmp_path / "x.sqlite"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "is h100_sxm, but --device says a100_sxm" in wrong.stderr
    assert not (tmp_path / "x.sqlite").exists()


def test_kernels_of_the_collected_traces_keep_nanoseconds_and_order(pipeweaver, shared, tmp_path):
    """Every kernel and copy of each stream, in the order of start, exact to the nanosecond, beside another reader."""
    for trace in sorted((shared / "data/traces").glob("*.json.gz")):
        pipeweaver("costdb", "import", "--trace", trace, "--kernels", tmp_path / "kernels.csv")
        with open(tmp_path / "kernels.csv", newline="") as file:
            got = [(int(row["device"]), int(row["stream"]), int(row["start_ns"]), int(row["duration_ns"]), row["name"])
                   for row in csv.DictReader(file)]
        events = json.loads(gzip.open(trace).read(), parse_float=Decimal, strict=False)["traceEvents"]
        expected = [(event["args"]["device"], event["args"]["stream"], int(Decimal(event["ts"]) * 1000),
                     int(Decimal(event["dur"]) * 1000), event["name"])
                    for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
        expected.sort(key=lambda kernel: kernel[:3])  # stable: equal starts stay in the order of the file
        assert got == expected, trace.name


def test_memory_does_not_grow_with_the_trace(pipeweaver, tmp_path):
    """20 and 160 MB of events, as gzip members that repeat: the peak stays, below 64 MB."""
    def write(path, times):
        kernel = ('{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1712195495519689.125,"dur":4.5,"args":'
                  '{"External id":7,"device":0,"stream":7,"correlation":8,"grid":[512,1,1],"block":[512,1,1]}},\n')
        operator = ('{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":1,"args":{"External id":7,'
                    '"Input Dims":[[64,32],[32,16]],"Input type":["float","float"]}},\n')
        block = gzip.compress((kernel * 400 + operator * 100).encode() * 50)
        with open(path, "wb") as file:
            file.write(gzip.compress(b"[\n"))
            for _ in range(times):
                file.write(block)
            file.write(gzip.compress(b"{}]\n"))

    write(tmp_path / "small.json.gz", 4)
    write(tmp_path / "large.json.gz", 30)
    (_, small, _), (status, large, _) = (peak_of([pipeweaver.path, "costdb", "import", "--trace", tmp_path / name,
                                                  "--kernels", tmp_path / "k.csv"])
                                         for name in ("small.json.gz", "large.json.gz"))
    assert status == 0 and large < 64 << 20
    assert large < small + (16 << 20)
