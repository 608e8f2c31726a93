"""plan --model hf:FILE: Hugging Face configurations are planned as they are, or refused with what is missing."""

import json

import pytest
from cli_shared import BATCH, digests, write_batch
from conftest import ROOT


def test_a_hugging_face_configuration_plans_like_the_model_file_it_shows(pipeweaver, tmp_path):
    config = f"hf:{ROOT / 'tests/data/hf/qwen2.5-vl-7b.json'}"
    rest = ["--cluster", "h100-sxm:8", "--tp", "4", "--pp", "2", "--dataset", "vlm-mix", "--microbatches", "4",
            "--max-rounds", "1"]
    pipeweaver("plan", "--model", config, *rest, "--out", tmp_path / "hf")
    (tmp_path / "mine.json").write_text(pipeweaver("show", config))
    pipeweaver("plan", "--model", tmp_path / "mine.json", *rest, "--out", tmp_path / "own")
    name = "replica-000/solution.json"
    assert digests(tmp_path / "hf")[name] == digests(tmp_path / "own")[name]


def test_a_model_without_a_published_layout_gets_one(pipeweaver, tmp_path):
    rest = ["plan", "--cluster", "h100-sxm:8", "--dataset", "laion-2b", "--microbatches", "2", "--max-rounds", "1",
            "--json", "--out", tmp_path / "plan"]
    config = f"hf:{ROOT / 'tests/data/hf/qwen2.5-vl-7b.json'}"
    assert json.loads(pipeweaver(*rest, "--model", config))["layout_choice"]["tried"]
    fixed = json.loads(pipeweaver(*rest, "--model", config, "--tp", "4", "--pp", "2"))
    assert fixed["layout_choice"] is None
    half = json.loads(pipeweaver(*rest, "--model", config, "--tp", "4"))
    assert half["asked"]["tp"] == 4 and all(one["tp"] == 4 for one in half["layout_choice"]["tried"])
    # That of dip-vlm-s is for 16 GPUs and more.
    assert json.loads(pipeweaver(*rest, "--model", "dip-vlm-s"))["layout_choice"]["tried"]


@pytest.mark.parametrize("name, cluster", [("llama-3-8b", "h100-sxm:8"), ("qwen2.5-32b", "h100-sxm:32"),
                                           ("qwen2.5-vl-7b", "h100-sxm:8"), ("qwen2.5-vl-72b", "h100-sxm:64"),
                                           ("internvl2.5-38b", "h100-sxm:64")])
def test_public_configurations_plan_as_they_are(pipeweaver, tmp_path, name, cluster):
    images = "vl" in name
    samples = [(500 + 157 * i, [{"width": 448, "height": 448 + 56 * (i % 5)}] if images else []) for i in range(24)]
    plan = json.loads(pipeweaver("plan", "--model", f"hf:{ROOT / 'tests/data/hf' / (name + '.json')}",
                                 "--cluster", cluster, "--batch", write_batch(tmp_path, samples),
                                 "--max-rounds", "1", "--json", "--out", tmp_path / "plan"))
    assert plan["lower_bound_ns"] <= plan["makespan_ns"] <= min(
        b["makespan_ns"] for b in plan["baselines"] if not b["opponent"])


@pytest.mark.parametrize("text, message", [
    ('{"model_type":"mixtral"}',
     "model_type: the model type 'mixtral' cannot be used: mixtures of experts are not read"),
    ('{"model_type":"qwen22"}', "model_type: unknown model type 'qwen22'; did you mean 'qwen2'?"),
    ('{"model_type":"qwen2_5_vl"}', "the key 'vision_config' is missing"),
    ('{"architectures":["LlamaForCausalLM"]}', "the key 'model_type' is missing"),
])
def test_a_hugging_face_configuration_that_is_not_read_says_what_is_missing(pipeweaver, tmp_path, text, message):
    (tmp_path / "config.json").write_text(text)
    status, line = pipeweaver.fails("plan", "--model", f"hf:{tmp_path / 'config.json'}", "--cluster", "h100-sxm:8",
                                    *BATCH, "--out", tmp_path / "plan")
    assert (status, line) == (2, f"pipeweaver: {tmp_path / 'config.json'}: {message}")


def test_a_hugging_face_file_without_its_prefix_says_how_to_write_it(pipeweaver, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama"}))
    rest = ["--cluster", "h100-sxm:8", *BATCH, "--out", tmp_path / "out"]
    status, line = pipeweaver.fails("plan", "--model", path, *rest)
    assert status == 2 and line.endswith(f"{path}: is a Hugging Face configuration, no model file: write hf:{path}")
    for name in ("Qwen/Qwen2.5-VL-7B-Instruct", "hf:Qwen/Qwen2.5-VL-7B-Instruct"):
        status, line = pipeweaver.fails("plan", "--model", name, *rest)
        assert status == 2 and "nothing is downloaded" in line and "hf:FILE" in line
