"""What the commands say and take of a user's own sizes: resized images, batches, files of models, latents."""

import json

from check_test import DENSE, LAYOUT
from checkout import ROOT

QWEN = ROOT / "tests/data/hf/qwen2.5-vl-7b.json"
RESIZED = "3 of 4 images were resized by the model's rule (256 to 1280 tokens) and have 4.0x fewer tokens"
LAYOUT_OF_4 = ["--cluster", "h100-sxm:4", "--tp", "2", "--pp", "2"]


def batch(folder, large=3, fitting=1):
    sizes = [(2800, 1400)] * large + [(560, 560)] * fitting
    lines = [json.dumps({"id": str(i), "text_tokens": 100, "images": [{"width": w, "height": h}]})
             for i, (w, h) in enumerate(sizes)]
    (folder / "batch.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "batch.jsonl"


def test_images_that_the_rule_resizes_are_said_under_the_ladder(pipeweaver, tmp_path):
    own = batch(tmp_path)
    rest = [*LAYOUT_OF_4, "--batch", own]
    ladder = pipeweaver("plan", "--model", "qwen2.5-vl-7b", *rest, "--max-rounds", "1", "--out", tmp_path / "plan")
    assert RESIZED in " ".join(ladder.split()) and "\nsizes     3 of 4" in ladder
    plan = json.loads((tmp_path / "plan/plan.json").read_text())
    assert any(one.startswith(RESIZED) for one in plan["asked"]["assumed"])
    assert "\nassumed: " + RESIZED in pipeweaver("emulate", "--model", "qwen2.5-vl-7b", *rest)
    # Whoever edits the rule reads the edited one.
    edited = tmp_path / "edited.json"
    edited.write_text(pipeweaver("show", "qwen2.5-vl-7b").replace('"max_tokens": 1280', '"max_tokens": 2560'))
    said = pipeweaver("emulate", "--model", edited, *rest)
    assert "rule (256 to 2560 tokens) and have 2.0x fewer" in said and "1280" not in said.partition("assumed")[2]


def test_a_batch_that_is_not_resized_is_not_mentioned(pipeweaver, tmp_path):
    said = pipeweaver("emulate", "--model", "qwen2.5-vl-7b", *LAYOUT_OF_4, "--batch", batch(tmp_path, 0, 4))
    assert "resized" not in said


def test_where_nothing_is_better_the_ladder_says_to_keep_what_runs(pipeweaver, tmp_path):
    small = ROOT / "examples/small-vlm.json"
    (tmp_path / "batch.jsonl").write_text('{"id":"a","text_tokens":100,"images":[{"width":56,"height":56}]}\n')
    ladder = pipeweaver("plan", "--model", small, "--cluster", "h100-sxm:1", "--tp", "1", "--pp", "1", "--batch",
                        tmp_path / "batch.jsonl", "--max-rounds", "1", "--out", tmp_path / "plan")
    assert "\ndo        now: stay with the best known today, no other rung is shorter\n" in ladder


def test_recommend_says_resized_images_and_takes_context_parallel_degrees(pipeweaver, tmp_path):
    rest = ["recommend", "--model", "qwen2.5-vl-7b", "--batch", batch(tmp_path, 12, 4), "--tokens", "1B", "--clusters",
            "h100-sxm", "--gpus", "8", "--prices", "h100-sxm=2.5", "--cp", "1", "--max-rounds", "1"]
    assert "\nsizes: 12 of 16 images were resized by the model's rule" in pipeweaver(*rest)


def clips(folder, *sizes):
    path = folder / "clips.jsonl"
    path.write_text("".join(json.dumps({"id": str(i), "text_tokens": 0, "videos": [
        {"frames": 81, "fps": 16, "role": "target", **size}]}) + "\n" for i, size in enumerate(sizes)))
    return path


def test_video_transformers_of_hugging_face_keep_the_sizes_of_clips(pipeweaver, tmp_path):
    wide, tall = {"width": 832, "height": 480}, {"width": 480, "height": 832}
    for name, side, frames in (("wan2.1-t2v-14b", 16, 21), ("hunyuanvideo", 16, 21), ("wan2.2-ti2v-5b", 32, 21)):
        config = f"hf:{ROOT / 'tests/data/hf' / (name + '.json')}"
        own = tmp_path / f"{name}.json"
        own.write_text(pipeweaver("show", config))
        assert {"width", "height"} & set(json.loads(own.read_text())["video"]) == set()
        positions = frames * (832 // side) * (480 // side)
        for model in (config, own):
            folder = tmp_path / "plan"
            pipeweaver("plan", "--model", model, "--cluster", "h100-sxm:32", "--tp", "8", "--pp", "4", "--batch",
                       clips(tmp_path, wide, tall), "--max-rounds", "0", "--out", folder)
            replica, = json.loads((folder / "assignment.json").read_text())["replicas"]
            assert sum(one["tokens"] for one in replica["microbatches"]) == 2 * positions


def test_a_clip_without_a_size_is_refused_where_sizes_are_kept(pipeweaver, tmp_path):
    config = f"hf:{ROOT / 'tests/data/hf/wan2.1-t2v-14b.json'}"
    asked = ["plan", "--cluster", "h100-sxm:32", "--tp", "8", "--pp", "4", "--max-rounds", "0", "--out",
             tmp_path / "plan", "--batch", clips(tmp_path, {"width": 832, "height": 480}, {"height": 480})]
    assert pipeweaver.fails(*asked, "--model", config) == (
        2, f"pipeweaver: {tmp_path}/clips.jsonl:2: videos[0]: lacks width or height, and the video rule of the model "
           "has neither: allowed are both, 1 to 100000 pixels, or tokens and patches in place of the size")
    assert not (tmp_path / "plan").exists()
    pipeweaver(*asked, "--model", "wan2.1-t2v-14b")  # which scales clips
    status, line = pipeweaver.fails(*asked[:-2], "--batch", clips(tmp_path, {"width": 832, "height": 480}), "--model",
                                    config, "--microbatch-tokens", "20000")
    assert status == 2 and line.endswith("of 32760 tokens, a microbatch of 'wan2.1-t2v-14b' holds 20000 "
                                         "(--microbatch-tokens or its default; --too-long own packs it alone)")


def test_support_and_check_take_a_batch_file(pipeweaver, tmp_path):
    own = batch(tmp_path, 0, 64)
    said = pipeweaver("support", "--model", "qwen2.5-vl-7b", "--cluster", "h100-sxm:8", "--batch", own)
    assert said.startswith("yes: qwen2.5-vl-7b on 8 GPUs") and f"batch {own}" in said.splitlines()[0]
    said = pipeweaver("support", "--model", f"hf:{ROOT / 'tests/data/hf/qwen3-4b.json'}", "--cluster", "h200-sxm")
    assert " on 1 GPU of h200-sxm, " in said.splitlines()[0]
    assert "\nthe model's sizes: as its file says them\n" in said
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"id": str(i), "text_tokens": 2000 + i}) + "\n" for i in range(64)))
    launch = ["check", "--cluster", "h100-sxm:64", "--megatron-args", DENSE + LAYOUT]
    answer = json.loads(pipeweaver(*launch, "--batch", texts, "--json"))
    assert answer["fits"] is True
    for command in (launch, ["support", "--model", "llama3-8b", "--cluster", "h100-sxm:8"]):
        status, line = pipeweaver.fails(*command, "--batch", texts, "--dataset", "c4")
        assert (status, line) == (2, "pipeweaver: --batch, --dataset: allowed is one of the two")


def test_show_prints_files_and_folders_of_models(pipeweaver, tmp_path):
    (tmp_path / "Qwen").mkdir()
    (tmp_path / "Qwen/config.json").write_text(QWEN.read_text())
    for name in (QWEN, tmp_path / "Qwen", tmp_path / "Qwen/config.json"):
        assert json.loads(pipeweaver("show", name))["format"] == "pipeweaver-model/1"
    own = tmp_path / "own.json"
    own.write_text(pipeweaver("show", "dip-vlm-s"))
    assert pipeweaver("show", own) == own.read_text()
    status, line = pipeweaver.fails("show", tmp_path / "none.json")
    assert status == 3 and "none.json: cannot be read" in line


def test_microbatches_of_a_file_are_not_drawn(pipeweaver, tmp_path):
    status, line = pipeweaver.fails("plan", "--model", "qwen2.5-vl-7b", *LAYOUT_OF_4, "--batch", batch(tmp_path),
                                    "--global-batch", "64mb", "--out", tmp_path / "plan")
    assert status == 2 and line.endswith("--global-batch: is 64mb, but of a batch file samples are drawn; allowed is a "
                                         "number of samples")


def test_latents_of_a_given_batch_are_packed_small(pipeweaver):
    rest = ["emulate", "--model", "flux.1-dev", "--cluster", "h100-sxm:8", "--cp", "4", "--tp", "1", "--pp", "2",
            "--dataset", "constant-0+1x1024px", "--zero", "3", "--recompute", "full", "--json"]
    given = json.loads(pipeweaver(*rest, "--global-batch", "64"))
    drawn = json.loads(pipeweaver(*rest, "--global-batch", "4mb"))
    assert (given["asked"]["microbatch_tokens"], drawn["asked"]["microbatch_tokens"]) == (16_384, 131_072)
