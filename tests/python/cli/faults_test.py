"""pipeweaver faults: what faulty nodes leave of a network."""

import json

import pytest


def rows(pipeweaver, *arguments):
    answer = json.loads(pipeweaver("faults", *arguments, "--json"))
    return {(row["network"], row["tp"]): row for row in answer["rows"]}


def test_1024_gpus_of_nvl72_or_of_hgx(pipeweaver):
    found = rows(pipeweaver, "--gpus", 1024, "--network", "dgx-8,nvl-72", "--faulty", "2%", "--tp", "8,16")
    machines, racks = found["dgx-8", 8], found["nvl-72", 16]
    assert machines["usable_gpus"] == pytest.approx(1024 * 0.98)
    assert machines["wasted_gpus"] == machines["wasted_gpus_by_trials"][0] == 0
    assert machines["usd_per_gpu"] is None and machines["usd_per_usable_gpu"] is None
    assert found["dgx-8", 16] == {"network": "dgx-8", "tp": 16,
                                  "why_not": "tp 16 is above the 8 GPUs of a domain of dgx-8"}
    # 14 racks with 64 of 72 GPUs in groups, and 16 GPUs more.
    assert racks["usable_gpus_without_faults"] == 14 * 64 + 16
    low, high = racks["wasted_gpus_by_trials"]
    assert low <= racks["wasted_gpus"] <= high
    assert racks["usable_gpus"] + racks["wasted_gpus"] + racks["down_gpus"] == pytest.approx(1024)
    assert racks["usd_per_usable_gpu"] == pytest.approx(9563.2 * 1024 / racks["usable_gpus"])
    assert racks["gpus_to_buy"] % 72 == 0 and racks["gpus_to_buy"] > 1024


def test_the_table_has_its_arithmetic(pipeweaver):
    text = pipeweaver("faults", "--gpus", 1024, "--network", "nvl72,ring-k2", "--tp", 16)
    rack = next(line for line in text.splitlines() if line.startswith("nvl-72 ")).split()
    assert rack[:5] == ["nvl-72", "16", "912", "909.6", "93.93"]
    assert "14 x 63.917 + 14.758 = 909.6 usable; 1024 - 20.5 down - 909.6 = 93.9 wasted" in text
    assert "cut by 2 faulty ones in a row" in text
    assert "from memory" in text or "(memory)" in text  # where the costs are from


def test_threads_do_not_change_the_answer_and_seeds_do(pipeweaver):
    ask = ("faults", "--gpus", 576, "--network", "nvl-36", "--trials", 2000, "--json")
    assert pipeweaver(*ask) == pipeweaver(*ask, "--threads", 3)
    assert pipeweaver(*ask) != pipeweaver(*ask, "--seed", 2)


def test_nodes_jobs_and_confidence_of_ones_own(pipeweaver):
    ask = ("--gpus", 1152, "--network", "nvl-72", "--tp", 8, "--faulty", "1%")
    trays, singles = rows(pipeweaver, *ask)["nvl-72", 8], rows(pipeweaver, *ask, "--node", 1)["nvl-72", 8]
    assert trays["down_gpus"] == pytest.approx(singles["down_gpus"])
    assert singles["wasted_gpus"] > trays["wasted_gpus"]
    surer = rows(pipeweaver, *ask, "--confidence", "99.9%")["nvl-72", 8]
    assert surer["job_gpus_at_confidence"] < trays["job_gpus_at_confidence"]
    assert surer["gpus_to_buy"] >= trays["gpus_to_buy"]
    assert rows(pipeweaver, *ask, "--job", 72)["nvl-72", 8]["gpus_to_buy"] == 144
    none = rows(pipeweaver, *ask[:-1], "0")["nvl-72", 8]
    assert none["usable_gpus"] == 1152 and none["gpus_to_buy"] == 1152


def test_a_network_of_ones_own(pipeweaver, tmp_path):
    file = tmp_path / "mine.json"
    shown = json.loads(pipeweaver("show", "nvl-72"))
    file.write_text(json.dumps({**shown, "name": "mine", "gpus_per_domain": 64}))
    found = rows(pipeweaver, "--gpus", 1024, "--network", f"{file},nvl-72", "--tp", 16, "--faulty", "0")
    assert found["mine", 16]["wasted_gpus"] == 0
    assert found["nvl-72", 16]["wasted_gpus"] == 112
    assert "nvl-576" in pipeweaver("list", "networks")


@pytest.mark.parametrize("arguments, status, says", [
    ([], 2, "--gpus"),
    (["--gpus", "0"], 2, "--gpus: is '0', must be a whole number from 1 to 1000000"),
    (["--gpus", "1022"], 2, "1022 GPUs are no multiple of the 4 of a node of nvl-72"),
    (["--tp", "96"], 2, "--tp: tp 96 is above the 72 GPUs of a domain of nvl-72"),
    (["--tp", "2000"], 2, "--tp: is '2000', must be a whole number from 1 to 1024"),
    (["--tp", "8,x"], 2, "--tp: is 'x'"),
    (["--network", "cube-64", "--tp", "12"], 2, "groups of tp 12 do not fill the 64 GPUs of a cube of cube-64"),
    (["--network", "nvl-71"], 2, "unknown network 'nvl-71'; known are dgx-8, nvl-36, nvl-72, nvl-576, cube-64, ring-"),
    (["--faulty", "101%"], 2, "--faulty: is '101%', must be a percentage from 0% to 100%, like 2%"),
    (["--faulty", "-1%"], 2, "--faulty: is '-1%', must be a percentage from 0% to 100%, like 2%"),
    (["--faulty", "0.02"], 2, "--faulty: is '0.02', must be a percentage"),
    (["--confidence", "100%"], 2, "--confidence: is '100%', must be a percentage from 50% to 99.9999%"),
    (["--node", "5"], 2, "--node: 5 does not divide the 72 GPUs of a domain of nvl-72"),
    (["--trials", "1"], 2, "--trials: is '1'"),
    (["--network", "none.json"], 3, "none.json: cannot be read"),
])
def test_what_is_wrong_is_said(pipeweaver, arguments, status, says):
    given = dict(zip(arguments[::2], arguments[1::2]))
    asked = {**({"--gpus": "1024"} if arguments else {}), "--network": "nvl-72", **given}
    found, line = pipeweaver.fails("faults", *[word for pair in asked.items() for word in pair])
    assert found == status and says in line


def test_larger_domains_make_steps_of_large_groups_no_longer(pipeweaver):
    """Tensor parallel groups of 16, and replicas that meet inside and between domains."""
    def step(cluster):
        return json.loads(pipeweaver("emulate", "--model", "llama3.1-405b", "--cluster", cluster, "--tp", 16, "--pp", 9,
                                     "--dataset", "constant-8192", "--microbatches", 4, "--json"))["step_ns"]
    steps = [step(f"gb200-nvl{domain}:1152") for domain in (36, 72, 576)]
    assert steps[0] > steps[1] > steps[2]
