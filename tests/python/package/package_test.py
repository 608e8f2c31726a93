"""The Python package.

It gives the same answers, bytes and errors as the command, beside other threads and in forked children."""

import csv
import gc
import gzip
import hashlib
import json
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError

import pytest
from absent import needed
from checkout import ROOT

np = needed("numpy")
pipeweaver = needed("pipeweaver")

CONFIG = {"model": "dip-vlm-s", "cluster": "h100-sxm:16", "tp": 4, "pp": 4}
DRAWN = {"dataset": "vlm-mix", "microbatches": 4}
LONG = {**CONFIG, "dataset": "vlm-mix", "microbatches": 16, "max_rounds": 1_000_000_000,
        "budget": "30min"}  # nobody waits so long
LONG_ENOUGH = 300  # seconds that end none of these, and in which what ends early does so on any machine


@pytest.fixture(scope="session")
def command(pipeweaver):
    """The binary; its fixture has the package's name."""
    return pipeweaver


# The package hands out action lists, so it plans on partitions that have them.
LISTS = ("--target", "torch-actions", "--packing", "given")


def results(folder):
    """All but what has the ladder, which the command alone puts before a plan."""
    of_the_ladder = ("plan.json", "report.html", "launch.json", "launch-assignment.json")
    return {name: digest for name, digest in digests(folder).items() if name not in of_the_ladder}


def without_ladder(plan):
    rest = {key: value for key, value in plan.items() if key not in ("ladder", "beyond", "headline", "files")}
    rows = [row for row in plan["baselines"] if not is_of_a_ladder(row)]
    return {**rest, "baselines": rows}


def is_of_a_ladder(row):
    """A tuned cut, or what is launched in another layout: the ladder's alone."""
    return row["opponent"] and (row["partition"].endswith(" tuned") or row["partition"].startswith("tp "))


def digests(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "run.json")
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def flags(config):
    return [text for key, value in config.items() for text in (f"--{key.replace('_', '-')}", str(value))]


def python(script):
    """A program of its own."""
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=LONG_ENOUGH)


def samples(count, images=2):
    """`count` samples, the k-th with other sizes than the others."""
    return [{"id": f"s{k}", "text_tokens": 600 + 37 * k,
             "images": [{"width": 300 + 50 * ((k + i) % 7), "height": 400} for i in range((k + images) % 5)]}
            for k in range(count)]


def test_the_package_is_typed_and_leaves_pytorch_alone():
    assert (pathlib.Path(pipeweaver.__file__).parent / "py.typed").is_file()
    assert python("import sys, pipeweaver; print('torch' in sys.modules)").stdout == "False\n"


def test_without_pytorch_its_part_says_so():
    done = python("import sys; sys.modules['torch'] = None\nimport pipeweaver.torch")
    assert done.returncode == 1
    assert "pipeweaver.torch needs PyTorch" in done.stderr.splitlines()[-1]


def test_the_examples_of_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # they write a plan
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    blocks = re.findall("^```python\n(.*?)^```", (ROOT / "docs/python.md").read_text(), re.DOTALL | re.MULTILINE)
    names = {"next_batch": samples(8), "run_step": lambda plan: None}
    for block in blocks:
        exec(block, names)
    assert (tmp_path / "plan-python/plan.json").is_file() and names["solution"].gap >= 0
    names["planner"].close()


@pytest.mark.parametrize("trained",
                         [{"recipe": "megatron-core-overlap", "bucket": "0B"}, {"action": "300us", "zero": 0}])
def test_a_configuration_says_how_the_framework_trains(command, tmp_path, trained):
    config = {**CONFIG, **DRAWN, **trained, "max_rounds": 3}
    plan = pipeweaver.plan(config)
    command("plan", *flags(config), *LISTS, "--threads", "1", "--out", tmp_path / "plan")
    assert plan.summary["step_ns"] == json.loads((tmp_path / "plan/plan.json").read_text())["step_ns"]
    assert plan.summary["step_ns"] != pipeweaver.plan({**CONFIG, **DRAWN, "max_rounds": 3}).summary["step_ns"]


def test_what_a_recipe_cannot_be_is_said_as_by_the_command():
    with pytest.raises(pipeweaver.InputError, match="unknown recipe 'megatron-cor'; did you mean 'megatron-core'"):
        pipeweaver.Planner({**CONFIG, **DRAWN, "recipe": "megatron-cor"})
    with pytest.raises(pipeweaver.InputError, match="--bucket: goes with --zero 0 and 1"):
        pipeweaver.plan({**CONFIG, **DRAWN, "zero": 2, "bucket": "40MB"})


@pytest.fixture(scope="session")
def planned():
    return pipeweaver.plan({**CONFIG, **DRAWN, "max_rounds": 10})


def test_a_plan_folder_has_the_bytes_that_the_command_writes(command, planned, tmp_path):
    command("plan", *flags({**CONFIG, **DRAWN, "max_rounds": 10}), *LISTS, "--threads", 1, "--out", tmp_path / "cli")
    planned.write(tmp_path / "api")
    assert results(tmp_path / "api") == results(tmp_path / "cli")
    assert json.loads((tmp_path / "api/run.json").read_text())["max_rounds"] == 10
    assert without_ladder(planned.summary) == without_ladder(json.loads((tmp_path / "cli/plan.json").read_text()))
    assert planned.assignment == json.loads((tmp_path / "cli/assignment.json").read_text())
    replica, folder = planned.replicas[0], tmp_path / "cli/replica-000"
    assert replica.problem.to_json() == gzip.decompress((folder / "problem.json.gz").read_bytes()).decode()
    assert replica.solution.to_json() == (folder / "solution.json").read_text()
    assert replica.actions == json.loads((folder / "actions.json").read_text())
    own = replica.rank_actions(1)
    assert own["rank"] == 1 and len(own["actions"]) == len(replica.actions["actions"][1])
    with pytest.raises(pipeweaver.InputError, match="rank: is 9, must be 0 to "):
        replica.rank_actions(9)


def test_a_configuration_file_and_a_batch_of_samples_plan_as_the_command_does(command, tmp_path):
    (tmp_path / "plan.yaml").write_text(
        "".join(f"{key}: {value}\n" for key, value in CONFIG.items()) + "max-rounds: 3\n")
    (tmp_path / "batch").write_text("".join(json.dumps(sample) + "\n" for sample in samples(12)))
    command("plan", "--config", tmp_path / "plan.yaml", "--batch", tmp_path / "batch", *LISTS,
            "--out", tmp_path / "cli")
    pipeweaver.plan(tmp_path / "plan.yaml", tmp_path / "batch", out=tmp_path / "api")
    assert results(tmp_path / "api") == results(tmp_path / "cli")
    given = pipeweaver.plan({**CONFIG, "max_rounds": 3}, samples(12), out=tmp_path / "given")
    assert given.summary["asked"]["batch"] == "batch"
    assert digests(tmp_path / "given")["assignment.json"] == digests(tmp_path / "cli")["assignment.json"]
    assert (digests(tmp_path / "given")["replica-000/solution.json"]
            == digests(tmp_path / "cli")["replica-000/solution.json"])
    numpys = [{**sample, "text_tokens": np.int64(sample["text_tokens"])} for sample in samples(12)]
    assert pipeweaver.plan({**CONFIG, "max_rounds": np.int32(3)}, numpys).assignment == given.assignment


def test_arrays_say_what_the_files_say(planned):
    problem, solution = planned.replicas[0].problem, planned.replicas[0].solution
    tasks, found = problem.to_dict()["tasks"], solution.to_dict()
    assert problem.duration_ns.tolist() == [task["duration_ns"] for task in tasks]
    assert problem.rank.tolist() == [task["rank"] for task in tasks]
    assert problem.kinds == "".join(task["kind"] for task in tasks)
    assert problem.edges.tolist() == problem.to_dict()["edges"]
    assert solution.start_ns.tolist() == found["start_ns"]
    assert [rank.tolist() for rank in solution.order] == found["order"]
    assert solution.peak_bytes.tolist() == found["peak_bytes"]
    end = solution.start_ns + solution.duration_ns
    before, after, lag = problem.edges.T
    assert (solution.start_ns[after] >= end[before] + lag).all()
    for rank in solution.order:
        assert (solution.start_ns[rank[1:]] >= end[rank[:-1]]).all()
    assert solution.start_ns.dtype == np.int64
    assert planned.lower_bound_ns <= planned.makespan_ns < planned.step_ns
    assert planned.gap == pytest.approx(planned.makespan_ns / planned.lower_bound_ns - 1)


def test_arrays_outlive_what_they_came_from():
    starts = pipeweaver.emulate({**CONFIG, **DRAWN}).replicas[0].solution.start_ns
    gc.collect()
    assert starts.min() == 0 and (starts >= 0).all()


def test_solve_and_replay_answer_as_the_command_does(command, planned, tmp_path):
    planned.write(tmp_path / "plan")
    path = tmp_path / "plan/replica-000/problem.json.gz"
    for options in ({"max_rounds": 20, "seed": 3}, {"max_rounds": 5, "strategy": "dip"},
                    {"max_rounds": 5, "then": "memory"},
                    {"max_rounds": 2, "warm": tmp_path / "plan/replica-000/solution.json"}):
        command("solve", path, *flags(options), "--out", tmp_path / "cli.json")
        found = pipeweaver.solve(pipeweaver.Problem.from_file(path), **options)
        assert found.to_json() == (tmp_path / "cli.json").read_text(), options
    problem = pipeweaver.Problem.from_dict(planned.replicas[0].problem.to_dict())
    for same in (found, found.to_dict(), tmp_path / "cli.json"):
        again = pipeweaver.replay(problem, same)
        assert again.makespan_ns == found.makespan_ns and (again.start_ns == found.start_ns).all()
    order = found.to_dict()
    order["order"][0].reverse()
    with pytest.raises(pipeweaver.LimitError, match="^solution: (deadlock: )?rank 0: task"):
        pipeweaver.replay(problem, order)


def test_a_solution_of_another_batch_is_a_warm_start(planned):
    other = pipeweaver.emulate({**CONFIG, **DRAWN, "seed": 2, "partition": "dip"},
                               policy="dual-queue").replicas[0].problem
    warm = pipeweaver.solve(other, max_rounds=0, warm=planned.replicas[0].solution)
    assert warm.makespan_ns <= pipeweaver.solve(other, max_rounds=0).makespan_ns


def test_stages_give_the_problem_that_the_command_solves(command, tmp_path):
    table = ROOT / "examples/stages.csv"
    command("solve", "--stages", table, "--microbatches", 8, "--capacity", "73.6GiB", "--link", "50GB/s",
            "--max-rounds", 1, "--out", tmp_path / "cli")
    problem = pipeweaver.Problem.from_stages(table, 8, "73.6GiB", "50GB/s")
    written = json.loads(gzip.decompress((tmp_path / "cli/problem.json.gz").read_bytes()))
    assert problem.to_dict() == written
    rows = [{key: value or None for key, value in row.items()} for row in csv.DictReader(table.open())]
    same = pipeweaver.Problem.from_stages(rows, 8, int(73.6 * 2**30), 50 * 10**9)
    assert same.edges.tolist() == problem.edges.tolist() and same.duration_ns.tolist() == problem.duration_ns.tolist()
    assert pipeweaver.solve(same, max_rounds=5).gap >= 0


def test_a_job_keeps_the_partition_of_a_file_whatever_its_batch(tmp_path):
    first = pipeweaver.plan({**CONFIG, **DRAWN, "partition": "dip", "max_rounds": 0})
    first.write(tmp_path / "plan")
    file = tmp_path / "plan/partition.json"
    assert json.loads(file.read_text())["format"] == "pipeweaver-partition/1"
    with pipeweaver.Planner({**CONFIG, **DRAWN, "partition": str(file), "seed": 9, "max_rounds": 0}) as planner:
        assert planner.partition["chains"] == first.summary["partition"]["chains"]


def test_what_a_plan_leaves_goes_before_the_next_batch():
    def batch(step):
        large = [{"tokens": 169, "patches": 2704}] * 24
        return [{"id": f"{step}-{k}", "text_tokens": 1500, "images": large if k == 3 else large[:2]} for k in range(40)]

    config = {**CONFIG, "model": "dip-vlm-s", "packing": "padded", "defer": 2, "max_rounds": 0}
    first = pipeweaver.plan(config, batch(0))
    assert [sample["id"] for sample in first.deferred] == ["0-3"] and first.summary["asked"]["deferred"] == 1
    seen = [sample["id"] for one in first.assignment["replicas"] for mb in one["microbatches"]
            for sample in mb["samples"]]
    with pipeweaver.Planner(config, batch(0)) as planner:
        left = planner.submit(first.deferred + batch(1)).result()
    seen += [sample["id"] for one in left.assignment["replicas"] for mb in one["microbatches"]
             for sample in mb["samples"]]
    assert sorted(seen + [sample["id"] for sample in left.deferred]) == sorted(
        f"{s}-{k}" for s in range(2) for k in range(40))


def test_a_policy_takes_what_the_plan_says_it_takes():
    on_dip = {**CONFIG, **DRAWN, "partition": "dip", "module_tp": "vit=4"}  # one cut: there is nothing to choose
    baselines = pipeweaver.plan({**on_dip, "max_rounds": 0}).summary["baselines"]
    for policy in ("interleaved", "gpipe", "dual-queue"):
        emulated = pipeweaver.emulate(on_dip, policy=policy)
        told, = [b["makespan_ns"] for b in baselines if b["policy"] == policy and not b["opponent"]]
        assert emulated.makespan_ns == told
        assert emulated.summary["replicas"][0]["strategy"] == policy


def test_costs_are_those_of_the_command(command, tmp_path):
    table = ROOT / "examples/gemm.csv"
    command("costdb", "query", "--device", "h100_sxm", "--op", "gemm", "--input", table, "--output", tmp_path / "a.csv")
    rows = list(csv.DictReader(table.open()))
    costs = pipeweaver.CostDatabase.default()
    answers = costs.query("h100_sxm", "gemm", rows)
    for answer, line in zip(answers, csv.DictReader((tmp_path / "a.csv").open()), strict=True):
        assert answer["latency_us"] == float(line["latency_us"]) and answer["basis"] == line["basis"]
    assert costs.query("h100_sxm", "gemm", []) == []
    attention = {"dtype": "bf16", "batch": 1, "seq_len": 4096, "q_heads": 32, "kv_heads": 8, "head_dim": 128,
                 "causal": True}
    assert costs.query("h100_sxm", "attention", [attention])[0]["latency_us"] > 0
    command("costdb", "import", ROOT / "examples/measured-gemm.csv", "--device", "h100_sxm",
            "--out", tmp_path / "own.sqlite")
    assert pipeweaver.CostDatabase.open(tmp_path / "own.sqlite").query("h100_sxm", "gemm", rows)


@pytest.mark.parametrize("change", [{"model": "dip-vlm-x"}, {"model": None}, {"cluster": "h100-sxm:12"}, {"tp": 3},
                                    {"batch": "/nowhere/batch.jsonl", "dataset": None, "microbatches": None},
                                    {"model": "dip-vlm-l", "cluster": "h100-sxm:8", "tp": 2, "pp": 4,
                                     "microbatches": 1}])
def test_errors_have_the_commands_line_and_kind(command, tmp_path, change):
    config = {key: value for key, value in {**CONFIG, **DRAWN, **change}.items() if value is not None}
    status, line = command.fails("plan", *flags(config), "--out", tmp_path / "none")
    with pytest.raises(pipeweaver.PipeweaverError) as caught:
        pipeweaver.plan(config)
    assert f"pipeweaver: {caught.value}" == line
    assert caught.value.exit_status == status
    assert type(caught.value) is {2: pipeweaver.InputError, 3: pipeweaver.FileError, 4: pipeweaver.LimitError}[status]


def test_errors_name_the_place_in_what_was_given():
    with pytest.raises(pipeweaver.InputError, match="^config: .*'modell'.*did you mean 'model'"):
        pipeweaver.plan({"modell": "dip-vlm-s"})
    with pytest.raises(pipeweaver.InputError, match="^config: tp: is '0', must be auto or"):
        pipeweaver.plan({**CONFIG, "tp": 0}, samples(4))
    with pytest.raises(pipeweaver.InputError, match="^batch:2: "):
        pipeweaver.plan(CONFIG, [samples(1)[0], {"id": "t"}])
    with pytest.raises(pipeweaver.InputError, match="^batch: holds no sample"):
        pipeweaver.plan(CONFIG, [])
    with pytest.raises(pipeweaver.InputError, match="not made of what JSON has"):
        pipeweaver.plan(CONFIG, [{"id": "s", "text_tokens": float("nan")}])
    with pytest.raises(pipeweaver.InputError, match="did you mean '1f1b'"):
        pipeweaver.emulate({**CONFIG, **DRAWN}, policy="1f1c")
    with pytest.raises(pipeweaver.InputError, match="solve: max-rounds: is '-1'"):
        pipeweaver.solve(pipeweaver.Problem.from_stages(ROOT / "examples/stages.csv", 4), max_rounds=-1)
    with pytest.raises(pipeweaver.InputError, match="no path in UTF-8"):
        pipeweaver.plan(CONFIG, "a\udcffb")


@pytest.mark.parametrize("options, message", [
    ((0,), "microbatches: is '0', must be a whole number from 1"),
    ((None,), "missing microbatches"),
    ((2.5,), "microbatches: is '2.5', must be a whole number from 1"),
    ((4, "73"), "capacity: '73' is not a size"),
    ((4, 0), "capacity: '0B' is no capacity"),
    ((4, None, "50GB"), "link: '50GB' is not a speed"),
])
def test_measured_stages_name_the_option_that_is_wrong(options, message):
    with pytest.raises(pipeweaver.InputError, match=f"^from_stages: {message}"):
        pipeweaver.Problem.from_stages(ROOT / "examples/stages.csv", *options)


@pytest.mark.alone
def test_other_threads_run_while_a_search_does():
    ticks, done = 0, threading.Event()

    def tick():
        nonlocal ticks
        while not done.wait(0.005):
            ticks += 1

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    pipeweaver.plan({**LONG, "budget": 1.0})
    seconds = time.monotonic() - began
    done.set()
    thread.join()
    assert ticks > 5 * seconds  # of 200 a second; one that holds the lock would leave two or three in all


@pytest.mark.timeout(LONG_ENOUGH)
def test_a_search_ends_when_stop_says_so_and_tells_its_progress():
    told = []
    found = pipeweaver.plan(LONG, stop=lambda: len(told) > 0, progress=told.append)
    assert found.summary["replicas"][0]["stop_reason"] in ("stopped", "optimal")
    assert told and {"rounds", "best_ns", "bound_ns", "gap", "found_by"} <= set(told[0])


def test_an_exception_of_stop_ends_the_search():
    def fail():
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        pipeweaver.plan(LONG, stop=fail)


def test_ctrl_c_ends_a_search():
    # In a process of its own: what else runs here (OR-tools) leaves SIGINT to end the process.
    done = python(f"""import os, pipeweaver, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
    pipeweaver.plan({LONG!r})
except KeyboardInterrupt:
    print("ended")""")  # else its time is over
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


def plan_in_child(queue, planner):
    found = pipeweaver.plan({**CONFIG, **DRAWN, "max_rounds": 3, "threads": 4})
    online = planner.submit(samples(8)).result(5.0)
    queue.put((found.makespan_ns, online.makespan_ns))


def test_a_forked_child_plans_while_its_parent_does():
    expected = pipeweaver.plan({**CONFIG, **DRAWN, "max_rounds": 3, "threads": 4}).makespan_ns
    fork = multiprocessing.get_context("fork")
    with pipeweaver.Planner({**LONG, "threads": 4, "budget": 0.3}) as planner:
        future = planner.submit(samples(40))
        for _ in range(3):
            queue = fork.SimpleQueue()
            child = fork.Process(target=plan_in_child, args=(queue, planner))
            child.start()
            child.join(LONG_ENOUGH)
            hung = child.is_alive()
            if hung:
                child.kill()
            assert not hung and child.exitcode == 0
            assert queue.get()[0] == expected
        assert future.result().makespan_ns > 0


def test_a_future_of_another_process_is_refused():
    with pipeweaver.Planner({**CONFIG, **DRAWN, "max_rounds": 1}) as planner:
        future = planner.submit(samples(8))
        future.result()
        pid = os.fork()
        if pid == 0:
            try:
                future.result()
            except pipeweaver.PipeweaverError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0


def test_a_job_keeps_its_partition_and_every_plan_is_of_its_batch():
    with pipeweaver.Planner({**CONFIG, **DRAWN, "max_rounds": 3}) as planner:
        futures = [planner.submit(samples(6 + k, k)) for k in range(4)]
        for k, future in enumerate(futures):
            made = future.result()
            assert future.done() and not future.cancel()
            assert made.summary["partition"]["chains"] == planner.partition["chains"]
            assigned = [sample["id"] for microbatch in made.assignment["replicas"][0]["microbatches"]
                        for sample in microbatch["samples"]]
            assert sorted(assigned) == sorted(sample["id"] for sample in samples(6 + k, k))
            assert made.makespan_ns >= made.lower_bound_ns
        again = planner.submit(samples(6, 0)).result()
        assert again.replicas[0].solution.to_json() == futures[0].result().replicas[0].solution.to_json()


@pytest.mark.timeout(LONG_ENOUGH)
def test_a_plan_that_is_wanted_at_once_is_soon_there():
    with pipeweaver.Planner(LONG, stop=lambda: True) as planner:
        made = planner.submit(samples(30)).result(0.0)
        assert made.makespan_ns >= made.lower_bound_ns


def test_a_bad_batch_fails_its_own_future_only():
    with pipeweaver.Planner({**CONFIG, **DRAWN, "max_rounds": 1}) as planner:
        bad, good = planner.submit([{"id": "t"}]), planner.submit(samples(4))
        with pytest.raises(pipeweaver.InputError, match="^batch:1: "):
            bad.result()
        assert good.result(30).makespan_ns > 0


def test_a_cancelled_plan_ends_soon():
    with pipeweaver.Planner(LONG, stop=lambda: True) as planner:
        first, second = planner.submit(samples(30)), planner.submit(samples(30))
        assert second.cancel() and second.cancelled()
        with pytest.raises(CancelledError):
            second.result()
        assert first.result(0.0).makespan_ns > 0


def test_a_program_ends_though_a_plan_is_being_made():
    done = python(f"""
import pipeweaver
planner = pipeweaver.Planner({LONG!r}, stop=lambda: True)
for _ in range(50):
    planner.submit({samples(30)!r})
""")
    assert (done.returncode, done.stderr) == (0, "")  # else its time is over


def test_ctrl_c_ends_a_wait_and_leaves_the_plan():
    done = python(f"""import os, pipeweaver, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
future = pipeweaver.Planner({LONG!r}, stop=lambda: True).submit({samples(30)!r})  # which the future outlives
try:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    future.result()
except KeyboardInterrupt:
    print("ended", future.done(), future.result(0.0).makespan_ns > 0)""")
    assert (done.returncode, done.stdout) == (0, "ended False True\n"), done.stderr


@pytest.mark.parametrize("daemon, deadline, told", [(True, None, ""), (False, 0.5, "Plan\n")])
def test_a_program_ends_though_a_thread_waits_for_a_plan(daemon, deadline, told):
    done = python(f"""import pipeweaver, threading, time
planner = pipeweaver.Planner({LONG!r}, stop=lambda: True)
def wait():
    made = planner.submit({samples(30)!r}).result({deadline})
    print(type(made).__name__)
threading.excepthook = lambda _: None  # of a daemon: its plan is cancelled
threading.Thread(target=wait, daemon={daemon}).start()
time.sleep(0.2)""")
    assert (done.returncode, done.stdout, done.stderr) == (0, told, "")


@pytest.mark.alone
def test_no_step_waits_beyond_its_deadline_and_memory_stays():
    options = ("--steps", "12", "--sleep", "0.2", "--budget", "0.05", "10", "--json")

    def measured():
        done = subprocess.run([sys.executable, ROOT / "studies/bench_online.py", *options], capture_output=True,
                              text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        soon, cut = json.loads(done.stdout)
        assert soon["steps"] == cut["steps"] == 12
        for one in (soon, cut):
            assert one["longest_wait_beyond_deadline_ms"] < 5000  # of a budget of 10 s
            assert one["memory_growth_mib"] < 30
        return soon["ready"], cut["ready"], max(soon["median_wait_ms"], cut["median_wait_ms"])

    def is_in_time(soon, cut, median_wait_ms):
        return soon > 6 > cut and median_wait_ms < 150  # the deadline is 50; it is 51 where nothing else runs

    # Another program may have the cores meanwhile, but not each time.
    tries = []
    while len(tries) < 4 and not (tries and is_in_time(*tries[-1])):
        tries.append(measured())
    assert is_in_time(*tries[-1]), tries
