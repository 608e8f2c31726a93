"""What emitters for PyTorch's pipelines write, through PyTorch and torchtitan themselves."""

import dataclasses
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import types
from collections import Counter
from dataclasses import dataclass

import getting_started
import launches
import pytest
import torch
import torch.distributed as dist
import torch_cases
import torch_run
from absent import needed
from cli_shared import full
from example_ranks import printed_by
from executor_package import Executor, PipeweaverError, parse_actions
from executor_package import package as pipeweaver_torch
from executor_processes import Ranks
from served import free_port

MOST_RANKS = 4
ROWS = torch_run.ROWS_PER_MICROBATCH


# ---- random schedules through every emitter

def emit(pipeweaver, folder, target, out):
    """The target's files, or the line that refuses them."""
    done = pipeweaver.run("emit", "--plan", folder, "--target", target, "--out", out)
    assert done.returncode in (0, 4), done.stderr
    return None if done.returncode == 0 else done.stderr.strip()


def groups_by_size():
    """A process group of the first n ranks for each n; every process makes all of them."""
    return {n: dist.new_group(list(range(n))) for n in range(1, MOST_RANKS + 1)}


def run_on_pytorch(folder, group):
    """Two steps, one of each file, on one runtime; the worst error against a sequential run."""
    schedule, rank = torch_run.read_folder(folder), dist.get_rank(group)
    reference = torch_run.make_model(schedule.stages)
    inputs, targets = torch_run.make_batch(schedule, reference)
    expected = torch_run.run_sequentially(reference, inputs, targets)
    model = torch_run.make_model(schedule.stages)
    runtime = torch_run.build_runtime(schedule, rank, model, group)
    worst = 0.0
    for messages in (False, True):
        for stage in model:
            stage.zero_grad()
        pipeweaver_torch.load_schedule(runtime, folder, messages=messages)
        within_bound(runtime, json.loads((folder / "schedule.json").read_text()), rank)
        found = torch_run.run_step(runtime, schedule, rank, inputs, targets)
        worst = max(worst, *torch_run.compared(schedule, rank, model, found, reference, expected).values())
    return worst


def within_bound(runtime, said, rank):
    """No more buffers are in use in the rank's row, from RECV to the end of the backward, than schedule.json says."""
    used, last = Counter(), {}
    for at, action in enumerate(runtime.pipeline_order_with_comms[rank]):
        if str(action.computation_type) in ("B", "W"):
            last[action.stage_index, action.microbatch_index] = at
    for at, action in enumerate(runtime.pipeline_order_with_comms[rank]):
        kind, place = str(action.computation_type), (action.stage_index, action.microbatch_index)
        if kind in ("RECV_F", "RECV_B"):
            key = (place[0], "forward" if kind == "RECV_F" else "backward")
            open_until = used.setdefault(key, [])
            used[key] = [end for end in open_until if end > at] + [last[place]]
            assert len(used[key]) <= said["receive_buffers"][place[0]][key[1]], (key, said["receive_buffers"])


class Layer(torch.nn.Module):
    """A stage of torch_run's model, as the executor calls it."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, value, others=None):
        return self.layer(value)


def run_on_executor(folder, group):
    """A step of the action lists; the worst error against a sequential run, or why the executor refuses them."""
    actions, rank = parse_actions((folder / "actions.json").read_text()), dist.get_rank(group)
    model, reference = (torch_run.make_model(len(actions.stages)) for _ in range(2))
    width = [layer[-1].out_features for layer in model]
    actions = actions.with_shapes({stage: (ROWS, columns) for stage, columns in enumerate(width)})
    own = {stage: Layer(model[stage]) for stage in actions.on_rank(rank)}
    expected = sequential_losses(reference, actions)
    try:
        executor = Executor(actions, own, unit_data(model), torch_run.loss_of, group=group, dtype=torch.float64,
                            timeout=300)
    except PipeweaverError as error:
        return str(error)
    result = executor.step(None)
    worst = max([abs(value - expected[place]) / expected[place] for place, value in result.losses.items()] + [0.0])
    for stage in own:
        for mine, other in zip(model[stage].parameters(), reference[stage].parameters()):
            if mine.grad is not None or other.grad is not None:
                worst = max(worst, torch_run.relative_error(mine.grad, other.grad))
    return worst


def unit_data(model):
    """The made-up input or target of a unit."""
    def data(_, unit):
        torch.manual_seed(100 * unit.microbatch + 10 * unit.item + (unit.purpose == "input"))
        columns = model[0][0].in_features if unit.purpose == "input" else model[-1][-1].out_features
        return torch.randn(ROWS, columns, dtype=torch.float64)
    return data


@dataclass
class Unit:
    microbatch: int
    item: int
    purpose: str


def sequential_losses(model, actions):
    """The losses of all units, by place; gradients stay in the model. Stages without a backward give none."""
    data, losses = unit_data(model), {}
    last = len(model) - 1
    with_backward = {(a.place.stage, a.place.microbatch) for row in actions.lists for a in row
                     if getattr(a, "op", "") in ("B", "I")}
    for place in sorted({a.place for row in actions.lists for a in row if getattr(a, "op", "") == "F"}):
        if place.stage != last:
            continue
        value = data(None, Unit(place.microbatch, place.item, "input"))
        for stage, layer in enumerate(model):
            value = layer(value)
            if (stage, place.microbatch) not in with_backward:
                value = value.detach()
        loss = torch_run.loss_of(value, data(None, Unit(place.microbatch, place.item, "target")))
        loss.backward()
        losses[place] = float(loss.detach())
    return losses


def run_all(rank, work):
    """Everything that was emitted, one after the other in one set of processes; {(seed, target): error or why not}."""
    groups, found = groups_by_size(), {}
    for seed, target, ranks, folder in work:
        if rank < ranks:
            run = run_on_pytorch if target == "torch-csv" else run_on_executor
            found[seed, target] = run(pathlib.Path(folder), groups[ranks])
    return found


def test_random_schedules_run_or_are_refused(pipeweaver, tmp_path):
    """200 schedules with PIPEWEAVER_FULL, else 40; every second one breaks a rule."""
    work, refused = [], Counter()
    cases = [torch_cases.random_case(seed) for seed in range(200 if full() else 40)]
    for case in cases:
        folder = tmp_path / str(case.seed)
        folder.mkdir()
        case.write(folder)
        for target in ("torch-csv", "torch-actions"):
            why = emit(pipeweaver, folder, target, folder / target)
            assert (why is None) == (not case.broken) or target != "torch-csv", (case.seed, case.broken, why)
            if why is None:
                work.append((case.seed, target, case.ranks, str(folder / target)))
            else:
                refused[target, case.broken] += 1
                assert not (folder / target).exists()
    answers = Ranks(MOST_RANKS, run_all, work).wait(240)
    assert sorted(answers) == list(range(MOST_RANKS))
    for rank, found in answers.items():
        assert not isinstance(found, str), found
        for key, error in found.items():
            assert isinstance(error, float) and error <= torch_run.TOLERANCE, (rank, key, error)
    assert sum(not case.broken for case in cases) >= len(cases) // 2
    broken = {case.broken for case in cases} - {""}
    assert {name for target, name in refused if target == "torch-csv"} == broken
    assert broken == {one.name for one in torch_cases.BREAKS} or not full()


# ---- torchtitan's own splitter and schedule

class Whole(torch.nn.Module):
    """A model with the names of torchtitan's; a layer knows its number, as lists of layers do not once they are cut."""

    def __init__(self, layers, encoder, listed):
        super().__init__()
        self.tok_embeddings, self.norm, self.lm_head = (torch.nn.Linear(1, 1) for _ in range(3))
        self.vision_encoder = torch.nn.Linear(1, 1) if encoder else None
        blocks = [torch.nn.Linear(1, 1) for _ in range(layers)]
        for number, block in enumerate(blocks):
            block.number = number
        self.layers = torch.nn.ModuleList(blocks) if listed else torch.nn.ModuleDict(
            {str(number): block for number, block in enumerate(blocks)})

    def held(self):
        """Numbers of layers, and the names of what else is there."""
        blocks = self.layers.values() if isinstance(self.layers, torch.nn.ModuleDict) else self.layers
        names = ("vision_encoder", "tok_embeddings", "norm", "lm_head")
        return [block.number for block in blocks], [name for name in names if getattr(self, name) is not None]


def model_case(seed):
    """A chain whose stages say their layers; (case, layers of each stage, whether an encoder is on the first)."""
    draw = random.Random(seed)
    ranks, encoder = draw.randint(1, 4), draw.random() < 0.5
    placed = [*range(ranks), *reversed(range(ranks))] if draw.random() < 0.3 else [
        s % ranks for s in range(ranks * draw.randint(1, 3))]
    case = torch_cases.chain(seed, draw, ranks, placed, draw.randint(1, 3))
    counts = [draw.randint(0 if encoder and s == 0 and len(placed) > 1 else 1, 4) for s in range(len(placed))]
    first, cut = 0, []
    for stage, count in enumerate(counts):
        parts = [{"module": "llm", "first_layer": first, "layers": count}] if count else []
        if encoder and stage == 0:
            parts.insert(0, {"module": "vit", "first_layer": 0, "layers": draw.randint(1, 30)})
        case.parts.append(parts)
        cut.append(list(range(first, first + count)))
        first += count
    return case, cut, encoder


def parsed(args):
    """Launch flags through torchtitan's own command line, in the sections that they are of."""
    import tyro
    from torchtitan.config import CompileConfig, ParallelismConfig, TrainingConfig
    from torchtitan.config.manager import ConfigManager, custom_registry
    from torchtitan.distributed.activation_checkpoint import ActivationCheckpointingConfig, SelectiveAC
    ConfigManager()
    config = dataclasses.make_dataclass("Job", [
        ("training", TrainingConfig, dataclasses.field(default_factory=TrainingConfig)),
        ("parallelism", ParallelismConfig, dataclasses.field(default_factory=ParallelismConfig)),
        ("compile", CompileConfig, dataclasses.field(default_factory=CompileConfig)),
        ("activation_checkpoint", ActivationCheckpointingConfig,
         dataclasses.field(default_factory=SelectiveAC.Config))])
    return tyro.cli(config, args=args, default=config(), registry=custom_registry)


def built_by_torchtitan(rank, model, job, csv_file):
    """What torchtitan makes of the job on this rank: its chunks by stage, and its schedule."""
    from torch.testing._internal.distributed.fake_pg import FakeStore
    titan = needed("torchtitan.distributed.pipeline_parallel")
    parallelism = dataclasses.replace(job.parallelism, pipeline_parallel_schedule_csv=str(csv_file or ""))
    ranks = parallelism.pipeline_parallel_degree
    dist.init_process_group("fake", rank=rank, world_size=ranks, store=FakeStore())
    try:
        mesh = types.SimpleNamespace(get_local_rank=lambda: rank, size=lambda: ranks,
                                     get_group=lambda _: dist.group.WORLD)
        stages, chunks = titan._pipeline_module_split(model, mesh, parallelism.pipeline_parallel_schedule,
                                                      torch.device("cpu"), parallelism.module_fqns_per_model_part)
        schedule = titan._build_pipeline_schedule(parallelism=parallelism, stages=stages, loss_fn=torch_run.loss_of,
                                                  local_batch_size=job.training.local_batch_size)
        return {stage.stage_index: chunk for stage, chunk in zip(stages, chunks)}, schedule
    finally:
        dist.destroy_process_group()


def test_torchtitan_cuts_models_as_planned_and_loads_the_schedule(pipeweaver, tmp_path):
    """200 models and layouts with PIPEWEAVER_FULL, else 60."""
    needed("torchtitan.distributed.pipeline_parallel")
    for seed in range(200 if full() else 60):
        case, cut, encoder = model_case(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        case.write(folder)
        assert emit(pipeweaver, folder, "torch-csv", folder) is None
        said = json.loads((folder / "schedule.json").read_text())
        job = parsed(said["torchtitan"]["args"])
        assert job.parallelism.module_fqns_per_model_part == said["torchtitan"]["module_fqns_per_model_part"]
        model = Whole(sum(map(len, cut)), encoder, seed % 2)
        for rank in range(case.ranks):
            chunks, schedule = built_by_torchtitan(rank, model, job, folder / "schedule.csv")
            assert sorted(chunks) == [s for s, r in enumerate(case.stage_to_rank) if r == rank], seed
            for stage, chunk in chunks.items():
                ends = (["vision_encoder"] if encoder else []) + ["tok_embeddings"] if stage == 0 else []
                assert chunk.held() == (cut[stage], ends + (["norm", "lm_head"] if stage == case.stages - 1 else []))
            assert schedule.stage_index_to_group_rank == dict(enumerate(case.stage_to_rank))
            assert schedule._n_microbatches == case.microbatches


def flags_written(pipeweaver, root, cases):
    """Per launch the words of torchtitan.sh's array, or the line that refuses it."""
    for number, launch in enumerate(cases):
        (root / str(number)).mkdir()
        (root / str(number) / "launch.json").write_text(json.dumps(launch))
    script = f"""for i in $(seq 0 {len(cases) - 1}); do
      PIPEWEAVER_FLAGS=()
      "$1" emit --plan $i --target torchtitan --out out/$i > /dev/null 2> $i/why && source out/$i/torchtitan.sh
      printf "%s\\t" "${{PIPEWEAVER_FLAGS[@]}}"; printf "\\n"
    done"""
    done = subprocess.run(["bash", "-c", script, "-", pipeweaver.path.resolve()], cwd=root, capture_output=True,
                          text=True, check=True)
    whys = [(root / str(number) / "why").read_text().strip() for number in range(len(cases))]
    return [([word for word in line.split("\t") if word], why) for line, why in zip(done.stdout.splitlines(), whys)]


SCHEDULES = {"1f1b": "Schedule1F1B", "interleaved": "ScheduleInterleaved1F1B"}


def test_launch_flags_are_torchtitans_and_say_what_is_launched(pipeweaver, tmp_path):
    """200 launches with PIPEWEAVER_FULL, else 60; about half of them are of what torchtitan has no words for."""
    needed("torchtitan.distributed.pipeline_parallel")
    cases = [launches.launch(seed) for seed in range(200 if full() else 60)]
    for launch in cases:
        launch["layout"]["zero"] *= 2  # torchtitan has no ZeRO 1
        launch["recompute"] = launch["recompute"].replace("core-attention", "second-products")
    said = Counter()
    for launch, (flags, why) in zip(cases, flags_written(pipeweaver, tmp_path, cases)):
        layers = {m["role"]: m["layers"] for m in launch["modules"]}
        rule = refusal_of(launch, 0 in layers["language"][1:-1])
        said[rule is None] += 1
        if rule:
            assert flags == [] and rule in why
            continue
        job = parsed(flags)
        checkpoint = job.activation_checkpoint
        word = "none" if checkpoint is None else type(checkpoint).__qualname__.partition("AC")[0].lower()
        assert launch["recompute"] == ("second-products" if word == "selective" else word)
        check_degrees(job.parallelism, launch)
        model = Whole(sum(layers["language"]), "encoder" in layers, False)
        first = [sum(layers["language"][:s]) for s in range(len(layers["language"]))]
        for rank in range(launch["layout"]["pp"]):
            chunks, schedule = built_by_torchtitan(rank, model, job, None)
            assert type(schedule).__name__ == SCHEDULES[launch["policy"]]
            assert schedule._n_microbatches == launch["microbatches"][0]
            for stage, chunk in chunks.items():
                assert stage % launch["layout"]["pp"] == rank
                assert chunk.held()[0] == [first[stage] + k for k in range(layers["language"][stage])]
    assert min(said[True], said[False]) >= len(cases) // 5


def refusal_of(launch, has_empty_stage):
    """A part of the line that refuses the launch, or None."""
    layout = launch["layout"]
    if not all(module["trains"] for module in launch["modules"]):
        return "is frozen, for which it has no setting"
    if launch["recompute"] not in ("none", "second-products", "full"):
        return f"alike, not {launch['recompute']}"
    if layout["zero"] == 0 and layout["dp"] == 1:
        return "ZeRO 0 is of replicas that share nothing out, and there is one"
    if layout["zero"] == 0 and layout["cp"] > 1:
        return "states are shared out over the 2 GPUs that share samples"
    return "torchtitan builds no empty stage" if has_empty_stage else None


def check_degrees(parallelism, launch):
    layout = launch["layout"]
    shards = layout["zero"] > 0
    assert (parallelism.tensor_parallel_degree, parallelism.context_parallel_degree,
            parallelism.pipeline_parallel_degree) == (layout["tp"], layout["cp"], layout["pp"])
    assert (parallelism.data_parallel_shard_degree, parallelism.data_parallel_replicate_degree) == (
        (layout["dp"], 1) if shards else (1, layout["dp"]))


@pytest.mark.parametrize("change, why", [
    ({"policy": "gpipe", "chunks": 1}, None),
    ({"policy": "interleaved", "microbatches": [5, 5]}, "5 microbatches are no multiple of 2 pipeline ranks"),
    ({"recompute": "by-rank", "recompute_of_ranks": ["none", "full"]}, "alike, not by-rank"),
    ({"encoder": [3, 2, 0, 0]}, "stage 1 has layers 3 to 4 of 'vit': torchtitan keeps an encoder whole"),
    ({"generator": [0, 0, 0, 2]}, "'dit' comes behind the decoder, where its pipelines end"),
])
def test_launches_that_torchtitan_has_no_words_for_are_refused(pipeweaver, tmp_path, change, why):
    launch = launches.launch(0)
    chunks = change.get("chunks", 2)
    launch.update(policy="interleaved", chunks=chunks, recompute="none", microbatches=[4, 4], peak_bytes=[1, 2],
                  language_letters=" ".join(["*-"] * 2 * chunks))
    launch["layout"].update(pp=2, dp=2, zero=2)
    modules = {"encoder": "vit", "language": "llm", "generator": "dit"}
    layers = {"language": [1] * (2 * chunks)}
    layers.update({role: change[role] for role in ("encoder", "generator") if role in change})
    launch["modules"] = [{"module": name, "role": role, "trains": True, "layers": layers[role]}
                         for role, name in modules.items() if role in layers]
    launch["language_letters"] = " ".join(["*-"] * sum(layers["language"]))
    launch.update({key: value for key, value in change.items() if key not in modules})
    (tmp_path / "launch.json").write_text(json.dumps(launch))
    refused = emit(pipeweaver, tmp_path, "torchtitan", tmp_path / "out")
    assert refused is None if why is None else (refused.startswith("pipeweaver: torchtitan: ") and why in refused)


# ---- the pages

@pytest.fixture(scope="module")
def pytorch_page(pipeweaver, tmp_path_factory):
    """Its folder after its commands, what they printed, its text and its script."""
    folder = tmp_path_factory.mktemp("pytorch")
    page = getting_started.page_of("docs/pytorch-pipelining.md")
    (folder / "examples").symlink_to(getting_started.ROOT / "examples")
    printed = getting_started.follow(pipeweaver, folder, page)
    script, = getting_started.blocks("python", page)
    return types.SimpleNamespace(folder=folder, printed=printed, page=page, script=script)


def torchrun(folder, name, script, processes):
    (folder / name).write_text(script)
    return subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes),
                           "--master-port", str(free_port()), name], cwd=folder,
                          env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)


def two_steps(printed):
    return re.findall(r"(step-\d)/torch: 4 microbatches, mean loss ", printed)


def test_the_page_on_pytorch_runs_two_steps_with_an_order_each(pytorch_page):
    done = torchrun(pytorch_page.folder, "train.py", pytorch_page.script, 2)
    assert done.returncode == 0, done.stderr
    assert two_steps(done.stdout) == ["step-1", "step-2"]
    rows = next(block for block in getting_started.blocks("", pytorch_page.page) if block.startswith("now "))
    assert [row for row in rows.splitlines() if row != "…" and row not in pytorch_page.printed[0].splitlines()] == []
    few = torchrun(pytorch_page.folder, "train.py", pytorch_page.script, 1)
    assert few.returncode != 0 and "2 pipeline ranks: start as many processes" in few.stderr


def test_the_page_on_pytorch_has_tensor_parallel_stages_with_checkpoints(pytorch_page, tmp_path):
    """Its lines for GPUs, on the CPU: two pipeline ranks of two processes."""
    begin, again = getting_started.blocks("py", pytorch_page.page)
    where = "torch.distributed.algorithms._checkpoint.checkpoint_wrapper"
    inside = "".join(f"    {line}\n" for line in again.splitlines())
    for page, here in (('"nccl"', '"gloo"'), ("tp, replicas = 8, 1", "tp, replicas = 2, 1"),
                       ('torch.device("cuda", int(os.environ["LOCAL_RANK"]))', 'torch.device("cpu")'),
                       ("torch.cuda.set_device(device)\n", ""), ("    fully_shard(", f"{inside}    fully_shard("),
                       ("import torch\n", f"import torch\nfrom {where} import CheckpointImpl, checkpoint_wrapper\n")):
        assert begin.count(page) == 1, page
        begin = begin.replace(page, here)
    file = pytorch_page.folder / "step-1/torch/padding.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "recompute": "by-rank",
                                "recompute_of_ranks": ["half", "blocks:2"]}))
    script = begin + pytorch_page.script[pytorch_page.script.index("schedule = _Pipe"):]
    (pytorch_page.folder / "gpus.py").write_text(script)
    said = printed_by(4, pytorch_page.folder, "gpus.py", [], tmp_path)
    assert sorted(two_steps(said)) == ["step-1", "step-1", "step-2", "step-2"]


def test_the_flags_of_the_page_on_torchtitan_are_parsed_by_torchtitan(pipeweaver, tmp_path):
    needed("torchtitan.distributed.pipeline_parallel")
    getting_started.follow(pipeweaver, tmp_path, getting_started.page_of("docs/torchtitan.md"))
    script = (tmp_path / "flags/torchtitan.sh").read_text()
    assert (tmp_path / "launch/torchtitan/torchtitan.sh").read_text() == script
    launched = json.loads((tmp_path / "launch/launch.json").read_text())
    words = subprocess.run(["bash", "-c", f'{script}\nprintf "%s\\n" "${{PIPEWEAVER_FLAGS[@]}}"'], capture_output=True,
                           text=True, check=True).stdout.split()
    check_degrees(parsed(words).parallelism, launched)
    job = parsed((tmp_path / "torchtitan.args").read_text().split())
    said = json.loads((tmp_path / "plan/torch/schedule.json").read_text())
    names = job.parallelism.module_fqns_per_model_part
    assert names[0][:2] == ["vision_encoder", "tok_embeddings"] and names[-1][-2:] == ["norm", "lm_head"]
    assert [name for stage in names for name in stage if name.startswith("layers.")] == [
        f"layers.{n}" for n in range(28)]
    assert job.training.local_batch_size == said["n_microbatches"] == 4
    assert job.parallelism.pipeline_parallel_degree == 2
    padding = json.loads((tmp_path / "plan/torch/padding.json").read_text())
    assert (padding["replicas"], padding["n_microbatches"]) == (4, 4)
    for rank in range(2):
        _, schedule = built_by_torchtitan(rank, Whole(28, True, False), job, tmp_path / "plan/torch/schedule.csv")
        assert schedule._n_microbatches == 4


# ---- what load_schedule refuses

def good(tmp_path):
    """A folder of two ranks, and a runtime of its first rank that has not run."""
    folder = torch_run.write_folder(tmp_path, torch_run.ONE_F_ONE_B_2, [0, 1], 4)
    stage = types.SimpleNamespace(stage_index=0)
    return folder, types.SimpleNamespace(pp_group_size=2, _num_stages=2, _n_microbatches=4, rank=0, _stages=[stage])


@pytest.mark.parametrize("change, why", [
    ({"pp_group_size": 4},
     "pp_size is 2, the job has 4 ranks in the pipeline's group; the number is fixed for the job"),
    ({"_num_stages": 4}, "num_stages is 2, the job has 4 stages; the number is fixed for the job"),
    ({"_n_microbatches": 6}, "n_microbatches is 4, the job has 6 microbatches; the number is fixed for the job"),
    ({"rank": 1}, r"rank 1 has the stages \[1\], this process built \[0\]"),
])
def test_a_schedule_for_another_job_is_refused(tmp_path, change, why):
    folder, runtime = good(tmp_path)
    runtime.__dict__.update(change)
    with pytest.raises(PipeweaverError, match=why):
        pipeweaver_torch.load_schedule(runtime, folder)


@pytest.mark.parametrize("rows, messages, why", [
    (["0F0", "1F0", "1B0"], False, "has 3 rows, the plan is for 2 ranks"),
    (["0F0x 0B0", "1F0 1B0"], False, "rank 0: '0F0x' is no action of PyTorch's pipelines"),
    (["0F0 0B0", "0F0 1B0"], False, "rank 1: 0F0: the stage is not on this rank"),
    (["0F1 0B0", "1F0 1B0"], False, "rank 0: 0F1: the job has 1 microbatches"),
    (["0F0 0SEND_F0 0B0", "1F0 1B0"], False, "rank 0: 0SEND_F0: a file without messages has F, B, I and W alone"),
    (["0F0 0F0 0B0", "1F0 1B0"], False, "rank 0: 0F0 is there 2 times"),
    (["0F0 0I0", "1F0 1B0"], False, "rank 0: needed is 0B0 or both of 0I0 and 0W0"),
    (["0F0 0B0", "1B0 1F0"], False, "rank 1: 1B0 comes before its F"),
    (["0B0 0F0", "1F0 1B0"], False, "rank 0: 0B0 comes before its F"),
    (["0UNSHARD 0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_GRAD 0RESHARD",
      "1UNSHARD 1RECV_F0 1F0 1B0 1REDUCE_GRAD 1RESHARD"], True, "rank 1: needed is 1SEND_B0"),
    (["0UNSHARD 0F0 0RECV_B0 0SEND_F0 0B0 0REDUCE_GRAD 0RESHARD",
      "1UNSHARD 1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE_GRAD 1RESHARD"],
     True, "ranks wait for each other: rank 0 for 0RECV_B0, rank 1 for 1RECV_F0"),
    (["0UNSHARD 0SEND_F0 0F0 0RECV_B0 0B0 0REDUCE_GRAD 0RESHARD",
      "1UNSHARD 1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE_GRAD 1RESHARD"],
     True, "rank 0: 0SEND_F0 comes before what it sends is made"),
    (["0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_GRAD", "1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE_GRAD"],
     True, "rank 0: 0F0 comes before the stage's UNSHARD"),
    (["0UNSHARD 0F0 0SEND_F0 0RECV_B0 0REDUCE_GRAD 0B0 0RESHARD",
      "1UNSHARD 1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE_GRAD 1RESHARD"],
     True, "rank 0: 0B0 comes behind the stage's REDUCE_GRAD"),
    (["0UNSHARD 0F0 0SEND_F0 0RECV_B0 0B0 0REDUCE_GRAD",
      "1UNSHARD 1RECV_F0 1F0 1B0 1SEND_B0 1REDUCE_GRAD 1RESHARD"], True, "rank 0: 0RESHARD is missing at the end"),
])
def test_rows_that_pytorch_would_run_wrongly_or_not_to_the_end_are_refused(tmp_path, rows, messages, why):
    folder, runtime = good(tmp_path)
    said = json.loads((folder / "schedule.json").read_text())
    said["n_microbatches"] = runtime._n_microbatches = 1
    (folder / "schedule.json").write_text(json.dumps(said))
    name = "schedule.comms.csv" if messages else "schedule.csv"
    (folder / name).write_text("".join(",".join(row.split()) + "\n" for row in rows))
    with pytest.raises(PipeweaverError) as error:
        pipeweaver_torch.load_schedule(runtime, folder, messages=messages)
    assert str(error.value) == f"{folder / name}: {why}"


def test_last_forwards_in_another_order_are_refused(tmp_path):
    folder, runtime = good(tmp_path)
    text = (folder / "schedule.csv").read_text()
    (folder / "schedule.csv").write_text(text.replace("1F0,1B0,1F1,1B1", "1F1,1B1,1F0,1B0"))
    with pytest.raises(PipeweaverError, match="rank 1: 1F1: the last stage's forwards must run in the order of"):
        pipeweaver_torch.load_schedule(runtime, folder)


def test_files_that_are_not_there_or_not_ours_are_refused(tmp_path):
    folder, runtime = good(tmp_path)
    with pytest.raises(PipeweaverError, match="schedule.comms.csv: cannot be read: No such file"):
        pipeweaver_torch.load_schedule(runtime, folder, messages=True)
    (folder / "schedule.csv").write_bytes(b"0F0,\xff\n")
    with pytest.raises(PipeweaverError, match="schedule.csv: is no CSV"):
        pipeweaver_torch.load_schedule(runtime, folder)
    (folder / "schedule.json").write_text("{}")
    with pytest.raises(PipeweaverError, match="schedule.json: is not of the format pipeweaver-torch/1"):
        pipeweaver_torch.load_schedule(runtime, folder)
    (folder / "schedule.json").write_text("{")
    with pytest.raises(PipeweaverError, match="schedule.json: is no JSON"):
        pipeweaver_torch.load_schedule(runtime, folder)


@pytest.mark.parametrize("change, why", [
    ({"stage_to_rank": None}, "stage_to_rank: is null, needed are the ranks of 2 stages"),
    ({"stage_to_rank": [0, "1"]}, r'stage_to_rank: is \[0, "1"\]'),
    ({"stage_to_rank": [0]}, r"stage_to_rank: is \[0\]"),
    ({"n_microbatches": True}, "n_microbatches: is true, a whole number from 1 is needed"),
    ({"pp_size": None}, "pp_size: is null"),
])
def test_a_damaged_description_is_refused_with_the_key(tmp_path, change, why):
    folder, runtime = good(tmp_path)
    said = json.loads((folder / "schedule.json").read_text())
    (folder / "schedule.json").write_text(json.dumps({**said, **change}))
    with pytest.raises(PipeweaverError, match=f"schedule.json: {why}"):
        pipeweaver_torch.load_schedule(runtime, folder)
    (folder / "schedule.json").write_text('{"format": "pipeweaver-torch/1"}')
    with pytest.raises(PipeweaverError, match="schedule.json: pp_size: is null, a whole number from 1 is needed"):
        pipeweaver_torch.load_schedule(runtime, folder)
