"""--rack and --network: where GPUs lie, what a step takes there, and what stays as it is."""

import json

import pytest
from cli_shared import ONE_DRAW, digests
from getting_started import blocks, follow, page_of

PAGE = page_of("docs/where-gpus-lie.md")
JOB = ["--model", "dip-vlm-s", "--dataset", "vlm-mix", "--microbatches", "4"]
H100 = {"format": "pipeweaver-cluster/1", "name": "h100-sxm", "device": "h100_sxm", "gpus_per_node": 8, "gpus": 64,
        "node_link_bytes_per_s": 450_000_000_000, "network_bytes_per_s": 400_000_000_000}


def emulated(pipeweaver, *options, cluster="h100-sxm:64", layout=("--tp", "4", "--pp", "4")):
    return json.loads(pipeweaver("emulate", *JOB, "--cluster", cluster, *layout, *options, "--json"))


def test_the_page_shows_what_is_printed_first(pipeweaver, tmp_path):
    shown = [block.splitlines()[0] for block in blocks("", PAGE)]
    assert [printed.splitlines()[0] for printed in follow(pipeweaver, tmp_path, PAGE)] == shown


def test_a_switch_in_each_node_and_no_racks_give_the_same_plan_to_the_byte(pipeweaver, tmp_path):
    """Also with --layout auto; run.json, which repeats the options, is left out."""
    for name, layout in [("fixed", ["--tp", "4", "--pp", "2"]), ("auto", ["--layout", "auto"])]:
        plans = []
        for key, said in [("plain", {}), ("switch", {"network": "dgx-8"})]:
            folder, file = tmp_path / name / key, tmp_path / "cluster.json"
            file.write_text(json.dumps({**H100, **said, "gpus": 16}))
            pipeweaver("plan", *JOB, "--cluster", file, *layout, *ONE_DRAW, "--max-rounds", "1", "--out", folder)
            assert "placement" not in json.loads((folder / "plan.json").read_text())["asked"]
            plans.append(digests(folder))
        assert plans[0] == plans[1]


def test_uplinks_of_racks_make_a_step_longer_and_a_better_place_less_so(pipeweaver):
    plain = emulated(pipeweaver)
    assert "placement" not in plain["asked"]
    steps = [plain["step_ns"]]
    for over in (1, 8, 64):
        one = emulated(pipeweaver, "--rack", f"16:{over}")
        assert one["asked"]["placement"] == "tp 4 . dp 2 | dp 2 | pp 4"
        steps.append(one["step_ns"])
    assert steps[0] == steps[1] <= steps[2] < steps[3]
    assert one["asked"]["numbers_by_place"] == list(range(64))
    # A file says the same as the option.
    file = emulated(pipeweaver, cluster=json.dumps({**H100, "gpus_per_rack": 16, "rack_oversubscription": 64}))
    assert file["step_ns"] == steps[3]


def test_a_rack_holds_a_pipeline_where_little_is_trained(pipeweaver):
    """Four tensor parallel GPUs of two pipeline ranks are a node: numbers 0 to 3, and 16 to 19 of the next rank."""
    asked = emulated(pipeweaver, "--rack", "16:8", "--train", "projectors")["asked"]
    assert asked["placement"] == "tp 4 . pp 2 | pp 2 | dp 4"
    assert asked["numbers_by_place"][:8] == [0, 1, 2, 3, 16, 17, 18, 19]
    assert sorted(asked["numbers_by_place"]) == list(range(64))


def test_rings_and_cubes_have_places_and_more_hops_take_longer(pipeweaver):
    cube = emulated(pipeweaver, "--network", "cube-64")
    assert cube["asked"]["placement"] == "tp 4 . dp 4 . pp 4 | - | -"
    ring = {"format": "pipeweaver-network/1", "name": "mine", "kind": "ring", "gpus_per_node": 4}
    near, far = [emulated(pipeweaver, cluster=json.dumps({**H100, "network": {**ring, "hops": hops}}))
                 for hops in (8, 1)]
    # Copies of weights exchange most, and lie side by side: pipeline ranks are four nodes apart.
    assert near["asked"]["placement"] == far["asked"]["placement"] == "tp 4 | - | dp 4 . pp 4"
    assert near["step_ns"] < far["step_ns"]


def test_a_layout_is_chosen_with_its_places(pipeweaver, tmp_path):
    plan = json.loads(pipeweaver("plan", *JOB, "--cluster", "h100-sxm:16", "--rack", "8:8", "--layout", "auto",
                                 *ONE_DRAW, "--max-rounds", "1", "--json", "--out", tmp_path))
    parts = plan["asked"]["placement"].replace("|", ".").split(" . ")
    product = {"tp": 1, "cp": 1, "dp": 1, "pp": 1}
    for digit in parts:
        if digit.strip() != "-":
            name, size = digit.split()
            product[name] *= int(size)
    assert product == {key: plan["asked"].get(key, 1) for key in product}


@pytest.mark.parametrize("options, words", [
    (["--rack", "16:0.5"], "--rack: is '16:0.5', must be GPUs and their oversubscription from 1 to 1000, like 64:4"),
    (["--rack", "many"], "--rack: is 'many', must be GPUs"),
    (["--rack", "12"], "--rack: is 12, must be whole nodes of 8 GPUs"),
    (["--network", "nvl-73"], "unknown network 'nvl-73'; known are dgx-8"),
    (["--network", "ring-k2", "--rack", "16"], "is a ring through all nodes, which has no racks"),
])
def test_a_network_that_cannot_be_is_refused(pipeweaver, options, words):
    done = pipeweaver.run("emulate", *JOB, "--cluster", "h100-sxm:64", "--tp", "4", "--pp", "4", *options)
    assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1


def test_groups_of_GPUs_have_no_places(pipeweaver):
    done = pipeweaver.run("groups", *JOB[:4], "--global-batch", "8mb", "--cluster",
                          json.dumps({**H100, "gpus_per_rack": 16}))
    assert done.returncode == 2 and "--cluster: has racks, a ring or cubes" in done.stderr


def test_clusters_are_recommended_with_their_racks(pipeweaver):
    rest = ["recommend", "--model", "llama3-8b", "--dataset", "constant-4096", "--global-batch", "16", "--tokens", "1B",
            "--clusters", "h100-sxm", "--gpus", "16", "--cp", "1", "--json"]
    answers = [json.loads(pipeweaver(*rest, *rack)) for rack in ([], ["--rack", "8:64"])]
    steps = [one["rows"][one["answers"]["fastest"] - 1]["step_ns"] for one in answers]
    assert steps[0] < steps[1]
