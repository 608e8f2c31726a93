"""One replica's plan on its own, and batches packed in other ways than in given order."""

import json

import pytest
from cli_shared import ONE_DRAW

JOB = ["--model", "dip-vlm-s", "--cluster", "h100-sxm:48", "--tp", "4", "--pp", "4", "--dataset", "vlm-mix",
       "--microbatches", "2", *ONE_DRAW, "--packing", "given"]


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*")
            if path.is_file() and (path.parent.name.startswith("replica-") or path.name == "partition.json")}


@pytest.fixture(scope="module")
def all_replicas(pipeweaver, tmp_path_factory):
    out = tmp_path_factory.mktemp("replicas") / "all"
    pipeweaver("plan", *JOB, "--max-rounds", "1", "--quiet", "--out", out)
    return files_of(out)


def test_each_replica_planned_alone_has_the_bytes_of_the_plan_of_all(pipeweaver, all_replicas, tmp_path):
    together = {}
    for number in range(3):
        out = tmp_path / str(number)
        answer = json.loads(pipeweaver("plan", *JOB, "--max-rounds", "1", "--replicas", number, "--out", out, "--json"))
        assert [one["replica"] for one in answer["replicas"]] == [number]
        assert [one["replica"] for one in json.loads((out / "assignment.json").read_text())["replicas"]] == [number]
        mine = files_of(out)
        assert len(mine) == 5
        together.update(mine)
        pipeweaver("emit", "--plan", out, "--target", "torch-actions", "--out", tmp_path / "emitted")
    assert together == all_replicas
    assert sorted(one.name for one in (tmp_path / "emitted").iterdir()) == sorted(
        f"replica-{number:03}" for number in range(3))


def test_several_replicas_are_planned_by_a_list(pipeweaver, all_replicas, tmp_path):
    out = tmp_path / "two"
    text = pipeweaver("plan", *JOB, "--max-rounds", "1", "--replicas", "1-2", "--threads", "1", "--quiet", "--out", out)
    assert "of 2, the slowest" in text
    mine = files_of(out)
    assert mine == {name: content for name, content in all_replicas.items() if not name.startswith("replica-000")}


@pytest.mark.parametrize("options, said", [
    (["--replicas", "0-3"], "--replicas: is '3', must be a whole number from 0 to 2"),
    (["--replicas", "2-1"], "--replicas: '2-1' is not 1 to 3 numbers, the smaller first"),
    (["--packing", "best"], "--packing: is 'best', must be one of given, ffd, balanced, padded, auto"),
])
def test_what_is_not_there_is_refused(pipeweaver, tmp_path, options, said):
    job = JOB[:-2] if "--packing" in options else JOB
    status, line = pipeweaver.fails("plan", *job, *options, "--out", tmp_path / "plan")
    assert status == 2 and said in line and not (tmp_path / "plan").exists()


def samples_of(folder):
    assignment = json.loads((folder / "assignment.json").read_text())
    microbatches = [one for replica in assignment["replicas"] for one in replica["microbatches"]]
    return sorted(sample["id"] for one in microbatches for sample in one["samples"]), microbatches


def test_every_packing_takes_every_sample_once_and_weighs_losses_alike(pipeweaver, tmp_path):
    batch = ["--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--tp", "4", "--pp", "4", "--dataset", "vlm-mix",
             "--microbatches", "8", *ONE_DRAW, "--max-rounds", "1"]
    plans = {}
    for packing in ("given", "ffd", "balanced", "padded"):
        out = tmp_path / packing
        plan = json.loads(pipeweaver("plan", *batch, "--packing", packing, "--target", "torch-csv", "--out", out,
                                     "--json"))
        ids, microbatches = samples_of(out)
        assert sum(one["loss_weight"] for one in microbatches) == pytest.approx(1)
        plans[packing] = (ids, microbatches, plan)
    assert all(ids == plans["given"][0] for ids, _, _ in plans.values())
    assert len(set(plans["given"][0])) == len(plans["given"][0])
    most = {packing: max(sum(len(unit["items"]) for unit in one["units"] if unit["module"] == "vit")
                         for one in microbatches)
            for packing, (_, microbatches, _) in plans.items()}
    assert most["balanced"] < most["given"]
    assert plans["padded"][2]["torch"]["makespan_ns"] < plans["given"][2]["torch"]["makespan_ns"]
    command = plans["balanced"][2]["opponent"]["command"]
    assert "--packing balanced" in command


def test_an_automatic_packing_is_settled_for_the_whole_job(pipeweaver, tmp_path):
    given = ["--model", "dip-vlm-s", "--cluster", "h100-sxm:32", "--tp", "4", "--pp", "4", "--dataset", "vlm-mix",
             "--microbatches", "8", *ONE_DRAW, "--max-rounds", "0"]
    auto = [*given, "--packing", "auto"]
    free = json.loads(pipeweaver("plan", *auto, "--out", tmp_path / "free", "--json"))
    assert free["asked"]["packing"] in ("given", "ffd", "balanced")
    alone = json.loads(pipeweaver("plan", *auto, "--replicas", "1", "--out", tmp_path / "alone", "--json"))
    assert alone["asked"]["packing"] == free["asked"]["packing"]
    name = "replica-001/solution.json"
    assert (tmp_path / "alone" / name).read_bytes() == (tmp_path / "free" / name).read_bytes()
    in_order = json.loads(pipeweaver("plan", *given, "--packing", "given", "--out", tmp_path / "given", "--json"))
    assert free["partition"]["name"] == in_order["partition"]["name"]
    assert free["partition"]["chunks_per_rank"] == in_order["partition"]["chunks_per_rank"]
    assert free["step_ns"] <= 1.002 * in_order["step_ns"]
    torch = json.loads(pipeweaver("plan", *auto, "--target", "torch-csv", "--out", tmp_path / "torch", "--json"))
    assert torch["asked"]["packing"] == "padded"
    status, line = pipeweaver.fails("emulate", *auto[:-4], "--packing", "auto")
    assert status == 2 and "--packing: auto is for plans; allowed are given, ffd, balanced, padded" in line


def test_samples_that_are_left_go_before_the_next_batch(pipeweaver, tmp_path):
    """Three steps of a job: every sample of its batches is in one of them, or left by the last."""
    job = ["--model", "dip-vlm-s", "--cluster", "h100-sxm:16", "--tp", "4", "--pp", "4", "--max-rounds", "0",
           "--replicas", "0", "--packing", "padded", "--defer", "2"]
    large = '{"width":728,"height":728}'
    seen, left = [], None
    for step in range(3):
        batch = tmp_path / f"batch-{step}.jsonl"
        lines = [f'{{"id":"{step}-{k}","text_tokens":2000,"images":[{",".join([large] * (24 if k == 9 else 2))}]}}'
                 for k in range(40)]
        batch.write_text("\n".join(lines) + "\n")
        out = tmp_path / f"plan-{step}"
        plan = json.loads(pipeweaver("plan", *job, "--batch", batch, *(["--deferred", left] if left else []),
                                     "--out", out, "--json"))
        left = out / "deferred.jsonl"
        waiting = [json.loads(line) for line in left.read_text().splitlines()]
        assert plan["asked"]["deferred"] == len(waiting)
        assert all(len(one["images"]) == 24 and 1 <= one["deferred"] <= 2 for one in waiting)
        seen += samples_of(out)[0]
        if step == 0:
            assert [one["id"] for one in waiting] == ["0-9"]
    assert "0-9" in seen and len(seen) == len(set(seen))
    assert sorted(seen + [one["id"] for one in waiting]) == sorted(f"{s}-{k}" for s in range(3) for k in range(40))
    for options, said in [(["--deferred", tmp_path / "plan-0" / "deferred.jsonl", "--out", tmp_path / "plan-0"],
                           "is a file of --out, which replaces it; allowed is another folder"),
                          (["--deferred", tmp_path / "batch-2.jsonl", "--out", tmp_path / "x"],
                           "sample '2-0' is in the batch, too"),
                          (["--out", tmp_path / "x"], "--defer: goes with --packing padded")]:
        asked = job if "--deferred" in options else [option for option in job if option not in ("--packing", "padded")]
        status, line = pipeweaver.fails("plan", *asked, "--batch", batch, *options)
        assert status == 2 and said in line and not (tmp_path / "x").exists()
    again = [option for option in job if option not in ("--defer", "2")]
    pipeweaver("plan", *again, "--batch", batch, "--out", tmp_path / "plan-0", "--quiet")
    assert not (tmp_path / "plan-0" / "deferred.jsonl").exists()
