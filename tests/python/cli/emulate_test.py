"""pipeweaver emulate: figures that add up, the same with and without reuse, what-if files, traces, bad input."""

import gzip
import json
import math
import re
import resource
import signal
import subprocess

import pytest
from checkout import ROOT
from cli_shared import BATCH, PLAN, digests

STEP = ["emulate", *PLAN[1:], *BATCH]
STREAMS = ["tensor", "context", "data", "copy", "host"]


def changed(arguments, change):
    """The arguments with other values of some options."""
    arguments = list(arguments)
    for name, value in zip(change[::2], change[1::2]):
        if name in arguments:
            arguments[arguments.index(name) + 1] = value
        else:
            arguments += [name, value]
    return arguments


@pytest.fixture(scope="session")
def emulated(pipeweaver, tmp_path_factory):
    """A step emulated on one thread, with the kernels of two ranks."""
    folder = tmp_path_factory.mktemp("emulate") / "one"
    pipeweaver(*STEP, "--threads", "1", "--trace", "0,3", "--out", folder)
    return folder


@pytest.fixture(scope="session")
def answer(emulated):
    return json.loads((emulated / "emulation.json").read_text())


@pytest.fixture()
def step(pipeweaver):
    """Emulates with further options; returns the answer."""

    def run(*options):
        return json.loads(pipeweaver(*changed(STEP, options), "--json"))

    return run


def test_the_time_of_every_rank_and_the_critical_path_add_up_to_the_step(answer):
    assert answer["format"] == "pipeweaver-emulation/1"
    assert answer["step_ns"] == answer["makespan_ns"] + answer["after_all_ranks_ns"]
    for replica in answer["replicas"]:
        assert sum(part["time_ns"] for part in replica["critical_path"]) == replica["step_ns"]
        assert len(replica["ranks"]) == 4
        for rank in replica["ranks"]:
            busy = rank["compute_ns"] + sum(rank["exposed_ns"].values()) + rank["gradients_ns"] + rank["optimizer_ns"]
            assert list(rank["exposed_ns"]) == STREAMS
            assert rank["busy_ns"] == busy
            assert busy + rank["bubble_ns"] == replica["step_ns"]


def test_memory_adds_up_to_a_peak_that_fits(answer):
    parts = ["weights", "gradients", "optimizer", "workspace", "receive_buffers", "activations", "transient"]
    for rank in answer["replicas"][0]["ranks"]:
        memory = rank["memory"]
        assert memory["peak_bytes"] == sum(memory[f"{part}_bytes"] for part in parts)
        assert memory["peak_bytes"] == max(held for _, held in memory["timeline"]) <= memory["capacity_bytes"]
        times = [at for at, _ in memory["timeline"]]
        assert times == sorted(times)
        assert 0 <= times[0] and times[-1] <= answer["makespan_ns"]


def test_mfu_and_throughput_follow_from_the_step(answer):
    seconds = answer["step_ns"] * 1e-9
    assert answer["tokens_per_second"] == pytest.approx(answer["tokens"] / seconds)
    gpus = answer["tokens_per_second"] / answer["tokens_per_second_per_gpu"]
    assert answer["tflops_per_gpu"] == pytest.approx(answer["model_flops"] / seconds / gpus * 1e-12)
    assert answer["mfu"] == pytest.approx(answer["tflops_per_gpu"] / 989)
    assert "training" not in answer
    assert answer["mfu"] == pytest.approx(answer["model_flops"] / (32 * 989.4e12 * seconds), rel=1e-3)
    assert sum(answer["share_of_time"]["by_basis"].values()) == pytest.approx(1)


def test_a_training_run_takes_its_steps_on_all_gpus(pipeweaver, answer):
    training = json.loads(pipeweaver(*STEP, "--tokens", "300B", "--price", "2", "--json"))["training"]
    assert training["steps"] == math.ceil(300e9 / answer["tokens"])
    hours = training["steps"] * answer["step_ns"] * 1e-9 / 3600
    assert training["days"] == pytest.approx(hours / 24)
    assert training["gpu_hours"] == pytest.approx(32 * hours)
    assert training["usd"] == pytest.approx(64 * hours) and training["kwh"] == pytest.approx(32 * 0.7 * hours)
    assert f"300 B tokens in {training['steps']} steps: {training['days']:.1f} days, " in pipeweaver(
        *STEP, "--tokens", "300B")


@pytest.mark.parametrize("how", [["--no-reuse"], ["--threads", "2"], ["--threads", "16"], ["--repeat", "2"]])
def test_result_files_depend_neither_on_reuse_nor_on_threads(pipeweaver, emulated, tmp_path, how):
    pipeweaver(*STEP, *how, "--trace", "0,3", "--out", tmp_path / "other")
    assert digests(tmp_path / "other") == digests(emulated)


def test_what_was_measured_stands_apart(pipeweaver, answer):
    got = json.loads(pipeweaver(*STEP, "--json", "--repeat", "3", "--threads", "2"))
    run, reuse = got.pop("run"), got.pop("reuse")
    assert got == answer
    assert len(run["emulate_seconds"]) == 3
    assert run["threads"] == 2 and not run["no_reuse"]
    assert sum(run["emulate_seconds"]) <= run["seconds"]
    assert set(reuse) == {"hits", "misses", "evictions", "blocks", "bytes"}


def test_the_opponent_takes_what_the_plan_says_of_it(pipeweaver, planned):
    plan = json.loads((planned / "plan.json").read_text())
    answer = json.loads(pipeweaver(*plan["opponent"]["command"].split()[1:], "--json"))
    assert answer["step_ns"] == plan["opponent"]["step_ns"]


def test_a_plan_takes_what_it_said(planned, step):
    plan = json.loads((planned / "plan.json").read_text())
    got = step("--schedule", planned)
    assert (got["makespan_ns"], got["step_ns"]) == (plan["makespan_ns"], plan["step_ns"])
    assert [rank["memory"]["peak_bytes"] for rank in got["replicas"][0]["ranks"]] == [
        rank["peak_bytes"] for rank in plan["replicas"][0]["memory"]]


def test_a_trace_has_every_kernel_of_its_ranks_and_no_stream_runs_two_at_once(emulated, answer):
    events = json.loads(gzip.decompress((emulated / "trace.json.gz").read_bytes()))["traceEvents"]
    kernels = [event for event in events if event["ph"] == "X"]
    assert {event["pid"] for event in kernels} == {0, 3}
    for rank in (0, 3):
        threads = {event["tid"]: event["args"]["name"] for event in events
                   if event["pid"] == rank and event["name"] == "thread_name"}
        for thread in threads:
            row = sorted((round(event["ts"] * 1000), round(event["dur"] * 1000)) for event in kernels
                         if (event["pid"], event["tid"]) == (rank, thread))
            for (start, duration), (later, _) in zip(row, row[1:]):
                assert start + duration <= later
        assert max(round((event["ts"] + event["dur"]) * 1000) for event in kernels
                   if event["pid"] == rank) <= answer["step_ns"]
        assert any(event["ph"] == "C" and event["pid"] == rank for event in events)


def write_what_if(folder, text, name="w.json"):
    (folder / name).write_text(text)
    return folder / name


def what_if(**factors):
    return json.dumps({"format": "pipeweaver-what-if/1", **factors})


def test_factors_of_one_change_nothing(step, answer, tmp_path):
    got = step("--what-if", write_what_if(tmp_path, what_if(links={"tensor": 1}, modules={"vit": 1})))
    assert got["base"]["step_ns"] == got["step_ns"] == answer["step_ns"]
    assert got["replicas"] == answer["replicas"]


@pytest.mark.parametrize("faster", [{"links": {"tensor": 0.5}}, {"operators": {"attention": 0.5}},
                                    {"operators": {"qkv": 0.5}}, {"modules": {"llm": 0.5}},
                                    {"devices": [{"rank": rank, "factor": 0.5} for rank in range(4)]}])
def test_what_is_faster_makes_the_step_shorter_and_what_is_slower_longer(step, answer, tmp_path, faster):
    def times(factor):
        text = what_if(**faster).replace("0.5", str(factor))
        return step("--what-if", write_what_if(tmp_path, text))

    quick, slow = times(0.5), times(2)
    assert quick["base"]["step_ns"] == slow["base"]["step_ns"] == answer["step_ns"]
    assert quick["step_ns"] < answer["step_ns"] < slow["step_ns"]
    assert quick["tokens_per_second"] > answer["tokens_per_second"]


def test_the_table_says_the_same(pipeweaver, answer, tmp_path):
    text = pipeweaver(*STEP, "--what-if", write_what_if(tmp_path, what_if(links={"tensor": 1})))
    assert f" {answer['step_ns'] * 1e-9:.6f} s = makespan" in text
    assert "recomputation not counted" in text and "(dense bf16) x step" in text
    assert re.search(r"^step +\S+ s +\S+ s +\+0\.00 %$", text, re.MULTILINE)
    assert len(re.findall(r"^\d+ +\d+\.\d %", text, re.MULTILINE)) == 4


def test_formats_are_a_what_if_and_layers_are_named_for_a_shorter_step(step, pipeweaver, answer):
    one = step("--what-if", "precision=llm=fp8")
    assert one["base"]["step_ns"] == answer["step_ns"] and one["asked"]["what_if"]["precision"] == "llm=fp8"
    every = step("--what-if", "precision")["precision"]["modules"]
    assert [(row["module"], row["products"]) for row in every] == [
        (module, products) for module in ("vit", "llm") for products in ("fp8", "fp8_block")]
    assert every[2]["step_ns"] < answer["step_ns"]
    assert "what if the products of a module had another format" in pipeweaver(*STEP, "--what-if", "precision")


@pytest.mark.parametrize("partition", ["first-stage", "three-phase"])
@pytest.mark.parametrize("options", [("--policy", "1f1b"), ("--chunks", "2", "--policy", "interleaved")], ids=" ".join)
def test_partitions_of_multimodal_models_are_emulated_with_and_without_reuse(pipeweaver, partition, options):
    asked = [*STEP, "--partition", partition, *options, "--any-memory", "--json"]
    answer, again = json.loads(pipeweaver(*asked)), json.loads(pipeweaver(*asked, "--no-reuse"))
    for one in (answer, again):
        del one["run"], one["reuse"]
    assert answer == again
    cut = answer["partition"]
    assert cut["name"] == partition and len(cut["chains"]) == 1
    assert cut.get("dealt") == (["vit"] if partition == "three-phase" else None)


def test_a_plan_with_dealt_encoders_is_emulated_from_its_folder_and_has_their_stages_in_its_lists(pipeweaver, tmp_path):
    folder = tmp_path / "plan"
    pipeweaver(*PLAN, *BATCH, "--partition", "three-phase", "--max-rounds", "2", "--out", folder)
    plan = json.loads((folder / "plan.json").read_text())
    again = json.loads(pipeweaver("emulate", *PLAN[1:], *BATCH, "--schedule", folder, "--json"))
    assert again["step_ns"] == plan["step_ns"] and again["partition"]["dealt"] == ["vit"]
    pipeweaver("emit", "--plan", folder, "--target", "torch-actions", "--out", tmp_path / "lists")
    whole = (folder / "replica-000" / "actions.json").read_bytes()
    assert next((tmp_path / "lists").rglob("actions.json")).read_bytes() == whole
    lists = json.loads(whole)
    phases = [stage for stage in lists["stages"] if stage.get("phase")]
    assert [stage["rank"] for stage in phases] == list(range(lists["ranks"])) and len(lists["shares"]) == len(phases)
    assignment = json.loads((folder / "assignment.json").read_text())
    gpus = plan["asked"]["tp"] * plan["asked"]["pp"]
    for replica in assignment["replicas"]:
        units = [unit for one in replica["microbatches"] for unit in one["units"] if unit["module"] == "vit"]
        assert units and all(0 <= unit["gpu"] < gpus and len(unit["items"]) == 1 for unit in units)
        assert {unit["gpu"] for unit in units} == set(range(min(gpus, len(units))))


def test_more_blocks_take_longer_and_all_are_full(step):
    balanced = ["--partition", "balanced", "--recompute"]
    times = [step(*balanced, setting)["step_ns"] for setting in ("none", "blocks:1", "blocks:5", "full")]
    assert times == sorted(times) and len(set(times)) == 4
    whole, full = step(*balanced, "blocks:1000"), step(*balanced, "full")
    assert whole["asked"]["recompute"] == whole["recompute"] == "blocks:1000"
    assert whole["step_ns"] == full["step_ns"]
    assert whole["share_of_time"] == full["share_of_time"]
    for one, other in zip(whole["replicas"], full["replicas"]):
        assert one["ranks"] == other["ranks"]


def test_by_rank_says_what_each_rank_takes_and_fits(pipeweaver, step):
    options = ["--microbatches", "12", "--partition", "balanced", "--policy", "gpipe", "--recompute"]
    by_rank = step(*options, "by-rank")
    assert by_rank["asked"]["recompute"] == by_rank["recompute"] == "by-rank"
    taken = [rank["recompute"] for rank in by_rank["replicas"][0]["ranks"]]
    assert len(set(taken)) > 1 and set(taken) != {"none"}
    for rank in by_rank["replicas"][0]["ranks"]:
        assert rank["memory"]["peak_bytes"] <= rank["memory"]["capacity_bytes"]
    uniform = step(*options, "full")
    assert "recompute" not in uniform["replicas"][0]["ranks"][0]
    assert by_rank["step_ns"] < uniform["step_ns"]

    said = step(*options, "by-rank:" + "/".join(taken))
    assert said["recompute"] == "by-rank:" + "/".join(taken)
    assert said["replicas"] == by_rank["replicas"] and said["step_ns"] == by_rank["step_ns"]

    table = pipeweaver(*changed(STEP, [*options, "by-rank"]))
    assert ", recompute by-rank, " in table
    assert re.search(r"activations +transient +recompute\n0 .* " + taken[0] + "\n", table)
    by_kernels = json.loads(pipeweaver(*changed(STEP, [*options, "by-rank"]), "--no-reuse", "--json"))
    assert by_kernels["replicas"] == by_rank["replicas"]


WHAT_IF_FAULTS = [
    ({"links": {"tensr": 1}}, "w.json: links: unknown key 'tensr'; did you mean 'tensor'?"),
    ({"operators": {"atention": 1}}, "w.json: operators: unknown key 'atention'; did you mean 'attention'?"),
    ({"modules": {"llmm": 1}}, "w.json: modules: unknown key 'llmm'; did you mean 'llm'?"),
    ({"devices": [{"rank": 4, "factor": 1}]}, "w.json: devices[0].rank: is 4, must be a whole number from 0 to 3"),
    ({"modules": {"llm": 0}}, "w.json: modules.llm: is 0, must be a number above 0 up to 1000"),
    ({"modul": {}}, "w.json: unknown key 'modul'; did you mean 'modules'?"),
]


@pytest.mark.parametrize("factors, words", WHAT_IF_FAULTS, ids=[words for _, words in WHAT_IF_FAULTS])
def test_a_bad_what_if_file_is_one_line(pipeweaver, tmp_path, factors, words):
    path = write_what_if(tmp_path, what_if(**factors))
    status, line = pipeweaver.fails(*STEP, "--what-if", path, "--out", tmp_path / "out")
    assert (status, line) == (2, f"pipeweaver: {tmp_path}/{words}")
    assert not (tmp_path / "out").exists()


FAULTS = [
    (["--policy", "1f2b"], 2, "unknown policy '1f2b'; did you mean '1f1b'?"),
    (["--partition", "best"], 2, "--partition: is 'best', must be one of dip, modules, megatron, balanced"),
    (["--recompute", "some"], 2, "--recompute: is 'some', must be one of none, "),
    (["--recompute", "blocks:0"], 2,
     "--recompute: is 'blocks:0', must be one of none, selective, second-products, core-attention, half, full, "
     "offload, encoders, backbone, blocks:N, "
     "by-rank; N is 1 or more"),
    (["--recompute", "by-rank:full/none"], 2,
     "--recompute: by-rank:full/none says 2 settings, allowed are those of 4 ranks"),
    (["--recompute", "blocks:x"], 2, "--recompute: is 'blocks:x', must be one of none, "),
    (["--recompute", "blocks"], 2, "--recompute: is 'blocks', must be one of none, "),
    (["--recompute", "by-rank", "--policy", "dual-queue"], 2,
     "--recompute: by-rank goes with policies of a fixed order: gpipe, 1f1b, interleaved, zb-h1, zb-v, v-half, v-min; "
     "dual-queue decides by time"),
    (["--zero", "4"], 2, "--zero: is '4', must be a whole number from 0 to 3"),
    (["--zero", "2", "--bucket", "40MB"], 2, "--bucket: goes with --zero 0 and 1"),
    (["--recipe", "torch-fsdp2", "--bucket", "40MB"], 2, "--bucket: goes with --zero 0 and 1; with 3 gradients are "),
    (["--recipe", "megatron-core-overlap", "--zero", "2"], 2,
     "--zero: is 2, but the recipe megatron-core-overlap reduces gradients in buckets, which goes with 0 and 1; or say "
     "--bucket 0B"),
    (["--action", "300"], 2, "--action: '300' is not a time"),
    (["--action", "2s"], 2, "--action: is '2s', must be a time up to 1s"),
    (["--bucket", "40"], 2, "--bucket: '40' is not a size"),
    (["--launch", "5"], 2, "--launch: '5' is not a time"),
    (["--launch", "2s"], 2, "--launch: is '2s', must be a time up to 1s"),
    (["--host-link", "1KB/s"], 2, "--host-link: is '1KB/s', must be a speed from 1MB/s"),
    (["--overlap-slowdown", "0.5"], 2, "--overlap-slowdown: is '0.5', must be a number from 1 to 10"),
    (["--chunks", "0"], 2, "--chunks: is '0', must be a whole number from 1 to 1024"),
    (["--partition", "three-phase", "--zero", "3"], 2, "partition three-phase: is emulated with --zero 0 or 1"),
    (["--chunks", "2", "--partition", "dip"], 2, "--chunks: goes with all partitions but dip"),
    (["--trace", "4"], 2, "--trace: is '4', must be a whole number from 0 to 3"),
    (["--trace", "0,,1"], 2, "--trace: is '', must be a whole number from 0 to 3"),
    (["--repeat", "0"], 2, "--repeat: is '0'"),
    (["--tp", "3"], 2, "GPUs"),
    (["--cluster", "h100-sxm:20", "--tp", "5"], 2, "--tp: 5 does not divide the"),
    (["--cluster", "h100-sxm:4", "--tp", "1"], 4, "short"),
    (["--schedule", "none"], 3, "--schedule: there is no file or folder 'none'"),
    (["--what-if", "precision=fp8"], 2, "--what-if: is 'precision=fp8', must be a file, precision, "),
    (["--what-if", "precision=nvfp4:5%"], 2, "which h100_sxm has no products of; allowed are bf16, fp8, fp8_block"),
    (["--what-if", "precision=vti=fp8"], 2, "precision.vti: unknown module 'vti'; known are vit, llm"),
    (["--sparsity", "0.5"], 2, "--sparsity: is of diffusion transformers with dense attention alone, and"),
    (["--model", "dip-t2v-s", "--dataset", "t2v-mix", "--sparsity", "1.2"], 2, "must be a number from 0 to 1"),
    (["--model", "dip-t2v-s", "--dataset", "t2v-mix", "--sparsity", "dit=0.5/0.9"], 2, "has 2 numbers, allowed are"),
    (["--what-if", "sparsity"], 2, "--what-if: sparsity is of diffusion transformers with dense attention, and"),
    (["--module-context", "vti=2x2"], 2, "has no module 'vti', known are vit, llm"),
    (["--module-context", "vit=2x2"], 2, "--module-context: 'vit=2x2' are 4 GPUs, must be those of --cp, 1"),
    (["--what-if", "none.json"], 3, "none.json: cannot be read: No such file or directory"),
]


@pytest.mark.parametrize("change, status, words", FAULTS, ids=[" ".join(change) for change, _, _ in FAULTS])
def test_a_bad_option_is_one_line_and_nothing_is_written(pipeweaver, tmp_path, change, status, words):
    got, line = pipeweaver.fails(*changed(STEP, change), "--out", tmp_path / "out")
    assert got == status, line
    assert words in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("trained", [["--action", "300us"], ["--zero", "0"], ["--recipe", "torch-fsdp2"],
                                     ["--recipe", "megatron-core", "--launch", "5us"]], ids=" ".join)
def test_a_plan_takes_what_it_said_with_the_recipe_that_it_was_made_with(pipeweaver, tmp_path, trained):
    out = tmp_path / "plan"
    pipeweaver(*PLAN, *BATCH, *trained, "--max-rounds", "3", "--threads", "1", "--out", out)
    plan = json.loads((out / "plan.json").read_text())
    step = json.loads(pipeweaver("emulate", *PLAN[1:], *BATCH, *trained, "--schedule", out, "--json"))
    assert step["step_ns"] == plan["step_ns"]


def test_a_trace_needs_a_folder_and_a_schedule_nothing_beside_it(pipeweaver, planned):
    assert pipeweaver.fails(*STEP, "--trace", "0") == (
        2, "pipeweaver: --trace: needs --out, a folder for trace.json.gz")
    for option in (["--policy", "1f1b"], ["--partition", "dip"], ["--chunks", "2"], ["--recompute", "full"]):
        status, line = pipeweaver.fails(*STEP, "--schedule", planned, *option)
        assert status == 2 and "--schedule: has its own partition, order and recomputation" in line


def test_a_schedule_of_another_batch_is_refused(pipeweaver, planned):
    status, line = pipeweaver.fails(*changed(STEP, ["--microbatches", "5"]), "--schedule", planned)
    assert status == 2
    assert str(planned) in line


def limited_files():
    """Files may have 4 KiB: what is longer fails as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_on_a_full_disk_nothing_half_written_is_left(pipeweaver, tmp_path):
    command = [str(pipeweaver.path), *STEP, "--trace", "0,1,2,3", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
                          preexec_fn=limited_files)
    assert done.returncode == 3
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and "cannot be written" in done.stderr
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


def test_an_older_result_outlives_a_full_disk(pipeweaver, emulated, tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    for path in emulated.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    command = [str(pipeweaver.path), *changed(STEP, ["--seed", "2"]), "--out", str(folder)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=600, preexec_fn=limited_files)
    assert done.returncode == 3
    assert digests(folder) == digests(emulated)
    assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in emulated.iterdir())


def test_a_trace_of_an_earlier_run_goes_where_there_is_none_now(pipeweaver, emulated, tmp_path):
    pipeweaver(*STEP, "--trace", "0", "--out", tmp_path / "out")
    pipeweaver(*STEP, "--out", tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"emulation.json", "run.json"}


def test_the_example_of_a_what_if_file_says_what_docs_say(step):
    got = step("--what-if", ROOT / "examples/what-if.yaml")
    assert got["asked"]["what_if"]["links"] == {"tensor": 0.5}
    assert got["asked"]["what_if"]["devices"] == [{"rank": 3, "replica": None, "factor": 1.1}]


@pytest.mark.parametrize("module_tp", ["auto", "vit=auto"])
def test_nothing_chooses_a_layout_of_a_module_where_a_step_is_emulated(pipeweaver, module_tp):
    failed = pipeweaver.fails("emulate", "--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--dataset", "vlm-mix",
                              "--module-tp", module_tp)
    assert failed == (2, f"pipeweaver: --module-tp: is '{module_tp}', and 'auto' is chosen by plan and partition; "
                         "allowed is MODULE=TP")


def test_what_would_make_a_step_fit_is_emulated_before_it_is_said(pipeweaver, tmp_path):
    clip = {"frames": 81, "fps": 16, "width": 512, "height": 512, "role": "target"}
    batch = tmp_path / "clips.jsonl"
    lines = [json.dumps({"id": f"c{i}", "text_tokens": 0, "videos": [clip]}) for i in range(8)]
    batch.write_text("\n".join(lines) + "\n")
    step = ["emulate", "--cluster", "h200-sxm:8", "--model", "wan2.1-t2v-14b", "--recompute", "full"]
    step += ["--microbatch-tokens", "10752", "--batch", batch]
    status, line = pipeweaver.fails(*step, "--tp", "1", "--pp", "1", "--dp", "8", "--zero", "0")
    changes = re.findall(r"(--[a-z][^(]*) \(([0-9.]+) GiB on the fullest rank\)", line)
    assert status == 4
    assert changes[0][0] == "--zero 1", line  # what users of ZeRO raise comes before other degrees
    for options, peak in changes:
        layout = {"--tp": "1", "--pp": "1", "--dp": "8", "--zero": "0"}
        words = options.split()
        layout.update(zip(words[::2], words[1::2]))
        fits = json.loads(pipeweaver(*step, *[word for one in layout.items() for word in one], "--json"))
        most = max(rank["memory"]["peak_bytes"] for replica in fits["replicas"] for rank in replica["ranks"])
        assert f"{most / 2**30:.2f}" == peak, options
