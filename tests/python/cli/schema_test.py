"""docs/schema: a JSON Schema for each file that is written or read; what commands write is valid, and has no other key.

Where a writer has a new key: tools/widen_schema.py docs/schema/NAME.json FILE adds it."""

import copy
import gzip
import json
import re
import shlex

import pytest
from absent import needed
from checkout import ROOT

jsonschema = needed("jsonschema")
yaml = needed("yaml")

SCHEMAS = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "docs/schema").glob("*.json"))}
LAUNCH = "--tp 4 --pp 4 --dataset vlm-mix --microbatches 4 --threads 2"
ARGUMENTS = ("--seq-length 8192 --max-position-embeddings 8192 --micro-batch-size 1 --global-batch-size 64 "
             "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 --sequence-parallel")


def strict(schema):
    """The schema, that takes no key that it does not name."""
    schema = copy.deepcopy(schema)

    def close(one):
        if "properties" in one:
            one.setdefault("additionalProperties", False)
        for inner in [*one.get("properties", {}).values(), one.get("items"), one.get("additionalProperties")]:
            if isinstance(inner, dict):
                close(inner)

    close(schema)
    return schema


def read(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def complaints(name, document):
    """What is wrong with it, and where."""
    found = jsonschema.Draft202012Validator(strict(SCHEMAS[name])).iter_errors(document)
    return [f"{name}: {one.json_path}: {one.message[:300]}" for one in found]


def of_plan(folder):
    """(schema, file) of what a plan's folder has."""
    names = {"plan.json": "plan", "partition.json": "partition", "assignment.json": "assignment",
             "launch.json": "launch", "launch-assignment.json": "assignment", "torch/schedule.json": "torch",
             "torch/padding.json": "padding", "replica-*/actions.json": "actions",
             "replica-*/actions/*.json.gz": "rank-actions", "replica-*/problem.json.gz": "problem",
             "replica-*/solution.json": "solution"}
    return [(name, path) for pattern, name in names.items() for path in sorted(folder.glob(pattern))]


def said_of(folder):
    return [complaint for name, path in of_plan(folder) for complaint in complaints(name, read(path))]


def test_a_plan_is_valid(planned):
    assert {name for name, _ in of_plan(planned)} >= {"plan", "partition", "assignment", "actions", "problem",
                                                      "solution"}
    assert said_of(planned) == []


@pytest.mark.parametrize("options", [
    "--model dip-vlm-s --cluster h100-sxm:32 --dp 2 --actions by-rank --target torch-csv " + LAUNCH,
    "--model qwen2.5-vl-7b --cluster h100-sxm:16 --target megatron --tokens 1B " + LAUNCH,
    "--model llama3-8b --cluster h100-sxm:8 --layout auto --dataset constant-4096 --global-batch 8 --target torchtitan",
], ids=lambda options: options.split()[1])
def test_plans_for_targets_are_valid(pipeweaver, tmp_path, options):
    pipeweaver("plan", *options.split(), "--max-rounds", "1", "--quiet", "--out", tmp_path / "plan")
    assert said_of(tmp_path / "plan") == []


@pytest.mark.parametrize("options", [
    "--model dip-vlm-s --cluster h100-sxm:16 --recompute by-rank --tokens 10B --price 2 " + LAUNCH,
    f"--model dip-vlm-s --cluster h100-sxm:16 --what-if {ROOT}/examples/what-if.yaml " + LAUNCH,
    "--model llama3-8b --cluster mi300x:8 --tp 2 --pp 2 --dp 2 --dataset constant-4096 --microbatches 4",
    "--model dip-vlm-s --cluster h100-sxm:32 --dp 2 --robust jitter --slow 10-30% --what-if gradients " + LAUNCH,
    "--model dip-vlm-s --cluster h100-sxm:16 --precision vit=bf16 --what-if precision=fp8:1% " + LAUNCH,
    "--model dip-vlm-s --cluster h100-sxm:16 --precision fp8 --what-if precision=vit=bf16 " + LAUNCH,
    "--model dip-t2v-s --cluster h100-sxm:16 --cp 2 --dataset t2v-mix --microbatches 4 --what-if sparsity",
], ids=["by-rank", "what-if", "modelled", "varied", "layers", "formats", "sparsity"])
def test_emulations_are_valid(pipeweaver, tmp_path, options):
    pipeweaver("emulate", *options.split(), "--out", tmp_path)
    assert complaints("emulation", read(tmp_path / "emulation.json")) == []


@pytest.mark.parametrize("options, verdict", [
    (f"--cluster h100-sxm:64 {ROOT}/examples/launch.sh", "fits"),
    (f"--cluster h100-sxm:64 --model qwen2.5-vl-32b --dataset vlm-mix --megatron-args '{ARGUMENTS}'", None),
    ("--cluster h100-sxm:64 --model qwen2.5-vl-32b --rules-only --megatron-args "
     f"'{ARGUMENTS} --decoder-first-pipeline-num-layers 9 --num-virtual-stages-per-pipeline-rank 2'",
     "does-not-construct"),
], ids=["fits", "several modules", "rules"])
def test_checks_are_valid(pipeweaver, options, verdict):
    answer = json.loads(pipeweaver.run("check", *shlex.split(options), "--json").stdout)
    assert verdict in (answer["verdict"], None) and complaints("check", answer) == []


@pytest.mark.parametrize("name, kind", [
    ("dip-vlm-m", "model"), ("dip-t2v-s", "model"), ("flux.1-dev", "model"), ("qwen3-vl-8b", "model"),
    ("h200-sxm", "cluster"), ("gb200-nvl72", "cluster"), ("dgx-8", "network"), ("torch-fsdp2", "recipe"),
    ("megatron-core", "recipe"),
])
def test_what_is_shown_is_valid(pipeweaver, name, kind):
    assert complaints(kind, json.loads(pipeweaver("show", name))) == []


EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize("name, command", [
    ("comparison", f"replay {EXAMPLES}/measured/problem.json.gz {EXAMPLES}/measured/solution.json --measured "
                   f"{EXAMPLES}/measured/timings-0.json.gz {EXAMPLES}/measured/timings-1.json.gz"),
    ("support", "support --model dip-vlm-s --cluster b200-sxm"),
    ("explanation", "costdb explain --device a100_sxm --m 3584 --n 2048 --k 1024"),
    ("explanation", "costdb explain --device h100_sxm --model llama3-8b --tp 4 --m 4096"),
    ("own-run", "validate --measured 9.1s --memory 60GiB --model dip-vlm-s --cluster h100-sxm:16 " + LAUNCH),
    ("validation", f"validate {EXAMPLES}/runs.csv"),
    ("schedule-explanation", f"explain {EXAMPLES}/measured"),
    ("schedule-explanation", f"explain {EXAMPLES}/measured --at 1:1us"),
    ("trace-replay", f"replay --trace {EXAMPLES}/traces/rank-0.json {EXAMPLES}/traces/rank-1.json --what-if nccl=0.5"),
    ("groups", "groups --model dip-vlm-s --cluster h100-sxm:16 --dataset vlm-mix"),
    ("shares", f"share {EXAMPLES}/three-trainings.yaml"),
    ("capacity", "recommend --model dip-vlm-s --dataset vlm-mix --global-batch 32 --tokens 10B --days 30 --clusters "
                 "h100-sxm --gpus 16 --prices h100-sxm=2.5"),
    ("capacity", "recommend --model dip-vlm-s --dataset vlm-mix --global-batch 32 --tokens 10B --days 30 --clusters "
                 "h100-sxm --gpus 16 --groups own"),
], ids=lambda given: given.split()[0])
def test_what_is_printed_for_programs_is_valid(pipeweaver, name, command):
    done = pipeweaver.run(*command.split(), "--json")  # runs.csv has a row that is refused
    assert done.returncode in (0, 2) and complaints(name, json.loads(done.stdout)) == []


def test_what_a_service_keeps_of_a_session_and_of_a_step_is_valid(begin):
    server = begin()
    server.open()
    server.submit(7)
    below = "/v1/sessions/job/"
    assert server.ask("GET", below + "steps/7")[1]["state"] == "planned"
    kept, record = (server.ask("GET", below + part)[1] for part in ("kept", "steps/7/record"))
    assert complaints("session", kept) == [] and complaints("record", record) == []
    assert record["session"] == kept
    assert complaints("problem", kept["order"]["problem"]) + complaints("solution", kept["order"]["solution"]) == []


def test_cells_of_a_study_are_valid(pipeweaver, tmp_path):
    study = {"format": "pipeweaver-study/1", "plan": {"dataset": "vlm-mix"}, "planned": 0, "shown": 1,
             "axes": {"model": ["dip-vlm-s", "dip-t2v-s"], "cluster": "h100-sxm", "gpus": 32, "global-batch": 32,
                      "groups": "auto"}}
    (tmp_path / "study.json").write_text(json.dumps(study))
    pipeweaver("capacity", tmp_path / "study.json", "--quiet", "--out", tmp_path / "out")
    cells = [read(path) for path in (tmp_path / "out/cells").iterdir()]
    assert [complaints("cell", cell) for cell in cells] == [[], []]
    points, = (cell["points"] for cell in cells if "why_not" not in cell)  # a generator of clips reads no images
    assert {point["status"] for point in points} == {"judged", "bounded", "refused"}
    assert [point["split"] for point in points if "split" in point]


def test_coefficients_are_valid():
    config = {"model": "dip-vlm-s", "cluster": "h100-sxm:16", "tp": 4, "pp": 4, "dataset": "vlm-mix"}
    assert complaints("coefficients", needed("pipeweaver.data").coefficients(config).to_dict()) == []


def test_measured_times_are_valid():
    for path in (EXAMPLES / "measured").glob("timings-*.json.gz"):
        assert complaints("timings", read(path)) == []


def test_examples_are_valid():
    read_ones = 0
    for path in [*EXAMPLES.glob("*.json"), *EXAMPLES.glob("*.yaml")]:
        document = yaml.safe_load(path.read_text())
        said = document.get("format", "") if isinstance(document, dict) else ""
        name = re.fullmatch(r"pipeweaver-([\w-]+)/1", said)
        if name and name[1] in SCHEMAS:
            read_ones += 1
            assert complaints(name[1], document) == [], path.name
    assert read_ones >= 8


GOOD = {
    "anchor": {"format": "pipeweaver-anchor/1", "step_time_s": 1.5,
               "launch": {"model": "llama3-8b", "cluster": "h100-sxm:8", "tp": 1, "pp": 2, "recompute": "none"}},
    "session": {"format": "pipeweaver-session/1", "config": {"partition": "{}", "split": "never", "tp": 4},
                "sample": None, "replicas": [0], "order": None, "first_makespan_ns": 5},
    "record": {"format": "pipeweaver-record/1", "session": {"format": "pipeweaver-session/1"}, "step": 7,
               "samples": "", "endings": [None, [1, None], [1, 2, 3, 4, None]]},
    "cell": {"format": "pipeweaver-cell/1", "key": "00ff", "why_not": "a sample is too long"},
    "coefficients": {"format": "pipeweaver-coefficients/1", "forward": 0.3,
                     "stages": [{"tokens": [0, 1, 2.5], "items": {"images": [0, 1, 0]}, "microbatch": 0}]},
}
POINT = {"tp": 1, "cp": 1, "pp": 2, "dp": 1, "ep": 1, "zero": 1, "status": "judged"}


@pytest.mark.parametrize("name, change", [
    ("anchor", {"memory_gib": 0}), ("anchor", {"steps": 1}), ("anchor", {"memory_kind": "peak"}),
    ("session", {"replicas": []}), ("session", {"config": {"partition": "{}", "split": "auto"}}),
    ("session", {"ends": "never"}), ("session", {"order": {"problem": {"format": "pipeweaver-problem/1"}}}),
    ("record", {"endings": [[1, 2, 3]]}), ("record", {"step": "7"}), ("record", {"session": {}}),
    ("cell", {"facts": {}, "points": []}), ("cell", {"key": 1}),
    ("coefficients", {"forward": 1}), ("coefficients", {"stages": []}),
    ("coefficients", {"stages": [{"tokens": [1, 2], "items": {}, "microbatch": 0}]}),
])
def test_what_is_refused_is_not_valid(name, change):
    assert complaints(name, GOOD[name]) == [] and complaints(name, {**GOOD[name], **change}) != []


@pytest.mark.parametrize("point, why", [(POINT, "step_ns"), ({**POINT, "status": "refused"}, "'why'"),
                                        ({**POINT, "status": "bounded", "zero": 4}, "4 is greater")])
def test_a_point_of_a_cell_has_what_its_status_says(point, why):
    facts = {"samples": 1, "microbatches": 1, "tokens": 9, "model_flops": 1e9, "usable_bytes": 9, "error_percent": 4.5,
             "footing": "fitted"}
    cell = {"format": "pipeweaver-cell/1", "key": "00ff", "facts": facts}
    assert complaints("cell", {**cell, "points": [{**POINT, "status": "bounded"}]}) == []
    assert any(why in line for line in complaints("cell", {**cell, "points": [point]}))


def test_every_schema_is_one_and_says_its_format():
    for name, schema in SCHEMAS.items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["title"] in (f"pipeweaver-{name}/1", name)
    assert set(SCHEMAS) == set(re.findall(r"pipeweaver-([a-z-]+)/1", (ROOT / "docs/formats.md").read_text()))
