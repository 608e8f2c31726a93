"""The profiler: what a plan asks for is measured here, imported, and planned with."""

import csv
import json
import pathlib
import subprocess
import sys

import pytest
from absent import needed
from checkout import ROOT

torch = needed("torch")
package = needed("pipeweaver")

from pipeweaver.profiling import kernels, machine, tables, timing  # noqa: E402
from pipeweaver.profiling.needs import KEYS, Need, needs_of, rows_of  # noqa: E402
from pipeweaver.profiling.session import Session  # noqa: E402

STEP = {"model": str(ROOT / "examples/cpu-vlm.json"), "cluster": "cpu:2", "tp": 1, "pp": 2,
        "batch": str(ROOT / "examples/cpu-batch.jsonl")}


def flags(step):
    return [text for name, value in step.items() for text in (f"--{name}", str(value))]


FLAGS = flags(STEP)


class FakeClock:
    """A device on which the k-th sample takes what the script says, in microseconds; nothing else takes time."""

    def __init__(self, script):
        self.script, self.seconds, self.taken = script, 0.0, 0

    def now(self):
        return self.seconds

    def sample(self, run):
        run()
        microseconds = self.script[self.taken % len(self.script)]
        self.taken += 1
        self.seconds += microseconds / 1e6
        return microseconds


def gemm(m, share, n=8, k=4, pass_="forward"):
    row = {"dtype": "bf16", "m": m, "n": n, "k": k, "pass": pass_, "times": 1, "share_percent": 100 * share,
           "estimate_us": 1, "basis": "modelled"}
    return Need("gemm", {name: str(value) for name, value in row.items()})


def memory_bound(kind, pass_, **shape):
    row = dict.fromkeys(("rows", "columns", "norms", "rotated", "up", "down", "vocab"), 0) | shape
    row |= {"kind": kind, "pass": pass_, "traffic_bytes": 1000}
    return Need("elementwise", {name: str(value) for name, value in row.items()})


def profile(*arguments):
    return subprocess.run([sys.executable, "-m", "pipeweaver.profile", *map(str, arguments)], capture_output=True,
                          text=True, timeout=300)


def refusal(*arguments):
    """The one line that a profile fails with, and its exit status."""
    done = profile(*arguments)
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("pipeweaver.profile: ")
    return done.returncode, done.stderr[len("pipeweaver.profile: "):].rstrip("\n")


def test_the_spread_is_half_of_what_nine_of_ten_repetitions_lie_in():
    samples = [100.0] * 19 + [1000.0]  # one of twenty at either end does not count
    assert timing.spread_percent([*samples, 10.0] * 2) == 0
    assert timing.spread_percent([90.0, 100.0, 110.0]) == pytest.approx(10)


def test_a_steady_operator_is_repeated_until_its_spread_is_small_and_no_longer():
    clock = FakeClock([100.0])
    time = timing.measure(clock, lambda: None, seconds=1.0)
    assert (time.median_us, time.spread_percent, time.repetitions) == (100.0, 0.0, 11)
    assert clock.taken <= 11 + 21


def test_an_unsteady_operator_takes_its_share_of_the_time():
    clock = FakeClock([100.0, 200.0])
    time = timing.measure(clock, lambda: None, seconds=0.05)
    assert clock.seconds == pytest.approx(0.05, rel=0.02)
    assert time.spread_percent == pytest.approx(100 * 50 / time.median_us) and time.repetitions > 100


def test_a_slow_operator_is_measured_at_least_thrice():
    clock = FakeClock([1e6])
    assert timing.measure(clock, lambda: None, seconds=0.5).repetitions == 3


def test_the_most_important_come_first_and_the_budget_ends_the_session():
    clock = FakeClock([10_000.0])
    made = []
    session = Session(clock, lambda need: made.append(need["m"]) or (lambda: None))
    needs = [gemm(m, share) for m, share in ((1, 0.6), (2, 0.3), (3, 0.07), (4, 0.03))]
    assert not session.run(needs, until=0.2)
    assert made == sorted(made) and 1 <= len(made) < 4
    assert session.run(needs, until=100.0) and made == [1, 2, 3, 4]  # those that were measured are not again


def test_what_cannot_run_or_takes_too_much_memory_is_told_and_passed_over():
    def make(need):
        if need["m"] == 2:
            raise kernels.CannotRun("no such kernel\nat all")
        return lambda: None

    session = Session(FakeClock([1.0]), make, (kernels.CannotRun, MemoryError), lambda: 2 << 30,
                      lambda need: need["m"] << 30)
    assert session.run([gemm(1, 0.5), gemm(2, 0.3), gemm(3, 0.2)], until=1.0)
    assert [need["m"] for need, _ in session.measured.values()] == [1]
    whys = {need["m"]: why for need, why in session.refused.values()}
    assert whys[3] == "takes about 3.0 GiB, 2.0 GiB are free"


class FakeEvent:
    log = []

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self, stream):
        self.log.append(f"record on {stream}")

    def query(self):
        return len(self.log) < 9  # there before all was launched, in the first repetition

    def synchronize(self):
        self.log.append("wait")

    def elapsed_time(self, end):
        return 0.25  # milliseconds


def test_on_a_gpu_caches_are_emptied_before_and_the_gpu_sleeps_until_all_is_launched(monkeypatch):
    """There is no GPU in the test: what PyTorch would be told, in order."""
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: f"stream of {device}")
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: FakeEvent.log.append(f"sleep {cycles}"))
    clock = machine.CudaClock(torch.device("cpu"))

    class Buffer:
        def zero_(self):
            FakeEvent.log.append("flush")

    clock._buffer = Buffer()
    FakeEvent.log.clear()
    assert clock.sample(lambda: FakeEvent.log.append("run")) == 250.0
    repetition = ["record on stream of cpu", "run", "record on stream of cpu", "wait"]
    assert FakeEvent.log == ["flush", "sleep 100000", *repetition, "flush", "sleep 200000", *repetition]
    clock.sample(lambda: None)
    assert "sleep 100000" in FakeEvent.log[-5:]  # launches take no time: no longer than needed


@pytest.mark.parametrize("pass_", ["forward", "backward_input", "backward_weight"])
@pytest.mark.parametrize("dtype", [None, "fp32"])
def test_a_matrix_product_gives_what_the_pass_needs(pass_, dtype):
    run = kernels.Kernels(torch.device("cpu"), dtype).make(gemm(16, 1, n=8, k=4, pass_=pass_))
    expected = {"forward": (16, 8), "backward_input": (16, 4), "backward_weight": (8, 4)}[pass_]
    result = run()
    assert tuple(result.shape) == expected
    accumulated = pass_ == "backward_weight"
    assert result.dtype == (torch.float32 if dtype or accumulated else torch.bfloat16)
    assert not accumulated or not torch.equal(result.clone(), run())  # added to what is there


@pytest.mark.parametrize("pass_, results", [("forward", 1), ("backward", 3)])
@pytest.mark.parametrize("causal, kv_heads", [(1, 2), (0, 4)])
def test_attention_runs_causal_and_not_with_grouped_keys_too(pass_, results, causal, kv_heads):
    row = {"dtype": "bf16", "batch": 2, "seq_len": 32, "q_heads": 4, "kv_heads": kv_heads, "head_dim": 16,
           "causal": causal, "pass": pass_}
    run = kernels.Kernels(torch.device("cpu")).make(Need("attention", {k: str(v) for k, v in row.items()}))
    shapes = [tuple(one.shape) for one in run()]
    assert shapes == [(2, 4, 32, 16), (2, kv_heads, 32, 16), (2, kv_heads, 32, 16)][:results]
    run()  # again, on the same graph


def test_memory_bound_work_is_what_its_kind_stands_for():
    make = kernels.Kernels(torch.device("cpu")).make
    layer = {"rows": 8, "columns": 32, "norms": 2, "rotated": 8 * 128, "up": 8 * 96, "down": 8 * 48}
    assert [one.numel() for one in make(memory_bound("norm_activation", "forward", **layer))()] == [
        8 * 32, 8 * 32, 8 * 128, 8 * 48]
    assert len(make(memory_bound("norm_activation", "backward", **layer))()) == 2 + 2 + 2 + 1 + 2
    rows = {"rows": 8, "columns": 32}
    assert make(memory_bound("embedding", "forward", vocab=50, **rows))().shape == (8, 32)
    assert make(memory_bound("embedding", "backward", vocab=50, **rows))().shape == (50, 32)
    assert make(memory_bound("cross_entropy", "forward", **rows))()[0].ndim == 0
    assert make(memory_bound("cross_entropy", "backward", **rows))()[0].shape == (8, 32)
    make(memory_bound("optimizer", "forward", rows=1, columns=100))()
    with pytest.raises(kernels.CannotRun):
        make(memory_bound("other", "forward", rows=1, columns=1))


def test_tables_have_the_columns_of_the_import_and_no_empty_one_is_written(tmp_path):
    (tmp_path / "attention.csv").write_text("of another run")
    time = timing.Measurement(12.34567, 1.25, 11)
    tables.write(tmp_path, tables.measured_tables([(gemm(64, 1), time), (gemm(8, 1), time)]))
    assert [path.name for path in tmp_path.iterdir()] == ["gemm.csv"]
    assert (tmp_path / "gemm.csv").read_text().splitlines() == [
        "dtype,m,n,k,pass,latency_us,spread_percent", "bf16,8,8,4,forward,12.346,1.2", "bf16,64,8,4,forward,12.346,1.2"]


def test_the_needs_are_those_of_the_command(pipeweaver, tmp_path):
    pipeweaver("costdb", "needs", *FLAGS, "--out", tmp_path)
    asked = needs_of(STEP)
    assert asked.device == "cpu" and asked.exact_share() == 0
    for table in KEYS:
        file = tmp_path / f"{table}.csv"
        # Only networks with experts have a table of them.
        written = list(rows_of(table, file.read_text())) if table != "moe" or file.exists() else []
        assert written == [need for need in asked.all if need.table == table]
    assert sum(need.share for need in asked.all) == pytest.approx(1, abs=1e-3)


@pytest.fixture(scope="session")
def small_step(tmp_path_factory):
    """A step of operators so small that each can be run a thousand times, the most that one is: measuring it ends when
    all is measured, and not when some time is over."""
    folder = tmp_path_factory.mktemp("step")
    model = json.loads(pathlib.Path(STEP["model"]).read_text())
    vit, llm = (module["architecture"] for module in model["modules"])
    vit.update(layers=2, hidden=64, ffn=128, heads=1, kv_heads=1)
    llm.update(layers=2, hidden=64, ffn=128, heads=1, kv_heads=1, vocab=256)
    model["edges"][0]["projector"] = {"in": 4 * 64, "out": 64}
    model["image"]["max_tokens"] = 16
    model["microbatch_tokens"] = 128
    (folder / "model.json").write_text(json.dumps(model))
    sample = {"text_tokens": 96, "images": [{"width": 112, "height": 112}]}
    (folder / "batch.jsonl").write_text("".join(json.dumps({"id": str(k), **sample}) + "\n" for k in range(4)))
    return {**STEP, "model": str(folder / "model.json"), "batch": str(folder / "batch.jsonl")}


@pytest.fixture(scope="session")
def measured(small_step, tmp_path_factory):
    """A profile of this machine."""
    out = tmp_path_factory.mktemp("profile") / "measured"
    done = profile(*flags(small_step), "--threads", "1", "--budget", "30min", "--quiet", "--out", out)
    assert done.returncode == 0, done.stderr
    return out


def test_a_plan_on_this_machine_rests_on_what_was_measured_here(pipeweaver, small_step, measured, tmp_path):
    own = tmp_path / "own.sqlite"
    pipeweaver("costdb", "import", *sorted(measured.glob("*.csv")), "--device", "cpu", "--out", own)
    said = pipeweaver("plan", *flags(small_step), "--costs", own, "--max-rounds", "5", "--packing", "given",
                      "--out", tmp_path / "plan")
    plan = json.loads((tmp_path / "plan/plan.json").read_text())
    assert plan["share_of_time"]["by_basis"]["exact"] >= 0.90, said
    assert plan["costs"]["file"] == str(own)
    replica = tmp_path / "plan/replica-000"
    pipeweaver("replay", replica / "problem.json.gz", replica / "solution.json")  # the verifier's exit status is 0
    assert "own.sqlite" in (tmp_path / "plan/report.html").read_text()

    from_python = package.plan({**small_step, "costs": package.CostDatabase.open(own), "max_rounds": 5})
    # The command alone has a ladder and its rows; a folder also says what the files beside plan.json are.
    ladder = ("ladder", "beyond", "headline", "baselines", "files")
    assert {key: value for key, value in from_python.summary.items() if key not in ladder} == {
        key: value for key, value in plan.items() if key not in ladder}
    without = package.plan({**small_step, "costs": package.CostDatabase.default(), "max_rounds": 5})
    assert without.summary["costs"] is None and without.step_ns != from_python.step_ns


def test_a_profile_says_where_its_times_come_from(measured):
    run = json.loads((measured / "run.json").read_text())
    assert run["torch"] == torch.__version__ and run["threads"] >= 1 and run["cpu"]
    assert (run["device"], run["measured_on"], run["kernels_in"]) == ("cpu", "cpu", "bf16")
    assert run["share_measured"] >= 0.90 and run["refused"] == []
    rows = list(csv.DictReader((measured / "gemm.csv").open()))
    assert all(float(row["latency_us"]) > 0 and float(row["spread_percent"]) >= 0 for row in rows)
    assert {row["pass"] for row in rows} == {"forward", "backward_input", "backward_weight"}
    assert (measured / "not-measured/collectives.csv").read_text().startswith("collective,dtype,gpus,")


def test_bad_input_is_one_line(tmp_path):
    out = ["--out", tmp_path / "m"]
    assert refusal(*FLAGS) == (2, "missing --out DIR: a folder for the tables")
    assert refusal(*FLAGS, *out, "--budget", "5")[1].startswith("--budget: is '5', must be")
    assert refusal(*FLAGS, *out, "--device", "cuda:99")[1].startswith("--device: is 'cuda:99', PyTorch sees")
    assert refusal(*FLAGS, *out, "--device", "gpu")[1] == "--device: is 'gpu', must be cpu or cuda:N"
    assert refusal(*out, "--model", "dip-vlm-z", "--cluster", "cpu:2")[0] == 2
    assert refusal(*FLAGS, *out, "--bugdet", "5s") == (2, "unrecognized arguments: --bugdet 5s")
    h100 = ["--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--dataset", "vlm-mix", "--microbatches", "2"]
    assert "but --cluster is of h100_sxm" in refusal(*h100, *out, "--device", "cpu")[1]
    assert not (tmp_path / "m").exists()


def test_help_shows_an_example():
    done = profile("--help")
    assert done.returncode == 0 and "python -m pipeweaver.profile --model examples/cpu-vlm.json" in done.stdout
