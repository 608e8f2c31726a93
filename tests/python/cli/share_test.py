"""pipeweaver share: GPUs of one cluster for several trainings, the queue by policy, files, bad input."""

import csv
import itertools
import json

import pytest
from checkout import ROOT

THREE = ROOT / "examples/three-trainings.yaml"
TRACE = ROOT / "examples/trainings-trace.yaml"


def answer(pipeweaver, *arguments):
    return json.loads(pipeweaver("share", *arguments, "--json"))


def by_policy(found):
    return {queue["policy"]: queue for queue in found["queue"]}


@pytest.mark.parametrize("file", [THREE, TRACE])
def test_elastic_with_loans_is_ahead_of_fifo_on_what_is_shipped(pipeweaver, file):
    queues = by_policy(answer(pipeweaver, file))
    weighted = {name: queue["weighted_completion_s"] for name, queue in queues.items()}
    assert weighted["elastic"] < weighted["loan"] < weighted["fifo"]
    assert queues["fifo"]["loaned_gpu_hours"] == 0 < queues["loan"]["loaned_gpu_hours"]
    for queue in queues.values():
        held = sum(one["gpus"] * (one["until_ns"] - one["from_ns"]) for one in queue["holdings"])
        assert held / 3600e9 == pytest.approx(queue["gpu_hours"])
        assert queue["gpu_hours"] < queue["offered_gpu_hours"]


def test_without_loans_the_queue_is_that_of_fifo(pipeweaver, tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text("\n".join(line for line in TRACE.read_text().splitlines() if not line.startswith("night:")))
    queues = by_policy(answer(pipeweaver, file, "--policy", "fifo,loan"))
    assert queues["loan"] | {"policy": "fifo"} == queues["fifo"]


def test_three_jobs_have_the_shares_that_cost_least(pipeweaver):
    found = answer(pipeweaver, THREE, "--policy", "fifo")
    jobs = found["cluster"]["jobs"]
    ways = []
    for way in itertools.product(*(job["speed"] for job in jobs)):
        if sum(one["gpus"] for one in way) <= found["cluster"]["gpus"]:
            cost = sum(job["weight"] * job["tokens"] / one["tokens_per_s"] for job, one in zip(jobs, way))
            ways.append((cost, [one["gpus"] for one in way]))
    assert found["share"]["weighted_completion_s"] == pytest.approx(min(ways)[0])
    assert [one["gpus"] for one in found["share"]["jobs"]] == min(ways)[1]


def test_files_say_the_same_and_run_again(pipeweaver, tmp_path):
    said = pipeweaver("share", TRACE, "--out", tmp_path / "one")
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["jobs.json", "queue.csv", "shares.csv"]
    assert pipeweaver("share", tmp_path / "one/jobs.json", "--out", tmp_path / "two") == said
    for name in ("jobs.json", "queue.csv", "shares.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    rows = list(csv.DictReader((tmp_path / "one/queue.csv").open()))
    queues = by_policy(answer(pipeweaver, TRACE))
    assert [row["policy"] for row in rows] == [name for name in queues for _ in range(12)]
    for name, queue in queues.items():
        mine = [row for row in rows if row["policy"] == name]
        assert [round(float(row["ends_s"]) * 1e9) for row in mine] == pytest.approx(
            [job["ends_ns"] for job in queue["jobs"]], abs=100)
        assert sum(float(row["weighted_completion_s"]) for row in mine) == pytest.approx(
            queue["weighted_completion_s"])
    shares = list(csv.DictReader((tmp_path / "one/shares.csv").open()))
    assert sum(int(row["gpus"]) for row in shares) <= 1024
    assert [row["job"] for row in shares if row["gpus"] == "0"] == [
        "moe-ablation-1", "vl-32b-long", "vl-72b-long", "moe-ablation-3"]


def test_the_table_spells_its_arithmetic_out(pipeweaver):
    text = pipeweaver("share", THREE, "--policy", "elastic,fifo")
    shares = text.split("weight x days: ")[1].splitlines()[0]
    terms, total = shares.removesuffix(" weighted days").split(" = ")
    assert sum(float(a) * float(b) for a, b in (term.split(" x ") for term in terms.split(" + "))) == pytest.approx(
        float(total), abs=0.05)
    assert text.index("elastic  (1 x ") < text.index("fifo     (1 x ")
    assert "eighths of 1024" in text and "loan," not in text
    assert "they need 1536 GPUs at least, there are 1024; moe-ablation-1, " in pipeweaver("share", TRACE)


def test_speeds_of_a_study(pipeweaver, tmp_path):
    (tmp_path / "results.csv").write_text(
        "model,cluster,gpus,tokens_per_s\na,h100-sxm,8,900\na,h100-sxm,8,1000\na,h100-sxm,16,\n")
    (tmp_path / "jobs.yaml").write_text(
        "format: pipeweaver-jobs/1\ngpus: 8\njobs:\n  - {name: a, tokens: 86400000, study: results.csv}\n")
    found = answer(pipeweaver, tmp_path / "jobs.yaml")
    assert found["cluster"]["jobs"][0]["speed"] == [{"gpus": 8, "tokens_per_s": 1000}]
    assert [queue["ends_ns"] for queue in found["queue"]] == [86_400_000_000_000] * 3


JOB = "{name: a, tokens: 1B, speed: [{gpus: 8, tokens_per_s: 1000}]}"


@pytest.mark.parametrize("text, status, says", [
    (f"gpus: 4\njobs: [{JOB}]", 4, "jobs.yaml:3: jobs[0]: its smallest GPU count is 8, the cluster has 4"),
    (f"gpus: 8\njobs: [{JOB}, {JOB}]", 2, "jobs.yaml:3: jobs[1].name: is 'a', which jobs[0] is named already"),
    ("gpus: 8\njobs: [{name: a, tokens: 1B}]", 2,
     "jobs.yaml:3: jobs[0]: has no speeds: the key 'speed' or 'study' is needed"),
    (f"gpus: 8\nnights: 1\njobs: [{JOB}]", 2, "jobs.yaml:3: unknown key 'nights'; did you mean 'night'?"),
])
def test_a_document_that_is_wrong_is_one_line(pipeweaver, tmp_path, text, status, says):
    (tmp_path / "jobs.yaml").write_text(f"format: pipeweaver-jobs/1\n{text}\n")
    found, line = pipeweaver.fails("share", tmp_path / "jobs.yaml", "--out", tmp_path / "out")
    assert found == status and line.endswith(says)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments, says", [
    (["--policy", "fifo,lone"], "--policy: unknown policy 'lone'; did you mean 'loan'?"),
    (["--restart", "10"], "--restart: '10' is not a time"),
    (["--restart", "25h"], "--restart: is '25h', must be at most 24h"),
])
def test_options_that_are_wrong_are_one_line(pipeweaver, arguments, says):
    status, line = pipeweaver.fails("share", THREE, *arguments)
    assert status == 2 and says in line
