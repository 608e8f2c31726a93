"""Several GPUs a rank: copies of a ViT share its images, an LLM is tensor parallel, as in one process."""

import copy
import json

import executor_layouts as models
import pytest
import torch.distributed as dist
from cli_shared import full
from executor_package import Executor, actions_of
from executor_processes import Ranks

TOLERANCE = 1e-6


class Mesh:
    """Replica after replica, rank after rank, GPU after GPU."""

    def __init__(self, ranks, gpus, replicas):
        me = dist.get_rank()
        self.replica, self.rank, self.gpu = me // (ranks * gpus), me // gpus % ranks, me % gpus

        def at(replica, rank, gpu):
            return (replica * ranks + rank) * gpus + gpu

        def made(found):
            return dist.new_group(found, use_local_synchronization=True)

        self.pipeline = made([at(self.replica, p, self.gpu) for p in range(ranks)])
        self.inner = made([at(self.replica, self.rank, g) for g in range(gpus)]) if gpus > 1 else None
        self.peers = made([at(r, self.rank, self.gpu) for r in range(replicas)]) if replicas > 1 else None
        self.known = {}

    def layout(self, tp, phase, sequence_parallel):
        """Its groups are made once."""
        tp = 1 if phase else tp
        if tp not in self.known:
            self.known[tp] = models.Layout(self.inner, tp)
        layout = copy.copy(self.known[tp])
        layout.sequence_parallel = sequence_parallel and tp > 1
        return layout


def run_plan(mesh, layers, assignment, value, alone=None):
    """One step; the worst error of loss and gradients. `alone`: the one replica of the assignment that is run."""
    actions, batch = actions_of(value), models.Batch(assignment)
    vit, = {(stage.tp, stage.phase) for stage in actions.stages.values() if stage.chain == "vit"}
    layouts = {"vit": mesh.layout(*vit, actions.sequence_parallel),
               "llm": mesh.layout(actions.gpus, False, actions.sequence_parallel)}
    mine = models.chunks(actions.on_rank(mesh.rank), layers, layouts)
    result = Executor(actions, mine, models.split, models.loss, group=mesh.pipeline, replicas=mesh.peers,
                      inner=mesh.inner, dtype=models.DTYPE, timeout=300).step(batch)
    others = models.chunks(actions.stages, layers, {module: models.Layout() for module in layouts})
    by_image = any(stage.copies > 1 for stage in actions.stages.values())
    expected = models.reference(batch, actions.stages, others, by_image, alone)
    return max(abs(result.loss - expected), models.gradient_error(mine, others, layouts, actions.stages))


def run_plans(me, ranks, gpus, replicas, layers, plans):
    mesh = Mesh(ranks, gpus, replicas)
    return [run_plan(mesh, layers, assignment, values[mesh.replica]) for assignment, values in plans]


def run_alone(me, ranks, gpus, layers, plans):
    """Each list by itself, as if there were no other replicas."""
    mesh = Mesh(ranks, gpus, 1)
    return [run_plan(mesh, layers, assignment, {**value, "replicas": 1}, value["replica"])
            for assignment, values in plans for value in values]


LAYERS = {"vit": 2, "llm": 2}
RANKS = 2


def planned(pipeweaver, folder, gpus, replicas, layout, seed, samples):
    """assignment.json and the lists of each replica; the ViT with `layout`: TP, sharing, or in phases (None)."""
    folder.mkdir()
    (folder / "model.json").write_text(json.dumps(models.model_file(LAYERS)))
    (folder / "batch.jsonl").write_text(models.batch_lines(seed, samples * replicas))
    job = ["--model", folder / "model.json", "--cluster", f"h100-sxm:{RANKS * gpus * replicas}", "--tp", gpus,
           "--pp", RANKS, "--batch", folder / "batch.jsonl"]
    asked = ["--partition", "three-phase"]
    if layout is not None:
        tp, sharing = layout
        asked = ["--partition", "dip", "--module-tp", f"vit={tp}" + (f":{sharing}" if tp < gpus else "")]
    pipeweaver("plan", *job, "--dp", replicas, *asked, "--max-rounds", 2, "--seed", seed, "--replicas",
               f"0-{replicas - 1}", "--out", folder / "out")
    lists = [json.loads((folder / f"out/replica-{r:03}/actions.json").read_text()) for r in range(replicas)]
    assert all(stage.get("phase", False) == (layout is None) for stage in lists[0]["stages"] if stage["chain"] == "vit")
    return json.loads((folder / "out/assignment.json").read_text()), lists


def require(answers, processes, plans):
    assert sorted(answers) == list(range(processes)), answers
    for rank, found in answers.items():
        assert not isinstance(found, str), found
        assert len(found) == plans
        assert all(one <= TOLERANCE for one in found), (rank, found)


LAYOUTS = [(1, "dealt"), (1, "split"), (1, "hybrid")]


@pytest.mark.parametrize("gpus, replicas, layouts", [
    (2, 1, [*LAYOUTS, (2, None), None]),
    (2, 2, [LAYOUTS[2], None]),
    (4, 1, [(2, "dealt"), (2, "hybrid"), (1, "split")]),
    (1, 2, [None]),
])
def test_losses_and_gradients_are_those_of_one_process(pipeweaver, tmp_path, gpus, replicas, layouts):
    """Layouts of the ViT: TP and sharing, or None: in phases. The LLM has all GPUs of a rank."""
    plans = []
    for number, layout in enumerate(layouts):
        assignment, lists = planned(pipeweaver, tmp_path / str(number), gpus, replicas, layout, 3 + number, 6)
        plans.append((assignment, lists))
        if gpus > 1 and replicas == 1 and number % 2 == 0:
            plans.append((assignment, [{**value, "sequence_parallel": False} for value in lists]))
    processes = RANKS * gpus * replicas
    answers = Ranks(processes, run_plans, RANKS, gpus, replicas, LAYERS, plans).wait(240)
    require(answers, processes, len(plans))


def test_fifty_random_plans_run(pipeweaver, tmp_path):
    """With PIPEWEAVER_FULL; else sixteen."""
    replicas = [13, 13, 12, 12] if full() else [4] * 4
    plans = [planned(pipeweaver, tmp_path / str(number), 2, count, layout, 20 + number, 5)
             for number, (count, layout) in enumerate(zip(replicas, [*LAYOUTS, None]))]
    answers = Ranks(4, run_alone, RANKS, 2, LAYERS, plans).wait(240)
    require(answers, 4, sum(replicas))
