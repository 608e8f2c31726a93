"""Good inputs of every kind that the command line reads, each with a command that reads it and takes little time."""

import dataclasses
import gzip
import hashlib
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
HF = ROOT / "tests/data/hf"
# Of what the small model, its batch and two ranks are read with; @GOOD is the folder of good inputs.
SMALL = ["--model", str(EXAMPLES / "small-vlm.json"), "--cluster", "h100-sxm:2", "--tp", "1", "--pp", "2"]
BATCH = ["--batch", "@GOOD/batch.jsonl"]
QUICK = ["--partition", "megatron", "--max-rounds", "1", "--threads", "1", "--quiet"]  # of a plan


@dataclasses.dataclass(frozen=True)
class Case:
    """A command that reads one input. In `command` @IN is its path, @OUT a path below an empty folder, @FOLDER the copy
    of `folder` that the input stands in."""
    name: str
    kind: str  # of the bytes, as mutations.WAYS has it
    path: pathlib.Path  # of the good input, or of a file below `folder`
    command: list
    folder: pathlib.Path | None = None
    writes_at: tuple = ()  # exit statuses other than 0 with which outputs are there by design
    rehash: bool = False  # plan.json of the folder has the hash of the file as it is now
    share: int = 1  # of the draws


def problem():
    """Two ranks, two microbatches, modes of memory on one pair."""
    tasks, edges = [], []
    for microbatch in range(2):
        first = len(tasks)
        for place, (rank, kind) in enumerate([(0, "F"), (1, "F"), (1, "B"), (0, "B")]):
            tasks.append({"id": first + place, "rank": rank, "kind": kind, "duration_ns": 1000 + place,
                          "acquire_bytes": 50 * (kind == "F"), "release_bytes": 50 * (kind == "B"),
                          "label": f"{kind}{rank}", "stage": rank, "microbatch": microbatch})
        edges += [[first, first + 1, 5], [first + 1, first + 2, 0], [first + 2, first + 3, 5], [first, first + 3, 0]]
    modes = [{"forward_ns": 1000, "backward_ns": 1003 + 500 * low, "held_bytes": 50 - 40 * low,
              "forward_transient_bytes": 0, "transient_bytes": 40 * low, "kept_bytes": 0} for low in range(2)]
    return {"format": "pipeweaver-problem/1", "name": "small", "source": "by hand",
            "ranks": [{"capacity_bytes": 200, "base_bytes": 10}] * 2, "tasks": tasks, "edges": edges,
            "pairs": [{"forward": 0, "backward": 3, "modes": modes}]}


RECIPE = {"format": "pipeweaver-recipe/1", "name": "mine", "data_parallel": {"zero": 1, "bucket_bytes": 40_000_000},
          "host": {"action_ns": 1000}, "precision": {"llm": "fp8"}}
CLUSTER = {"format": "pipeweaver-cluster/1", "name": "mine", "device": "h100_sxm", "gpus_per_node": 8, "gpus": 2,
           "node_link_bytes_per_s": 450_000_000_000, "network_bytes_per_s": 400_000_000_000}
STUDY = {"format": "pipeweaver-study/1", "name": "one", "tokens": "1B", "plan": {"dataset": "vlm-mix"},
         "axes": {"model": "dip-vlm-s", "cluster": ["h100-sxm"], "gpus": "16", "global-batch": 16},
         "layouts": {"tp": [4], "pp": [4], "cp": 1}, "prices": {"h100-sxm": 2.5}, "constraints": {"days": 3000},
         "planned": 0}
TOML = """[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 1
seq_len = 4096
[parallelism]
pipeline_parallel_degree = 2
tensor_parallel_degree = 4
pipeline_parallel_schedule = "1F1B"
[activation_checkpoint]
mode = "selective"
"""
NCCL = """# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1
#  Rank  0 Group  0 Pid  1 on  host device  0 [0x00] NVIDIA H100
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        524288  bfloat16     sum      -1    35.10   29.87   52.28      0    34.90   30.05   52.58      0
     8388608       4194304  bfloat16     sum      -1    72.00  116.51  203.89      0    71.80  116.83  204.46      0
"""


def make(program, good):
    """Writes good inputs into the folder `good`, many of them by the program itself."""
    def run(*arguments):
        done = subprocess.run([program, *map(str, arguments)], cwd=good, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done.stdout

    good.mkdir(parents=True)
    lines = (EXAMPLES / "small-batch.jsonl").read_text().splitlines()[:4]
    (good / "batch.jsonl").write_text("\n".join(lines) + "\n")
    (good / "batch.jsonl.gz").write_bytes(gzip.compress((good / "batch.jsonl").read_bytes()))
    for name, document in (("problem", problem()), ("recipe", RECIPE), ("cluster", CLUSTER), ("study", STUDY)):
        (good / f"{name}.json").write_text(json.dumps(document))
    (good / "network.json").write_text(run("show", "ring-k3"))
    (good / "train.toml").write_text(TOML)
    (good / "nccl.txt").write_text(NCCL)
    plan = ["plan", *SMALL, "--batch", "batch.jsonl", *QUICK]
    run(*plan, "--out", "plan")
    run(*plan, "--target", "megatron", "--out", "megatron")
    run("emit", "--plan", "megatron", "--target", "megatron", "--out", "flags")
    run("solve", "problem.json", "--max-rounds", 1, "--threads", 1, "--out", "solution.json")
    run("costdb", "import", EXAMPLES / "measured-gemm.csv", "--device", "h100_sxm", "--out", "own.sqlite")
    run("costdb", "import", EXAMPLES / "measured-gemm.csv", "--device", "h100_sxm", "--out", "own.sqlite.gz")
    run("costdb", "export", "--device", "h100_sxm", "--op", "collective", "--out", "collective.csv")
    head = (good / "collective.csv").read_text().splitlines()[:12]
    (good / "collective.csv").write_text("\n".join(head) + "\n")
    run("capacity", "study.json", "--out", "studied", "--threads", 1, "--quiet")
    runs = (EXAMPLES / "runs.csv").read_text().splitlines()
    (good / "runs.csv").write_text("\n".join([runs[0], runs[1]]) + "\n")
    options = {"cluster": "h100-sxm:2", "tp": 1, "pp": 2, "policy": "1f1b", "seed": 1, "headroom": "3%"}
    (good / "options.json").write_text(json.dumps({"model": str(EXAMPLES / "small-vlm.json"), **options}))
    (good / "options.yaml").write_text("".join(f"{key}: {value}\n" for key, value in options.items()) +
                                       f"model: {EXAMPLES}/small-vlm.json\n")


def rehash(folder, path):
    """Gives plan.json the hash of the file as it is now, where it has one of it."""
    named = str(path.relative_to(folder))
    document = json.loads((folder / "plan.json").read_bytes())
    if named in document.get("files", {}):
        document["files"][named] = hashlib.sha256(path.read_bytes()).hexdigest()
        (folder / "plan.json").write_text(json.dumps(document))


def of_models(good):
    small = EXAMPLES / "small-vlm.json"
    rest = [*SMALL[2:], *BATCH]
    yield Case("model, support", "json", small,
               ["support", "--model", "@IN", "--cluster", "h100-sxm:8", "--threads", "1"])
    yield Case("model, layers", "json", small, ["layers", "--model", "@IN", *rest], share=2)
    yield Case("model, emulate", "json", small, ["emulate", "--model", "@IN", *rest, "--out", "@OUT", "--threads", "1"])
    yield Case("model, plan", "json", small, ["plan", "--model", "@IN", *rest, *QUICK, "--out", "@OUT"])
    yield Case("model, analyze", "json", EXAMPLES / "qwen2.5-vl-7b.json", ["analyze", "@IN"])
    for config in sorted(HF.glob("*.json")):
        yield Case(f"hf {config.stem}", "json", config, ["show", "hf:@IN"], share=0)
    for name in ("batch.jsonl", "batch.jsonl.gz"):
        yield Case(name, "lines", good / name,
                   ["emulate", *SMALL, "--batch", "@IN", "--out", "@OUT", "--threads", "1"], share=2)
    yield Case("batch, plan", "lines", good / "batch.jsonl",
               ["plan", *SMALL, "--batch", "@IN", *QUICK, "--out", "@OUT"])
    yield Case("batch, deferred", "lines", good / "batch.jsonl",
               ["emulate", *SMALL, *BATCH, "--packing", "padded", "--defer", "1", "--deferred", "@IN", "--out", "@OUT"])


def of_machines(good):
    emulate = ["emulate", *SMALL, *BATCH, "--threads", "1", "--out", "@OUT"]
    without = ["emulate", "--model", SMALL[1], "--tp", "1", "--pp", "2", *BATCH, "--threads", "1", "--out", "@OUT"]
    yield Case("cluster", "json", good / "cluster.json", [*without, "--cluster", "@IN"], share=2)
    yield Case("network", "json", good / "network.json",
               ["faults", "--gpus", "96", "--network", "@IN", "--trials", "20"], share=2)
    yield Case("recipe", "json", good / "recipe.json", [*emulate, "--recipe", "@IN"], share=2)
    yield Case("what-if", "words", EXAMPLES / "what-if.yaml", [*emulate, "--what-if", "@IN"], share=2)
    yield Case("options", "json", good / "options.json", ["emulate", "--config", "@IN", *BATCH, "--out", "@OUT"])
    yield Case("options in YAML", "words", good / "options.yaml",
               ["emulate", "--config", "@IN", *BATCH, "--out", "@OUT"])
    yield Case("partition", "json", good / "plan/partition.json", [*emulate, "--partition", "@IN"], share=2)
    yield Case("assignment", "json", good / "plan/assignment.json", [*emulate, "--assigned", "@IN"], share=2)


def of_schedules(good):
    solve = ["--max-rounds", "1", "--threads", "1", "--out", "@OUT"]
    small = good / "problem.json"
    zipped = good / "plan/replica-000/problem.json.gz"
    yield Case("problem", "json", small, ["solve", "@IN", *solve], share=3)
    yield Case("problem of a plan", "json", zipped, ["solve", "@IN", *solve])
    yield Case("problem, log and page", "json", small,
               ["solve", "@IN", *solve, "--log", "@OUT.log", "--report", "@OUT.html"])
    yield Case("problem, policy", "json", small, ["solve", "@IN", *solve[2:], "--policy", "dual-queue"])
    yield Case("solution", "json", good / "solution.json", ["replay", "@GOOD/problem.json", "@IN"], share=2)
    yield Case("solution, warm", "json", good / "solution.json",
               ["solve", "@GOOD/problem.json", "--warm", "@IN", *solve])
    yield Case("stages", "table", EXAMPLES / "stages.csv",
               ["solve", "--stages", "@IN", "--microbatches", "4", *solve], share=3)
    for name in ("timings-0.json.gz", "timings-1.json.gz"):
        yield Case(name, "json", EXAMPLES / "measured" / name,
                   ["replay", str(EXAMPLES / "measured"), "--measured", "@IN", *(
                       str(EXAMPLES / "measured" / other) for other in ("timings-0.json.gz", "timings-1.json.gz")
                       if other != name)])


FILES = ("plan.json", "partition.json", "assignment.json", "launch.json", "replica-000/problem.json.gz",
         "replica-000/solution.json", "replica-000/actions.json", "torch/problem.json.gz", "torch/solution.json")


def of_folders(good):
    emulate = ["emulate", *SMALL, *BATCH, "--threads", "1", "--out", "@OUT", "--schedule", "@FOLDER"]
    ways = {"replay": ["replay", "@FOLDER"], "emulate": emulate}
    for target in ("torch-actions", "torch-csv", "chrome-trace"):
        ways[target] = ["emit", "--plan", "@FOLDER", "--target", target, "--out", "@OUT"]
    for file in FILES:
        for way, command in ways.items():
            yield Case(f"{file}, {way}", "json", pathlib.Path(file), command, good / "plan", rehash=True, share=0)
    for file in ("plan.json", "launch.json"):
        for target in ("megatron", "torchtitan"):
            yield Case(f"{file}, {target}", "json", pathlib.Path(file),
                       ["emit", "--plan", "@FOLDER", "--target", target, "--out", "@OUT"], good / "megatron",
                       rehash=True, share=0)
    yield Case("hashes of a plan", "json", pathlib.Path("replica-000/solution.json"), ["replay", "@FOLDER"],
               good / "plan")


def of_costs(good):
    gemm, device = EXAMPLES / "measured-gemm.csv", ["--device", "h100_sxm"]
    yield Case("gemm.csv, import", "table", gemm, ["costdb", "import", "@IN", *device, "--out", "@OUT"], share=2)
    yield Case("collective.csv, import", "table", good / "collective.csv",
               ["costdb", "import", "@IN", *device, "--out", "@OUT"])
    yield Case("nccl-tests", "words", good / "nccl.txt", ["costdb", "import", "@IN", *device, "--out", "@OUT"])
    yield Case("trace", "json", EXAMPLES / "trace.json",
               ["costdb", "import", "--trace", "@IN", *device, "--out", "@OUT", "--json", "@OUT.json",
                "--kernels", "@OUT.csv"], share=2)
    yield Case("recorded step", "json", EXAMPLES / "traces/rank-1.json",
               ["replay", "--trace", str(EXAMPLES / "traces/rank-0.json"), "@IN", "--what-if", "nccl=0.5", "--json"])
    for name in ("own.sqlite", "own.sqlite.gz"):
        yield Case(f"{name}, stats", "bytes", good / name, ["costdb", "stats", "--database", "@IN"])
        yield Case(f"{name}, layers", "bytes", good / name, ["layers", *SMALL, *BATCH, "--costs", "@IN"])
    yield Case("database, into", "bytes", good / "own.sqlite",
               ["costdb", "export", *device, "--op", "gemm", "--database", "@IN", "--out", "@OUT"])
    for op in ("gemm", "attention"):
        yield Case(f"{op}.csv, query", "table", EXAMPLES / f"{op}.csv",
                   ["costdb", "query", *device, "--op", op, "--input", "@IN", "--output", "@OUT"])
    yield Case("steps, calibrate", "table", EXAMPLES / "measured-steps.csv",
               ["costdb", "calibrate", *device, "--steps", "@IN", "--out", "@OUT"])
    yield Case("needs, calibrate", "table", EXAMPLES / "gemm.csv",
               ["costdb", "calibrate", *device, "--donor", "a100_sxm", "--needs", "@IN", "--points", "2",
                "--out-shapes", "@OUT"])
    yield Case("measured run, import", "json", EXAMPLES / "measured/timings-0.json.gz",
               ["costdb", "import", "--measured", str(EXAMPLES / "measured"), "@IN",
                str(EXAMPLES / "measured/timings-1.json.gz"), "--out", "@OUT"])


def of_studies(good):
    yield Case("runs", "table", good / "runs.csv", ["validate", "@IN", "--out", "@OUT", "--threads", "1", "--quiet"],
               writes_at=(2,), share=2)
    check = ["check", "--cluster", "h100-sxm:64", "--rules-only"]
    yield Case("launch script", "words", EXAMPLES / "launch.sh", [*check, "@IN"], share=3)
    yield Case("flags of a rung", "words", good / "flags/megatron.sh", [*check, "@IN"])
    yield Case("torchtitan's TOML", "words", good / "train.toml", [*check, "--model", "llama3-8b", "@IN"], share=3)
    yield Case("jobs", "words", EXAMPLES / "three-trainings.yaml", ["share", "@IN", "--out", "@OUT"], share=2)
    yield Case("trace of jobs", "words", EXAMPLES / "trainings-trace.yaml", ["share", "@IN"])
    yield Case("study", "json", good / "study.json", ["capacity", "@IN", "--emit-slurm", "@OUT"], share=2)
    yield Case("study in YAML", "words", EXAMPLES / "study.yaml", ["capacity", "@IN", "--emit-slurm", "@OUT"])
    cell = next((good / "studied/cells").iterdir()).relative_to(good / "studied")
    for file in (cell, pathlib.Path("study.json")):
        yield Case(f"merge of {file.name}", "json", file, ["capacity", "merge", "@FOLDER", "--out", "@OUT"],
                   good / "studied", writes_at=(4,))


def cases(good):
    """All of them, on what make() wrote."""
    makers = (of_models, of_machines, of_schedules, of_folders, of_costs, of_studies)
    return [case for maker in makers for case in maker(good)]
