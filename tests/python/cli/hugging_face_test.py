"""plan --model hf:FILE: Hugging Face configurations are planned as they are, or refused with what is missing."""

import itertools
import json
import os
import re

import pytest
from checkout import ROOT
from cli_shared import BATCH, ONE_DRAW, digests


def test_a_hugging_face_configuration_plans_like_the_model_file_it_shows(pipeweaver, tmp_path):
    config = f"hf:{ROOT / 'tests/data/hf/qwen2.5-vl-7b.json'}"
    rest = ["--cluster", "h100-sxm:8", "--tp", "4", "--pp", "2", "--dataset", "vlm-mix", "--microbatches", "4",
            *ONE_DRAW, "--max-rounds", "1"]
    pipeweaver("plan", "--model", config, *rest, "--out", tmp_path / "hf")
    (tmp_path / "mine.json").write_text(pipeweaver("show", config))
    pipeweaver("plan", "--model", tmp_path / "mine.json", *rest, "--out", tmp_path / "own")
    name = "replica-000/solution.json"
    assert digests(tmp_path / "hf")[name] == digests(tmp_path / "own")[name]


def test_sizes_that_are_taken_from_defaults_stand_in_the_answers_first_lines(pipeweaver, tmp_path):
    config = f"hf:{ROOT / 'tests/data/hf/llava-1.5-7b.json'}"
    said = pipeweaver("plan", "--model", config, "--cluster", "h100-sxm:8", "--tp", "4", "--pp", "2", "--dataset",
                      "vlm-mix", "--microbatches", "4", *ONE_DRAW, "--max-rounds", "1", "--out", tmp_path / "plan")
    first = " ".join(said.partition("\nrung ")[0].split())
    assert " B parameters" in first and "llm 6." in first
    assert "text_config lacks these, which are taken from 'llama': " in first and "hidden_size 4096" in first
    assert json.loads((tmp_path / "plan/plan.json").read_text())["parameters"]["llm"] > 6e9


def test_a_model_without_a_published_layout_gets_one(pipeweaver, tmp_path):
    rest = ["plan", "--cluster", "h100-sxm:8", "--dataset", "laion-2b", "--microbatches", "2", *ONE_DRAW,
            "--max-rounds", "1", "--json", "--out", tmp_path / "plan"]
    config = f"hf:{ROOT / 'tests/data/hf/qwen2.5-vl-7b.json'}"
    assert json.loads(pipeweaver(*rest, "--model", config))["layout_choice"]["tried"]
    fixed = json.loads(pipeweaver(*rest, "--model", config, "--tp", "4", "--pp", "2"))
    assert fixed["layout_choice"] is None
    half = json.loads(pipeweaver(*rest, "--model", config, "--tp", "4"))
    assert half["asked"]["tp"] == 4 and all(one["tp"] == 4 for one in half["layout_choice"]["tried"])
    # That of dip-vlm-s is for 16 GPUs and more.
    assert json.loads(pipeweaver(*rest, "--model", "dip-vlm-s"))["layout_choice"]["tried"]


KEPT = sorted(path.stem for path in (ROOT / "tests/data/hf").glob("*.json"))
TOO_LARGE = "deepseek-v3"  # for the memory of 64 GPUs
# Every fourth one, a video and an audio model, unless all are asked for; a family's files lie beside each other.
TRIED = KEPT if os.environ.get("PIPEWEAVER_FULL") == "1" else [*KEPT[1::4], "hunyuanvideo", "qwen2-audio-7b"]


def batch_for(model, folder):
    """A batch of the items that the model takes, all samples alike."""
    taken = {modality for module in model["modules"] for modality in module["modalities"]}
    if "audio" in taken:
        (folder / "batch.jsonl").write_text("".join(
            json.dumps({"id": str(i), "text_tokens": 4000, "audio": [{"seconds": 30}]}) + "\n" for i in range(16)))
        return ["--batch", folder / "batch.jsonl"]
    text = "200" if "text" in taken else "0"
    sizes = f"{text}+1x448px" if "image" in taken else f"{text}+5s" if "video" in taken else "4096"
    return ["--dataset", f"constant-{sizes}", "--microbatches", "1", *ONE_DRAW]


def plan_arguments(pipeweaver, name, folder):
    config = f"hf:{ROOT / 'tests/data/hf' / (name + '.json')}"
    batch = batch_for(json.loads(pipeweaver("show", config)), folder)
    return ["plan", "--model", config, "--cluster", "h100-sxm:64", *batch, "--max-rounds", "1", "--json",
            "--out", folder / "plan"]


@pytest.mark.parametrize("name", [name for name in TRIED if name != TOO_LARGE])
def test_public_configurations_plan_as_they_are_on_64_gpus(pipeweaver, tmp_path, name):
    plan = json.loads(pipeweaver(*plan_arguments(pipeweaver, name, tmp_path)))
    assert 0 < plan["lower_bound_ns"] <= plan["makespan_ns"] <= min(
        b["makespan_ns"] for b in plan["baselines"] if not b["opponent"])


def test_of_the_kept_configurations_one_does_not_plan_and_says_the_way_out(pipeweaver, tmp_path):
    assert len(KEPT) >= 24 and TOO_LARGE in KEPT
    status, line = pipeweaver.fails(*plan_arguments(pipeweaver, TOO_LARGE, tmp_path))
    assert status == 4 and "no layout fits the memory" in line and "256 GPUs fit it" in line


def test_a_folder_of_a_diffusers_pipeline_is_read_by_its_transformer(pipeweaver, tmp_path):
    pipeline = tmp_path / "Flux-Mine"
    (pipeline / "transformer").mkdir(parents=True)
    (pipeline / "model_index.json").write_text('{"_class_name":"FluxPipeline"}')
    (pipeline / "transformer/config.json").write_text((ROOT / "tests/data/hf/flux.1-dev.json").read_text())
    assert json.loads(pipeweaver("show", f"hf:{pipeline}"))["name"] == "Flux-Mine"


@pytest.mark.parametrize("text, message", [
    ('{"model_type":"qwen22"}', "model_type: unknown model type 'qwen22'; did you mean 'qwen2'?; start from "
                                '"pipeweaver show qwen2.5-7b", or from what "pipeweaver show" prints of this file'),
    ('{"model_type":"qwen2_5_vl"}', "the key 'num_hidden_layers' is missing; start from "
                                    '"pipeweaver show qwen2.5-vl-7b"'),
    ('{"model_type":"llama","num_hiden_layers":4}',
     "there is 'num_hiden_layers' but no 'num_hidden_layers': is it misspelled?"),
    ('{"_class_name":"UNet2DConditionModel"}',
     "_class_name: unknown class 'UNet2DConditionModel'; known are FluxTransformer2DModel, Flux2Transformer2DModel, "
     "SD3Transformer2DModel, QwenImageTransformer2DModel, WanTransformer3DModel, WanModel, "
     'HunyuanVideoTransformer3DModel, HunyuanVideo15Transformer3DModel, CogVideoXTransformer3DModel, '
     'SkyReelsV2Transformer3DModel, WanVACETransformer3DModel, WanAnimateTransformer3DModel, '
     'LTXVideoTransformer3DModel, '
     'LTX2VideoTransformer3DModel, MochiTransformer3DModel, CosmosTransformer3DModel, Kandinsky5Transformer3DModel, '
     'PixArtTransformer2DModel, SanaTransformer2DModel, Lumina2Transformer2DModel, ZImageTransformer2DModel, '
     'ChromaTransformer2DModel, CogView4Transformer2DModel; start from '
     '"pipeweaver show qwen2.5-vl-7b", or from what "pipeweaver show" prints of this file'),
    ('{"architectures":["LlamaForCausalLM"]}',
     "the key 'model_type' is missing, and '_class_name' of diffusers as well; start from "
     '"pipeweaver show qwen2.5-vl-7b"'),
])
def test_a_hugging_face_configuration_that_is_not_read_says_what_is_missing(pipeweaver, tmp_path, text, message):
    (tmp_path / "config.json").write_text(text)
    status, line = pipeweaver.fails("plan", "--model", f"hf:{tmp_path / 'config.json'}", "--cluster", "h100-sxm:8",
                                    *BATCH, "--out", tmp_path / "plan")
    whole = f"pipeweaver: {tmp_path / 'config.json'}: {message}"
    begin, _, end = line.partition("…")  # of a line above 400 characters the middle is left out
    assert status == 2 and (line == whole or (whole.startswith(begin) and whole.endswith(end) and len(line) <= 400))


def test_a_configuration_of_a_kind_that_is_not_read_begins_a_model_file(pipeweaver, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "phi4mm", "hidden_size": 3072, "num_hidden_layers": 32, "lora": 320}))
    done = pipeweaver.run("show", f"hf:{config}")
    begun = json.loads(done.stdout)
    assert done.returncode == 2 and "the nearest that is read is 'phi3'" in done.stderr
    assert begun["not_read"] == ["lora"]
    assert begun["modules"][0]["architecture"]["layers"] == 32
    (tmp_path / "mine.json").write_text(done.stdout)
    status, line = pipeweaver.fails("show", tmp_path / "mine.json")
    assert status == 2 and "unknown key 'not_read'" in line


def test_a_hugging_face_file_without_its_prefix_says_how_to_write_it(pipeweaver, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama"}))
    rest = ["--cluster", "h100-sxm:8", *BATCH, "--out", tmp_path / "out"]
    status, line = pipeweaver.fails("plan", "--model", path, *rest)
    assert status == 2 and line.endswith(f"{path}: is a Hugging Face configuration, no model file: write hf:{path}")
    for name in ("Own/Qwen-of-Mine", "hf:Own/Qwen-of-Mine"):
        status, line = pipeweaver.fails("plan", "--model", name, *rest)
        assert status == 2 and "nothing is downloaded" in line and "hf:FILE" in line


def test_a_repository_of_the_catalogue_is_shown_without_a_file(pipeweaver):
    assert pipeweaver("show", "Qwen/Qwen2.5-VL-7B-Instruct") == pipeweaver("show", "qwen2.5-vl-7b")


def test_models_are_listed_family_by_family(pipeweaver):
    names = [line.split()[0] for line in pipeweaver("list", "models").splitlines()]
    families = [key for key, _ in itertools.groupby(re.match("[a-z]+", name)[0] for name in names)]
    assert families == sorted(set(families))
    assert names.index("qwen3-8b") < names.index("qwen3-32b") < names.index("qwen3-vl-8b")
