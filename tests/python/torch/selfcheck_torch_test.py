"""The self-check in its form for a CPU, and what of its form for a GPU can be walked without one."""

import contextlib
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import sys
import types

import pytest
from absent import needed

torch = needed("torch")
needed("pipeweaver")

import dry_gpu  # noqa: E402
from pipeweaver.profiling import machine  # noqa: E402
from pipeweaver.profiling.needs import Need, Needs  # noqa: E402
from pipeweaver.selfcheck import cases, compare, device, folder, operators  # noqa: E402
from pipeweaver.selfcheck import page, rank, ranks, rates, show, steps  # noqa: E402
from pipeweaver.torch import clocks, executor, groups, jobs  # noqa: E402
from selfcheck_document import measured_document  # noqa: E402

GPU = cases.SCALES["gpu"]


def selfcheck(*arguments):
    return subprocess.run([sys.executable, "-m", "pipeweaver.selfcheck", *map(str, arguments)], capture_output=True,
                          text=True, timeout=900)


@pytest.fixture(scope="module")
def torn(tmp_path_factory):
    """A check of which one part has run, and another was torn off."""
    out = tmp_path_factory.mktemp("selfcheck") / "check"
    done = selfcheck("--cpu", "--out", out, "--budget", "60s", "--parts", "machine")
    begun = folder.Work(folder.Folder(out), "steps", 1.0)
    begun.add({"stack": "vlm", "how": "eager", "recompute": "none", "why": "torn off"})
    return out, done


@pytest.fixture(scope="module")
def checked(torn, tmp_path_factory):
    """The same check, gone on with to its end."""
    out = tmp_path_factory.mktemp("selfcheck") / "check"
    shutil.copytree(torn[0], out)
    # These end when all is done: on a slow machine, or a busy one, that takes minutes.
    selfcheck("--cpu", "--out", out, "--budget", "40min", "--parts", "steps,ranks")
    return out, selfcheck("--cpu", "--out", out, "--budget", "240s")


@pytest.mark.alone  # parts have budgets
def test_a_torn_check_says_what_is_missing_and_can_be_shown(torn):
    out, done = torn
    assert done.returncode == 5 and "missing: steps (missing)" in done.stdout, done.stdout + done.stderr
    again = selfcheck("--compare", out)
    assert again.returncode == 5 and "missing: steps (begun)" in again.stdout, again.stdout + again.stderr
    assert 'data-verdict=unfinished' in (out / "selfcheck.html").read_text()


@pytest.mark.alone  # parts have budgets
@pytest.mark.timeout(1500)
def test_it_goes_on_where_it_was_and_ends_within_its_limits(torn, checked):
    out, done = checked
    said = done.stdout.rstrip().splitlines()
    assert done.returncode == 0 and said[-2] == "verdict: within", done.stdout + done.stderr
    assert (out / "machine.json").read_bytes() == (torn[0] / "machine.json").read_bytes()
    document = json.loads((out / "selfcheck.json").read_text())
    assert [part["state"] for part in document["parts"]] == ["complete"] * 4
    assert document["scale"] == "cpu" and document["beyond"] == []


@pytest.mark.alone  # parts have budgets
def test_two_ranks_have_the_gradients_and_losses_of_one_process(checked):
    rows = json.loads((checked[0] / "ranks.json").read_text())["rows"]
    found = {(row["check"], row["rank"]): row for row in rows}
    for rank in (0, 1):
        assert found["gradients are those of one process", rank]["worst"] < 1e-6
        assert found["steps that are timed have that loss, too", rank]["holds"]
    told = found["Watch tells of rank 1 when it runs its forwards twice", 0]
    assert not told["judged"] and told["told"] + told["before"] != []  # a CPU is not what the plan was made for


@pytest.mark.alone  # parts have budgets
def test_steps_are_predicted_by_own_tables_too(checked):
    document = json.loads((checked[0] / "selfcheck.json").read_text())
    rows = [row for row in document["steps"] if "seconds" in row]
    assert rows
    for row in rows:
        assert row["own"]["basis"]["exact"] > row["shipped"]["basis"]["exact"] == 0, row
        assert row["own"]["seconds"] != row["shipped"]["seconds"], row
        for tables in ("own", "shipped"):  # whichever of them is nearer on this machine
            assert row[tables]["error"] == pytest.approx(row[tables]["seconds"] / row["seconds"] - 1, abs=1e-3)
        assert row["parameters"] > 0 and 0 < row["fastest_s"] <= row["seconds"] <= row["slowest_s"]
    losses = {row["stack"]: row["loss"] for row in rows if row["recompute"] == "none"}
    for row in rows:  # recomputation changes no loss
        assert row["loss"] == pytest.approx(losses[row["stack"]], rel=1e-5)


@pytest.mark.alone  # parts have budgets
def test_a_check_is_of_one_machine(torn):
    about = json.loads((torn[0] / "about.json").read_text())
    assert about["torch"] == torch.__version__ and about["cluster"] == "cpu" and about["gpu"] is None
    other = torn[0].parent / "other"
    shutil.copytree(torn[0], other)
    (other / "about.json").write_text(json.dumps({**about, "torch": "1.0"}))
    done = selfcheck("--cpu", "--out", other)
    assert done.returncode == 2 and "has a check of torch 1.0, this is" in done.stderr


def test_bad_input_is_one_line(tmp_path):
    for arguments, why in ((["--budget", "5"], "--budget: is '5', must be"),
                           (["--parts", "all"], "--parts: there is no part 'all', allowed are machine, steps"),
                           (["--device", "cuda:99"], "--device: is 'cuda:99', PyTorch sees"),
                           (["--compare", tmp_path], "has no about.json, a folder of a check is needed")):
        done = selfcheck("--out", tmp_path / "check", *arguments)
        assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1, done.stderr
        assert why in done.stderr
    assert not (tmp_path / "check").exists()
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "about.json").write_text("{")
    assert "about.json: is damaged" in selfcheck("--compare", damaged).stderr


@pytest.mark.parametrize("name", ["vlm", "moe", "dit"])
def test_what_runs_on_a_gpu_has_the_shapes_and_weights_that_are_priced(name, pipeweaver, tmp_path):
    """Forward and backward on tensors without memory, at the size of a GPU."""
    stack = next(one for one in cases.stacks(GPU) if one.name == name)
    with torch.device("meta"):
        model, data = steps.network(stack).to(torch.bfloat16), steps.batches(stack)
    for recompute in cases.RECOMPUTATIONS[::-1]:  # none is last: wrapped() wraps once more
        steps.wrapped(model, recompute, compiled=False)
        *inputs, target = data[0]
        output = model(*(one.to(torch.bfloat16) if one.is_floating_point() else one for one in inputs))
        (steps.flow_loss if name == "dit" else steps.token_loss)(output, target).backward()
    assert all(weight.grad is not None and weight.grad.shape == weight.shape for weight in model.parameters())
    files = stack.write(tmp_path)
    answer = json.loads(pipeweaver("emulate", "--model", files["model"], "--batch", files["batch"], "--cluster",
                                   "h200-sxm:1", "--tp", "1", "--pp", "1", "--recipe", "torch-fsdp2", "--json"))
    assert answer["asked"]["microbatches"] == cases.MICROBATCHES
    priced = answer["replicas"][0]["ranks"][0]["memory"]["weights_bytes"] / 2
    assert sum(weight.numel() for weight in model.parameters()) == pytest.approx(priced, rel=0.01)


def test_every_case_of_a_gpu_comes_once_eager_ones_first():
    names = [str(case) for case in steps.cases("gpu")]
    assert len(set(names)) == 18 and all(" eager " in name for name in names[:9])
    assert all(" eager " in str(case) for case in steps.cases("cpu"))


@pytest.fixture
def fake_gpu(monkeypatch):
    """What PyTorch is told, without a GPU that hears it."""
    return dry_gpu.tell(monkeypatch)


def test_passes_on_a_gpu_are_timed_by_events_of_its_stream(fake_gpu):
    clock = clocks.clock_of(torch.device("cuda:0"))
    for _ in range(4):
        clock.mark()
    assert clock.seconds() == pytest.approx([0, 0.001, 0.002, 0.003])
    assert isinstance(clocks.clock_of(torch.device("cpu")), clocks.HostClock)


def test_peaks_on_a_gpu_are_those_of_the_timed_steps_alone(fake_gpu, monkeypatch):
    class Step:
        def __call__(self):
            fake_gpu.append("step that is not timed")
            return 1.0

        def launch(self):
            fake_gpu.append("step")

    monkeypatch.setattr(steps, "_step", lambda case, device: (Step(), 7))
    row = steps.measured(steps.cases("gpu")[0], torch.device("cuda:0"), left_s=100)
    assert (row["allocated_bytes"], row["reserved_bytes"], row["parameters"]) == (1000, 2000, 7)
    begun = fake_gpu.index("peaks from here")
    assert "step" not in fake_gpu[:begun] and "step that is not timed" not in fake_gpu[begun:]
    assert fake_gpu[begun + 1:begun + 3] == ["step", "synchronize"] and fake_gpu.count("step") == row["steps"] == 7


def test_launches_are_measured_one_by_one_and_as_a_graph(fake_gpu, monkeypatch):
    captured = []
    graph = types.SimpleNamespace(replay=lambda: captured.append("replay"))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: graph)
    monkeypatch.setattr(torch.cuda, "graph", contextlib.nullcontext)
    clock = machine.CudaClock(torch.device("cpu"))
    clock._device = torch.device("cuda:0")
    fake = types.SimpleNamespace(device=torch.device("cpu"), clock=lambda: clock)
    by_host, by_graph = rates._launches(fake, {"launches": 50}, 0.01)
    assert by_host["unit"] == by_graph["unit"] == "us a kernel" and captured
    assert by_graph["value"] == pytest.approx(1000 / 50)  # a replay took a millisecond


def two_ranks(monkeypatch, folder_of_check, gpus, backend):
    """Ranks of a check on GPUs that are not there, one after the other: what each asked for."""
    told = dry_gpu.tell(monkeypatch, gpus)
    fewer = {"vit": {**GPU.vit, "layers": 2}, "llm": {**GPU.llm, "layers": 4}}  # one is walked as another
    monkeypatch.setitem(cases.SCALES, "gpu", dataclasses.replace(GPU, **fewer))
    monkeypatch.setattr(jobs, "agree", lambda job, problem, *_: problem)  # there is nobody to agree with
    monkeypatch.setattr(groups, "awaited", lambda *_: "{}")
    monkeypatch.setattr(executor, "expand_segments", lambda device: told.append(f"segments of {device.type} expand"))
    for steps_of, few in (("_warm", 1), ("_fewest", 1), ("_most", 2), ("_slow", 1)):
        monkeypatch.setattr(rank, steps_of, few)
    drawn = dry_gpu.without_generators(monkeypatch)
    check = folder.Folder(folder_of_check)
    check.write_json("about.json", {"torch_device": "cuda:0", "scale": "gpu", "cluster": "h100-sxm", "gpus": gpus})
    ranks._plan(folder.Work(check, "ranks", 100.0))
    found = []
    for number in range(2):
        told.clear()
        drawn.clear()
        with monkeypatch.context() as patched, dry_gpu.OnMeta():
            asked = dry_gpu.fake_groups(patched, backend)
            store = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
            patched.setattr(sys, "argv", ["rank", str(folder_of_check), str(number), str(store.port), "1000"])
            try:
                rank.main()
            finally:
                if torch.distributed.is_initialized():
                    torch.distributed.destroy_process_group()
        rows = json.loads((folder_of_check / f"ranks/rank-{number}.json").read_text())["rows"]
        found.append(types.SimpleNamespace(asked=asked, told=list(told), drawn=set(drawn), rows=rows))
    return found


@pytest.mark.parametrize("cluster", ["h100-sxm", "b200-sxm"])
def test_what_two_gpus_run_has_the_chains_that_ranks_have_chunks_for(cluster, tmp_path):
    """At full size, where schedules that others run in one chain would be faster than the plan's."""
    check = folder.Folder(tmp_path)
    check.write_json("about.json", {"torch_device": "cuda:0", "scale": "gpu", "cluster": cluster})
    ranks._plan(folder.Work(check, "ranks", 100.0))
    stages = check.json("ranks/actions.json")["stages"]
    assert {stage["chain"] for stage in stages} == {"vit", "llm"} and {stage["rank"] for stage in stages} == {0, 1}
    assert all([part["module"] for part in stage["parts"]] == [stage["chain"]] for stage in stages)


def test_two_ranks_over_nccl_are_walked_without_a_gpu(monkeypatch, tmp_path):
    """All that a rank does on a GPU of its own, on tensors without memory and a group that does nothing."""
    found = two_ranks(monkeypatch, tmp_path, gpus=2, backend="nccl")
    for number, one in enumerate(found):
        assert one.asked.backends == ["nccl"] and f"take cuda:{number}" in one.told
        assert "segments of cuda expand" in one.told and one.drawn == {f"cuda:{number}"}
        assert {where for *_, where in one.asked.messages} == {"meta"}  # never through the host
        assert set(map(str, one.asked.collectives)) == {f"('barrier', [{number}])", "('all_reduce', 'meta')"}
        assert len(one.rows) == (4 if number == 0 else 3)
    # NCCL knows no tags: the n-th message of a pair is sent and received by the same place in both ranks' orders. One
    # communicator for both directions, so the orders are each other's mirror, or kernels wait for each other.
    kinds = {"send": "receive", "receive": "send"}
    assert [(kinds[kind], tag) for kind, tag, *_ in found[0].asked.messages] == [
        (kind, tag) for kind, tag, *_ in found[1].asked.messages]
    assert {dtype for *_, dtype, _ in found[0].asked.messages} == {torch.float32, torch.bfloat16}
    table = (tmp_path / "ranks/collectives.csv").read_text().splitlines()
    assert len(table) == 1 + 3 * 4


def test_two_ranks_on_one_gpu_send_through_the_host(monkeypatch, tmp_path):
    found = two_ranks(monkeypatch, tmp_path, gpus=1, backend="gloo")
    for one in found:
        assert one.asked.backends == ["gloo"] and "take cuda:0" in one.told and one.drawn == {"cuda:0"}
        assert one.asked.messages and {where for *_, where in one.asked.messages} == {"cpu"}
        assert set(map(str, one.asked.collectives)) == {"('barrier', None)", "('all_reduce', 'cpu')"}
    assert not (tmp_path / "ranks/collectives.csv").exists()
    told = next(row for row in found[0].rows if row["check"].startswith("Watch"))
    assert not told["judged"]


@pytest.fixture
def dry(monkeypatch, fake_gpu):
    """A GPU that is not there, on which all runs that needs no memory of it."""
    adam, drawn = dry_gpu.eager_adam(monkeypatch), dry_gpu.without_generators(monkeypatch)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: types.SimpleNamespace(replay=lambda: None))
    monkeypatch.setattr(torch.cuda, "graph", contextlib.nullcontext)
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: function)
    with dry_gpu.OnMeta():
        yield types.SimpleNamespace(told=fake_gpu, adam=adam, drawn=drawn)


def work_on_a_gpu(tmp_path, part, seconds=1000.0):
    check = folder.Folder(tmp_path)
    check.write_json("about.json", {"torch_device": "cuda:0", "scale": "gpu", "cluster": "h100-sxm", "gpus": 1})
    return folder.Work(check, part, seconds)


def test_steps_on_a_gpu_are_walked_without_one(dry, monkeypatch, tmp_path):
    """Every stack, eager with each recomputation and compiled, but for what FSDP2 and the compiler do inside."""
    fewer = {**{name: {**getattr(GPU, name), "layers": 1} for name in ("vit", "llm", "dit")}, "expert_layers": 1}
    monkeypatch.setitem(cases.SCALES, "gpu", dataclasses.replace(GPU, **fewer))
    for steps_of, few in (("_warm", 1), ("_fewest", 1), ("_most", 1)):
        monkeypatch.setattr(steps, steps_of, few)
    some = steps.cases("gpu")[:12]
    monkeypatch.setattr(steps, "cases", lambda scale: some)
    sharded, compiled = [], []
    monkeypatch.setattr(steps, "fully_shard", lambda module, mp_policy: sharded.append(
        (mp_policy.param_dtype, mp_policy.reduce_dtype)))
    monkeypatch.setattr(torch.nn.Module, "compile", lambda module, dynamic: compiled.append(dynamic))
    work = work_on_a_gpu(tmp_path, "steps")
    with monkeypatch.context() as patched:
        asked = dry_gpu.fake_groups(patched, "nccl")
        steps.run(work)
    assert asked.backends == ["nccl"] and dry.told[0] == "take cuda:0" and work.found.left == []
    assert [row.get("why") for row in work.found.rows] == [None] * 12
    assert all((row["allocated_bytes"], row["reserved_bytes"]) == (1000, 2000) for row in work.found.rows)
    assert set(sharded) == {(torch.bfloat16, torch.float32)} and dry.adam == [True] * 12
    assert compiled == [False] * (2 + 1 + 1)


def test_recomputed_blocks_under_fsdp2_are_compiled_once_and_whole(monkeypatch):
    """Blocks of a kind share a graph, which nothing breaks: traced as on a GPU, and run as eager kernels of the CPU."""
    stack = next(one for one in cases.stacks(cases.SCALES["cpu"]) if one.name == "moe")
    compiled = torch.compile
    monkeypatch.setattr(torch, "compile", lambda function, **named: compiled(function, backend="aot_eager", **named))
    steps._one_rank(torch.device("cpu"))
    found = {}
    try:
        for how in ("eager", "compiled"):
            steps._let_go(torch.device("cpu"))
            torch._dynamo.utils.counters.clear()
            step, _ = steps._step(steps.Case(stack, how, "selective"), torch.device("cpu"))
            found[how] = [step(), step()]
    finally:
        torch.distributed.destroy_process_group()
    assert found["compiled"] == pytest.approx(found["eager"], rel=1e-5)
    counted = torch._dynamo.utils.counters
    assert counted["stats"]["unique_graphs"] == 2 and not counted["graph_break"]  # a block and the loss


def test_the_machine_s_own_rates_are_walked_without_a_gpu(dry, tmp_path):
    work = work_on_a_gpu(tmp_path, "machine")
    rates.run(work)
    assert [row.get("why") for row in work.found.rows] == [None] * len(work.found.rows)
    assert len({row["what"] for row in work.found.rows}) == len(work.found.rows) == 9
    rates_of = {row["what"]: row["value"] for row in work.found.rows}
    # Every repetition took a millisecond: 2 * 8192^3 operations, 2 GiB read and written, a quarter GiB over the bus.
    assert rates_of["bf16 product of 8192 x 8192 x 8192"] == pytest.approx(2 * 8192**3 / 1e9, rel=1e-4)
    assert rates_of["copy on the device, read and written"] == pytest.approx(2**31 / 1e6, rel=1e-4)
    assert rates_of["host to device, pinned"] == rates_of["device to host, pinned"] == pytest.approx(268.44, rel=1e-4)


def test_operators_are_walked_without_a_gpu(dry, monkeypatch, tmp_path):
    """All that the three stacks ask tables for."""
    monkeypatch.setitem(cases.PLANS, "gpu", [])
    work = work_on_a_gpu(tmp_path, "operators")
    operators.run(work)
    assert all("what kernels 'other' stands for" in left for left in work.found.left), work.found.left
    assert {row["table"] for row in work.found.rows} == {"gemm", "attention", "elementwise"}
    kinds = {(row.get("kind", row["table"]), row["pass"]) for row in work.found.rows}
    assert {("attention", "backward"), ("gemm", "backward_weight"), ("norm_activation", "backward"),
            ("cross_entropy", "backward"), ("embedding", "backward"), ("optimizer", "forward")} <= kinds
    assert {row["measured_us"] for row in work.found.rows} == {1000.0} and "synchronize" in dry.told


def test_what_the_tables_know_least_is_measured_first():
    def need(m, basis, share):
        row = {"dtype": "bf16", "m": m, "n": 8, "k": 4, "pass": "forward", "times": 1, "estimate_us": 1, "basis": basis,
               "share_percent": share}
        return Need("gemm", {name: str(value) for name, value in row.items()})

    first = Needs("h200_sxm", [need(1, "exact", 60), need(2, "interpolated", 30), need(3, "modelled", 10)])
    second = Needs("h200_sxm", [need(3, "modelled", 50), need(4, "extrapolated", 50)])
    found = operators.in_order([first, second])
    assert [one["m"] for one in found] == [3, 4, 2, 1] and sum(one.share for one in found) == pytest.approx(1)


def test_what_is_beyond_a_limit_is_said_line_by_line():
    document = measured_document()
    assert compare._beyond(document) == [
        "gradients, rank 0: does not hold (1, limit 0.0001)",
        "vlm eager, recompute none: the step is predicted +100.0 %",
        "vlm eager, recompute none: the peak is predicted +100.0 %",
        "moe eager, recompute none: the step is predicted +100.0 %",
        "moe eager, recompute none: the peak is predicted +100.0 %",
        "gemm forward, exact: the middle one of 9 is predicted +20.0 %",
        "the two ranks' step with its passes' own times is +20.0 %"]
    document["scale"] = "cpu"
    assert compare._beyond(document) == ["gradients, rank 0: does not hold (1, limit 0.0001)"]


def test_text_and_page_show_the_same_tables():
    document = {**measured_document(), "beyond": ["<one>"], "verdict": "beyond"}
    text, html = show.text(document), page.page(document)
    assert "beyond: <one>" in text and "missing: ranks (failed: x)" in text
    assert "not reached: ranks: 4, a, b, c ..." in text and "ranks: 4, a, b, c ..." in html
    assert "<li>&lt;one&gt;</li>" in html and "GPU &lt;1&gt;" in html and "<one>" not in html
    for name, _, rows in show.tables(document):
        assert rows and name in text and page._text(name) in html


@pytest.mark.parametrize("name, cluster", [  # as PyTorch says them
    ("NVIDIA H200", "h200-sxm"), ("NVIDIA H100 80GB HBM3", "h100-sxm"), ("NVIDIA H100 NVL", "h100-nvl"),
    ("NVIDIA GH200 480GB", "gh200"), ("NVIDIA GB200", "gb200-nvl72"), ("NVIDIA B200", "b200-sxm"),
    ("NVIDIA B300 SXM6 AC", "b300-sxm"), ("NVIDIA H20", "h20-sxm"), ("NVIDIA H20-3e", "h20-sxm"),
    ("NVIDIA A100-SXM4-80GB", "a100-sxm"), ("NVIDIA A100-SXM4-40GB", "a100-40gb"),
    ("NVIDIA A100 80GB PCIe", "a100-pcie"), ("NVIDIA L40S", "l40s"), ("NVIDIA L40", "l40"),
    ("NVIDIA GeForce RTX 4090", "rtx-4090"), ("AMD Instinct MI300X", "mi300x"), (None, "cpu")])
def test_a_gpu_is_known_by_its_name(name, cluster, pipeweaver):
    assert device.cluster_of(name) == cluster
    assert any(line.startswith(f"{cluster} ") for line in pipeweaver("list", "clusters").splitlines())


@pytest.mark.parametrize("name, why", [
    ("NVIDIA H100 80GB HBM3 MIG 3g.40gb", "this is NVIDIA H100 80GB HBM3 MIG 3g.40gb, predictions are of whole GPUs"),
    ("NVIDIA H100 PCIe", "no cluster of it is known"), ("NVIDIA H200 NVL", "no cluster of it is known"),
    ("NVIDIA RTX A1000", "no cluster of it is known"), ("Radeon", "no cluster of it is known")])
def test_a_gpu_that_no_cluster_has_is_not_taken_for_another(name, why):
    with pytest.raises(device.InputError, match=f"missing --cluster NAME.*{re.escape(why)}"):
        device.cluster_of(name)


def test_an_old_pytorch_and_a_driver_are_known_by_their_words():
    assert device.too_old("2.5.1+cu124") and not device.too_old("2.6.0a0+ecf3bae40a.nv25.01")
    assert not device.too_old("2.13.0+cpu") and not device.too_old("3.0")
    text = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {}  Wed\nGCC version:  gcc version 12.3.0 (Ubuntu)\n"
    assert device.driver_in(text.format("535.104.05")) == "535.104.05"
    assert device.driver_in(text.format("470.74")) == "470.74"
    assert device.driver_in("") is None


def test_why_no_gpu_is_seen(monkeypatch):
    built = types.SimpleNamespace(__version__="9.0+cpu", version=types.SimpleNamespace(cuda=None, hip=None))
    assert device._why_none(built) == "9.0+cpu is built without CUDA"
    built.version.cuda = "12.8"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert device._why_none(built) == "CUDA_VISIBLE_DEVICES is ''"
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert "nvidia-smi" in device._why_none(built)


@pytest.fixture
def gpus(monkeypatch):
    """Four GPUs, as PyTorch tells of them; the first drives a screen."""
    names = ["NVIDIA T400", *["NVIDIA H100 80GB HBM3"] * 3]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(names))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda of: names[torch.device("cuda", of).index]
                        if isinstance(of, int) else names[of.index])
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: types.SimpleNamespace(total_memory=80 << 30))
    monkeypatch.setattr(torch.cuda, "clock_rate", lambda _: 1980)
    return names


def test_ranks_take_the_chosen_gpu_and_the_next_of_its_kind(gpus):
    assert [str(ranks.device_of("cuda:3", rank)) for rank in (0, 1)] == ["cuda:3", "cuda:1"]
    assert ranks.own_devices("cuda:3") and not ranks.own_devices("cuda:0") and not ranks.own_devices("cpu")
    assert [str(ranks.device_of("cuda:0", rank)) for rank in (0, 1)] == ["cuda:0", "cuda:0"]
    assert str(ranks.device_of("cpu", 1)) == "cpu"


def test_of_a_rank_that_failed_its_error_is_told(tmp_path):
    check = folder.Folder(tmp_path)
    check.write_json("about.json", {})
    work = folder.Work(check, "ranks", 1.0)
    for text, said in (("[rank1]: Traceback\n[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried\n"
                        "[rank1]:[W1130 ProcessGroupNCCL.cpp:1] Warning: destroy_process_group() was not called\n",
                        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried"),
                       ("Segmentation fault\n\n", "Segmentation fault"), ("", "ended without a word")):
        check.write("ranks/rank-1.log", text)
        assert ranks._last_line(work, 1) == said


def test_what_is_said_of_a_gpu_makes_no_context_on_it(gpus, monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: pytest.fail("this makes one"))
    found = device.about_device("cuda:2", None)
    assert (found["cluster"], found["gpus"], found["memory_bytes"]) == ("h100-sxm", 3, 80 << 30)
    assert found["torch_device"] == "cuda:2" and found["scale"] == "gpu"
    assert device.about_device("cuda", "h200-sxm")["torch_device"] == "cuda:0"


def test_a_gpu_that_does_not_start_is_one_line(gpus, monkeypatch):
    def fails(_):
        raise RuntimeError("system not yet\ninitialized")

    monkeypatch.setattr(torch.cuda, "get_device_name", fails)
    with pytest.raises(device.InputError, match="^--device: cuda:1 cannot be used: system not yet initialized$"):
        device.about_device("cuda:1", None)


def test_a_step_that_runs_out_of_memory_is_beyond_where_it_was_to_fit(fake_gpu, monkeypatch, tmp_path):
    def runs_out(case, at, left_s):
        raise torch.OutOfMemoryError("CUDA out of memory.\nTried")

    one = steps.cases("gpu")[0]
    monkeypatch.setattr(steps, "cases", lambda scale: [one])
    monkeypatch.setattr(steps, "measured", runs_out)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (20 << 30, 80 << 30))
    check = folder.Folder(tmp_path)
    check.write_json("about.json", {"torch_device": "cuda:0", "scale": "gpu", "cluster": "h100-sxm"})
    work = folder.Work(check, "steps", 100.0)
    steps._all(work, torch.device("cuda:0"))
    row = work.found.rows[0]
    assert row["why"] == "OutOfMemoryError: CUDA out of memory. Tried" and row["free_bytes"] == 20 << 30
    seen = []
    monkeypatch.setattr(compare, "_program", lambda *asked: seen.append(asked) or json.dumps(
        {"replicas": [{"ranks": [{"memory": {"peak_bytes": 45 << 30}}]}], "step_ns": 1,
         "share_of_time": {"by_operator": {}, "by_basis": {}}, "assumed": []}))
    compared = compare._step(check, work.about, row, None)
    document = {**measured_document(), "steps": [compared], "operators": [], "ranks": [], "schedule": None}
    assert seen and compared["predicted_bytes"] == 45 << 30 and compare._beyond(document) == []
    document["steps"] = [{**compared, "free_bytes": 80 << 30}]
    assert compare._beyond(document) == [f"vlm eager, recompute none: did not run: {row['why']}"]
    assert row["why"][:40] in show.text({**document, "beyond": [], "verdict": "within"})


def test_without_a_compiler_the_loss_in_eager_pytorch_is_measured_still(fake_gpu, monkeypatch, tmp_path):
    def no_compiler(*_, **__):
        return lambda *_: (_ for _ in ()).throw(RuntimeError("no\ntriton"))

    check = folder.Folder(tmp_path)
    check.write_json("about.json", {"torch_device": "cpu", "scale": "cpu"})
    cpu = types.SimpleNamespace(is_gpu=True, device=torch.device("cpu"), clock=machine.CpuClock)
    monkeypatch.setattr(rates, "Machine", lambda name: cpu)
    monkeypatch.setattr(torch, "compile", no_compiler)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (3 << 30, 4 << 30))
    work = folder.Work(check, "machine", 1.0)
    rates.run(work)
    rows = {row["what"]: row for row in work.found.rows}
    assert rows["memory that is free, of 4.0 GiB"]["value"] == 3
    assert rows["fused loss"]["why"] == "RuntimeError: no triton"
    assert any(what.endswith("forward and backward, eager") for what in rows)


def test_the_parts_keep_the_ten_minutes():
    assert sum(part.seconds(600) for part in folder.PARTS) <= 0.92 * 600
    for part in folder.PARTS:
        assert pathlib.Path(folder.__file__).with_name(f"{part.module}.py").exists()
