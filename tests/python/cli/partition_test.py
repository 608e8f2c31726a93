"""pipeweaver partition, and the partition files that commands take."""

import json

import pytest
from checkout import ROOT
from cli_shared import BATCH, PLAN

JOB = [*PLAN[1:], *BATCH]


@pytest.fixture(scope="module")
def chosen(pipeweaver, tmp_path_factory):
    out = tmp_path_factory.mktemp("partition") / "part.json"
    answer = json.loads(pipeweaver("partition", *JOB, "--sample", "101-102", "--out", out, "--json"))
    return out, answer


def test_the_partition_of_a_job_is_the_same_on_any_number_of_threads(pipeweaver, chosen, tmp_path):
    path, answer = chosen
    again = tmp_path / "again.json"
    table = pipeweaver("partition", *JOB, "--sample", "101,102", "--out", again, "--threads", "1", "--picture",
                       tmp_path / "part.svg")
    assert again.read_bytes() == path.read_bytes()
    written = json.loads(path.read_text())
    assert written["format"] == "pipeweaver-partition/1"
    assert written["sample"]["seeds"] == [101, 102]
    assert [module["module"] for module in written["modules"]] == ["vit", "llm"]
    assert f"taken: {written['name']} with " in table and "seeds 101-102" in table
    assert len(answer["tried"]) > 5
    assert len(answer["stage_ns"]) == sum(len(chain["stages"]) for chain in answer["partition"]["chains"])
    svg = (tmp_path / "part.svg").read_text()
    assert svg.startswith("<svg") and "rank 0" in svg and "(taken)" in svg


def test_no_schedule_leaves_the_cut_of_the_file(pipeweaver, tmp_path):
    """Which is far from what is launched: neither PyTorch's, nor that of a packing that the plan chooses."""
    job = ["plan", "--model", "dip-vlm-s", "--cluster", "h100-sxm:8", "--tp", "2", "--pp", "4", "--dataset", "vlm-mix",
           "--microbatches", "4", "--max-rounds", "1"]
    pipeweaver(*job, "--partition", "balanced", "--out", tmp_path / "first")
    file = json.loads((tmp_path / "first/partition.json").read_text())
    uneven = {"vit": [(0, 43), (1, 20)], "llm": [(1, 6), (2, 12), (3, 14)]}
    for module in file["modules"]:
        module["stages"] = [
            {"stage": rank, "rank": rank, "layers": layers,
             "first_layer": sum(before for other, before in uneven[module["module"]] if other < rank)}
            for rank, layers in uneven[module["module"]]]
    (tmp_path / "uneven.json").write_text(json.dumps({**file, "memory_modes": ["full"]}))
    job += ["--partition", tmp_path / "uneven.json", "--json"]
    pipeweaver(*job, "--target", "torch-csv", "--out", tmp_path / "plan")
    packed = json.loads(pipeweaver(*job, "--packing", "auto", "--out", tmp_path / "packed"))
    assert not packed["is_opponents"]
    for stages in (json.loads((tmp_path / "plan/torch/schedule.json").read_text())["stages"],
                   packed["partition"]["chains"][0]["stages"]):
        assert [[(part["module"], part["layers"]) for part in stage["parts"]] for stage in stages] == [
            [("vit", 43)], [("vit", 20), ("llm", 6)], [("llm", 12)], [("llm", 14)]]


def test_commands_take_the_file_and_no_batch_changes_it(pipeweaver, chosen, tmp_path):
    path, answer = chosen
    for seed in ("1", "2"):
        plan = json.loads(pipeweaver("plan", *JOB, "--seed", seed, "--partition", path, "--max-rounds", "1", "--out",
                                     tmp_path / seed, "--json"))
        assert plan["partition"]["chains"] == answer["partition"]["chains"]
        assert plan["partition"]["chosen_on"] == "vlm-mix, seeds 101-102"
    step = json.loads(pipeweaver("emulate", *JOB, "--partition", path, "--policy", "dual-queue", "--json"))
    assert step["partition"]["chains"] == answer["partition"]["chains"]
    pipeweaver("costdb", "needs", *JOB, "--partition", path, "--out", tmp_path / "needs")
    assert (tmp_path / "needs" / "gemm.csv").exists()


def test_a_plan_says_what_its_partition_was_chosen_on(pipeweaver, tmp_path):
    drawn = json.loads(pipeweaver("plan", *JOB, "--max-rounds", "0", "--out", tmp_path / "a", "--json"))
    assert drawn["partition"]["chosen_on"] == "vlm-mix, seeds 101-105"
    assert drawn["opponent"]["chosen_on"] == "vlm-mix, seeds 101-105"
    own = json.loads(pipeweaver("plan", *JOB, "--seed", "103", "--max-rounds", "0", "--out", tmp_path / "b", "--json"))
    assert own["partition"]["chosen_on"] == "vlm-mix, seeds 106-110"
    of_file = json.loads(pipeweaver("plan", *PLAN[1:], "--batch", ROOT / "examples/batch.jsonl", "--max-rounds", "0",
                                    "--out", tmp_path / "c", "--json"))
    assert of_file["partition"]["chosen_on"] == "the batch itself"


@pytest.mark.parametrize("options, said", [
    (["--sample", "105-101"], "--sample: '105-101' is not 1 to 100 numbers, the smaller first"),
    (["--sample", "nowhere.jsonl"], "nowhere.jsonl"),
    (["--sample", "1-2x"], "1-2x"),
    (["--partition", "dop"], "--partition: is 'dop', must be one of dip, modules, megatron"),
    (["--partition", "nowhere.json"], "nowhere.json"),
    (["--partition", "three-phase", "--zero", "3"],
     "partition three-phase: is emulated with --zero 0 or 1, 3 was asked for"),
])
def test_what_a_job_cannot_be_chosen_on_is_refused(pipeweaver, tmp_path, options, said):
    status, line = pipeweaver.fails("plan", *JOB, *options, "--out", tmp_path / "plan")
    assert status in (2, 3) and said in line and not (tmp_path / "plan").exists()


def test_a_sample_without_items_of_a_module_is_refused(pipeweaver, tmp_path):
    text = tmp_path / "text.jsonl"
    text.write_text('{"id":"a","text_tokens":1000,"images":[]}\n')
    status, line = pipeweaver.fails("partition", *JOB, "--sample", text, "--out", tmp_path / "part.json")
    assert status == 2 and f"--sample: {text} has no items of module 'vit'" in line
    assert not (tmp_path / "part.json").exists()


def test_a_file_of_another_layout_is_refused_by_its_key(pipeweaver, chosen, tmp_path):
    path, _ = chosen
    other = ([*JOB[:JOB.index("--tp")], "--tp", "2", "--pp", "8", *BATCH] if "--tp" in JOB
             else [*JOB, "--tp", "2", "--pp", "8"])
    status, line = pipeweaver.fails("plan", *other, "--partition", path, "--out", tmp_path / "plan")
    assert status == 2 and "layout." in line and "a partition is of one layout" in line
