"""emit --target megatron: files from a plan and from launch files, what is refused, and pages tried literally."""

import json
import os
import re
import subprocess

import launches
import pytest
from checkout import ROOT

PLAN = ("plan", "--model", "dip-vlm-m", "--cluster", "h100-sxm:32", "--tp", 8, "--pp", 4, "--dataset", "vlm-mix",
        "--microbatches", 8, "--target", "megatron", "--max-rounds", 1)


def write(folder, launch):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "launch.json").write_text(json.dumps(launch))
    return folder


def emit(pipeweaver, plan, out):
    return pipeweaver.run("emit", "--plan", plan, "--target", "megatron", "--out", out)


def arrays(script):
    """The arrays of flags that a shell has after it sourced the script."""
    names = sorted(set(re.findall(r"^PIPEWEAVER_\w+", script.read_text(), re.MULTILINE)))
    show = "; ".join(f'printf "%s\\0" {name} "${{{name}[@]}}"; printf "\\n\\0"' for name in names)
    done = subprocess.run(["bash", "-euc", f'source "$1"; {show}', "-", script], capture_output=True, text=True,
                          check=True)
    rows = [row.split("\0") for row in done.stdout.split("\n\0") if row]
    return {row[0]: row[1:-1] for row in rows}


@pytest.fixture(scope="module")
def planned(pipeweaver, tmp_path_factory):
    folder = tmp_path_factory.mktemp("megatron") / "plan"
    done = pipeweaver.run(*PLAN, "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stderr  # how files are used is said there


def test_a_plan_has_the_files_and_emit_writes_the_same_again(pipeweaver, planned, tmp_path):
    folder, _ = planned
    assert emit(pipeweaver, folder, tmp_path).returncode == 0
    for name in ("megatron.sh", "megatron.yaml"):
        assert (tmp_path / name).read_bytes() == (folder / "megatron" / name).read_bytes()


def test_the_plan_says_how_its_files_are_used(planned):
    folder, printed = planned
    assert f"source {folder}/megatron/megatron.sh" in printed
    ladder = {rung["rung"]: rung for rung in json.loads((folder / "plan.json").read_text())["ladder"]}
    launch = json.loads((folder / "launch.json").read_text())
    rung = ladder[launch["rung"]]
    assert rung["files"][-2:] == ["megatron/megatron.sh", "megatron/megatron.yaml"]
    assert rung["step_ns"] == launch["step_ns"]
    assert rung["peak_bytes"] == max(launch["peak_bytes"])
    assert all("megatron/megatron.sh" not in other["files"] for other in ladder.values() if other is not rung)
    assert "megatron/megatron.sh" in (folder / "report.html").read_text()


def test_segments_may_expand_where_shapes_vary(pipeweaver, planned, tmp_path):
    folder, _ = planned
    line = "\nexport PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n"
    launch = json.loads((folder / "launch.json").read_text())
    assert launch["shapes"] > 1
    assert line in (folder / "megatron/megatron.sh").read_text()
    (tmp_path / "one").mkdir()
    (tmp_path / "one/launch.json").write_text(json.dumps({**launch, "shapes": 1}))
    assert emit(pipeweaver, tmp_path / "one", tmp_path / "out").returncode == 0
    assert line not in (tmp_path / "out/megatron.sh").read_text()


def test_the_flags_are_the_layout_that_was_planned(planned):
    folder, _ = planned
    launch = json.loads((folder / "launch.json").read_text())
    flags = arrays(folder / "megatron/megatron.sh")["PIPEWEAVER_FLAGS"]
    said = dict(zip(flags, flags[1:]))
    assert said["--tensor-model-parallel-size"] == str(launch["layout"]["tp"])
    assert said["--pipeline-model-parallel-size"] == str(launch["layout"]["pp"])
    assert said["--global-batch-size"] == str(sum(launch["microbatches"]))


def test_a_plan_for_another_target_is_emitted_too(pipeweaver, tmp_path):
    folder = tmp_path / "plan"
    wanted = [part for part in PLAN if part not in ("--target", "megatron")]
    pipeweaver(*wanted, "--now", "first-stage,1f1b", "--out", folder)
    assert (folder / "launch.json").exists() and not (folder / "megatron").exists()
    done = emit(pipeweaver, folder, tmp_path / "out")
    launch = json.loads((folder / "launch.json").read_text())
    spread = any(any(module["layers"][1:]) for module in launch["modules"] if module["role"] == "encoder")
    assert done.returncode == (4 if spread else 0), done.stderr


REFUSED = {
    "gpipe": ({"policy": "gpipe"}, "policy gpipe: Megatron has 1f1b and interleaved"),
    "chunks": ({"policy": "1f1b"}, "policy 1f1b with 2 chunks a rank"),
    "few": ({"microbatches": [3]}, "3 microbatches are fewer than 4 pipeline ranks"),
    "group": ({"microbatches": [10]}, "10 microbatches in groups of 4 leave 2"),
    "replicas": ({"microbatches": [8, 12], "layout.dp": 2}, "replicas have 8, 12 microbatches"),
    "by-rank": ({"recompute": "by-rank", "recompute_of_ranks": ["none", "full", "none", "none"]}, "recompute by-rank"),
    "offload": ({"recompute": "offload"}, "recompute offload"),
    "zero": ({"layout.zero": 3}, "zero 3: Megatron's distributed optimizer"),
    "encoder": ({"vit": [12, 12, 0, 0, 0, 0, 0, 0]}, "stage 1 has 12 layers of vit; encoders are built whole"),
    "adapters": ({"modules": [{"module": "llm", "role": "language", "trains": True,
                               "adapters": {"rank": 16, "on": ["qkv"], "apart": True},
                               "layers": [0, 3, 3, 3, 3, 3, 3, 2]}]},
                 "what is projected together has one pair of adapters in Megatron-Bridge and ms-swift"),
    "dealt": ({"dealt": "vit"}, "vit is dealt over all GPUs beside a pipeline of 4 ranks"),
}


def changed(changes):
    launch = launches.launch(0)
    layers = [0, 3, 3, 3, 3, 3, 3, 2]
    launch["layout"].update(pp=4, dp=1, zero=1)
    launch.update(chunks=2, policy="interleaved", microbatches=[8], recompute="none", peak_bytes=[1, 2, 3, 4],
                  language_letters="", modules=[{"module": "llm", "role": "language", "trains": True,
                                                 "layers": layers}])
    for key, value in changes.items():
        if key in ("vit", "dealt"):
            launch["modules"].insert(0, {"module": "vit", "role": "dealt" if key == "dealt" else "encoder",
                                         "trains": True, "layers": [] if key == "dealt" else value})
        elif key.startswith("layout."):
            launch["layout"][key.removeprefix("layout.")] = value
        else:
            launch[key] = value
    return launch


@pytest.mark.parametrize("case", REFUSED)
def test_what_megatron_does_not_run_is_refused_with_the_rule(pipeweaver, tmp_path, case):
    changes, rule = REFUSED[case]
    done = emit(pipeweaver, write(tmp_path / "plan", changed(changes)), tmp_path / "out")
    assert done.returncode == 4
    assert rule in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_what_is_not_refused_is_written(pipeweaver, tmp_path):
    assert emit(pipeweaver, write(tmp_path / "plan", changed({})), tmp_path / "out").returncode == 0


BAD = {
    "kind": ({"modules": [{"module": "llm", "role": "language", "kind": "cat", "trains": True, "layers": [1] * 8}]},
             "kind: is 'cat'"),
    "stages": ({"chunks": 3}, "chunks: is not 2"),
    "setting": ({"recompute": "some"}, "recompute: is 'some', must be one of none"),
    "peaks": ({"peak_bytes": [1]}, "peak_bytes: has 1 entries, allowed are 4"),
    "key": ({"extra": 1}, "unknown key 'extra'"),
    "format": ({"format": "pipeweaver-launch/2"}, "pipeweaver-launch/2"),
    "layers": ({"vit": [24]}, "vit has 1 stages, llm has 8"),
    "letters": ({"language_letters": "*- *-"}, "language_letters: has 2 layers"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_damaged_launch_file_is_named_with_its_key(pipeweaver, tmp_path, case):
    changes, why = BAD[case]
    done = emit(pipeweaver, write(tmp_path / "plan", changed(changes)), tmp_path / "out")
    assert done.returncode == 2
    assert "launch.json" in done.stderr and why in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_without_a_launch_says_so(pipeweaver, tmp_path):
    (tmp_path / "plan").mkdir()
    done = emit(pipeweaver, tmp_path / "plan", tmp_path / "out")
    assert done.returncode == 4 and "no rung that flags launch" in done.stderr


def test_names_cannot_put_commands_into_the_script(pipeweaver, tmp_path):
    launch = changed({"model": "m\ntouch evil; `touch evil` $(touch evil)", "way": "\"'\r\n touch evil"})
    assert emit(pipeweaver, write(tmp_path / "plan", launch), tmp_path / "out").returncode == 0
    subprocess.run(["bash", "-euc", "source out/megatron.sh"], cwd=tmp_path, check=True)
    assert not (tmp_path / "evil").exists()


def test_mimo_grids_are_said_where_items_are_dealt_without_a_pipeline(pipeweaver, tmp_path):
    launch = changed({"dealt": "vit", "layout.pp": 1, "chunks": 1, "has_pipeline": False, "policy": "1f1b",
                      "peak_bytes": [7]})
    launch["modules"][-1]["layers"] = [20]
    assert emit(pipeweaver, write(tmp_path / "plan", launch), tmp_path / "out").returncode == 0
    text = (tmp_path / "out/megatron.sh").read_text()
    gpus = launch["layout"]["tp"] * launch["layout"]["cp"]
    assert f"export MIMO_IMAGES_DP={gpus}\n" in text and "export MIMO_LANGUAGE_PP=1\n" in text


def test_the_line_that_checks_memory_plays_the_fullest_rank(pipeweaver, tmp_path):
    launch = changed({"peak_bytes": [1, 2, 9, 4], "layout.tp": 2, "layout.cp": 1})
    assert emit(pipeweaver, write(tmp_path / "plan", launch), tmp_path / "out").returncode == 0
    assert arrays(tmp_path / "out/megatron.sh")["PIPEWEAVER_FULLEST"][:2] == ["WORLD_SIZE=8", "RANK=4"]


def test_the_page_prints_what_it_shows(pipeweaver, tmp_path):
    page = (ROOT / "docs/megatron-flags.md").read_text()
    environment = {**os.environ, "PATH": f"{pipeweaver.path.resolve().parent}:{os.environ['PATH']}"}
    printed = ""
    for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if language == "sh":
            done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", text], cwd=tmp_path, env=environment,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, f"{text}{done.stderr}"
            printed = done.stdout + done.stderr
        elif language == "":
            missing = [line for line in text.splitlines() if line != "…" and line not in printed.splitlines()]
            assert missing == [], f"the page shows what the command does not print:\n{printed}"


def vision(layers, hidden, ffn, native=False):
    return {"layers": layers, "hidden": hidden, "ffn": ffn, "native_sizes": native}


SIGLIP, INTERNVIT = vision(27, 1152, 4304), vision(45, 3200, 12800)
MULTIMODAL = "examples/multimodal/train.py"
ENTRIES = {
    "text": ([], "pretrain_gpt.py", ""),
    "siglip": ([("vit", "encoder", "vit", SIGLIP)], MULTIMODAL, "--vision-model-type siglip,"),
    "clip": ([("vit", "encoder", "vit", vision(24, 1024, 4096))], MULTIMODAL,
             "--vision-model-type clip or internvit300M,"),
    "unsaid kind": ([("vit", "encoder", None, INTERNVIT)], MULTIMODAL, "--vision-model-type internvit,"),
    "unsaid sizes": ([("vit", "encoder", "vit", None)], None, "vit, whose sizes launch.json does not say:"),
    "native": ([("vit", "encoder", "vit", vision(27, 1152, 4304, native=True))], None,
               "vit, which takes images at their own sizes:"),
    "other": ([("vit", "encoder", "vit", vision(63, 1792, 15360))], None,
              "vit (63 layers, hidden 1792, feed-forward 15360):"),
    "two": ([("a", "encoder", "vit", SIGLIP), ("b", "encoder", "vit", INTERNVIT)], None,
            "models with 2 vision encoders:"),
    "audio": ([("ear", "encoder", "audio_encoder", None)], None, "encoders of other than images and clips:"),
    "generator": ([("paint", "generator", "dit", None)], None, "or other generator:"),
    "dit": ("dit", None, "or other generator:"),
}


@pytest.mark.parametrize("case", ENTRIES)
def test_the_script_names_the_entry_of_such_a_model_or_none(pipeweaver, tmp_path, case):
    modules, entry, said = ENTRIES[case]
    launch = changed({})
    language = launch["modules"][-1]
    language["kind"] = modules if isinstance(modules, str) else "llm"
    for name, role, kind, sizes in [] if isinstance(modules, str) else modules:
        layers = [0] * 7 + [4] if role == "generator" else [4] + [0] * 7
        one = {"module": name, "role": role, "trains": True, "layers": layers, **({"kind": kind} if kind else {}),
               **({"vision": sizes} if sizes else {})}
        launch["modules"].insert(len(launch["modules"]) if role == "generator" else 0, one)
    assert emit(pipeweaver, write(tmp_path / "plan", launch), tmp_path / "out").returncode == 0
    text = (tmp_path / "out/megatron.sh").read_text()
    assert re.findall("^PIPEWEAVER_ENTRY=(.*)$", text, re.MULTILINE) == ([entry] if entry else [])
    assert entry == "pretrain_gpt.py" or "pretrain_gpt.py" not in text
    assert said in text
    assert entry or "PIPEWEAVER_ENTRY is your own" in text


@pytest.mark.parametrize("model, entry", [("qwen2.5-vl-7b", None), ("deepseek-vl2", MULTIMODAL)])
def test_a_plan_says_of_its_encoder_what_the_entry_depends_on(pipeweaver, tmp_path, model, entry):
    pipeweaver("plan", "--model", model, "--cluster", "h100-sxm:16", "--tp", 4, "--pp", 1, "--dataset", "vlm-mix",
               "--microbatches", 4, "--target", "megatron", "--max-rounds", 1, "--out", tmp_path)
    text = (tmp_path / "megatron/megatron.sh").read_text()
    assert re.findall("^PIPEWEAVER_ENTRY=(.*)$", text, re.MULTILINE) == ([entry] if entry else [])


def test_overrides_of_a_recipe_are_the_keys_of_the_configuration_and_construct_the_same(pipeweaver, planned, tmp_path):
    folder, _ = planned
    overrides = arrays(folder / "megatron/megatron.sh")["PIPEWEAVER_BRIDGE"]
    keys, section = [], ""
    for line in (folder / "megatron/megatron.yaml").read_text().splitlines():
        if line and not line.lstrip().startswith("#"):
            section = section if line.startswith(" ") else line.removesuffix(":")
            keys += [f"{section}.{line.strip().replace(': ', '=', 1)}"] if line.startswith(" ") else []
    assert sorted(overrides) == sorted(keys) and len(keys) > 5
    assert {"model.bf16=true", "model.calculate_per_token_loss=true", "ddp.average_in_collective=false"} < set(keys)
    script = tmp_path / "launch.sh"
    script.write_text(f'source {folder}/megatron/megatron.sh\ntorchrun scripts/training/run_recipe.py --recipe mine '
                      '"${PIPEWEAVER_BRIDGE[@]}" model.seq_length=8192\n')
    done = pipeweaver.run("check", "--cluster", "h100-sxm:32", "--model", "dip-vlm-m", "--rules-only", script, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    launch = json.loads((folder / "launch.json").read_text())
    assert [json.loads(done.stdout)["stages"]] == [one["layers"] for one in launch["modules"]
                                                   if one["role"] == "language"]


def test_check_constructs_what_was_planned(pipeweaver, planned, tmp_path):
    folder, _ = planned
    launch = json.loads((folder / "launch.json").read_text())
    script = tmp_path / "launch.sh"
    script.write_text(f'source {folder}/megatron/megatron.sh\ntorchrun pretrain_gpt.py "${{PIPEWEAVER_FLAGS[@]}}" '
                      '"${PIPEWEAVER_SPLIT[@]}" --seq-length 8192 --max-position-embeddings 8192\n')
    done = pipeweaver.run("check", "--cluster", "h100-sxm:32", "--model", "dip-vlm-m", "--rules-only", script, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["constructs"]
    assert [answer["stages"]] == [one["layers"] for one in launch["modules"] if one["role"] == "language"]


def test_a_launch_in_another_layout_has_an_assignment_of_its_own(pipeweaver, tmp_path):
    """Which the rung's command, with it in place of a packing, takes to the nanosecond."""
    plan = ["plan", "--model", "qwen2.5-vl-7b", "--cluster", "h100-sxm:16", "--tp", "2", "--dataset", "vlm-mix",
            "--target", "megatron", "--encoders", "split", "--max-rounds", "1", "--out", tmp_path / "plan"]
    pipeweaver(*plan, "--pp", "2", "--microbatches", "4")
    rungs = {rung["rung"]: rung for rung in json.loads((tmp_path / "plan/plan.json").read_text())["ladder"]}
    assert rungs["data"]["files"] == ["assignment.json"]
    layout, file = rungs["layout"], tmp_path / "plan/launch-assignment.json"
    assert layout["files"][0] == "launch-assignment.json" and "--dp 8" in layout["command"]
    assigned = json.loads(file.read_text())
    microbatches = [one for replica in assigned["replicas"] for one in replica["microbatches"]]
    assert [len(replica["microbatches"]) for replica in assigned["replicas"]] == [2] * 8
    assert sum(one["loss_weight"] for one in microbatches) == pytest.approx(1)
    units = [unit for one in microbatches for unit in one["units"]]
    assert sum(len(unit["items"]) for unit in units) > 0
    words = layout["command"].replace(" --equal-microbatches", "").split()[1:]
    emulated = json.loads(pipeweaver(*words, "--assigned", file, "--json"))
    assert emulated["step_ns"] == layout["step_ns"]
    # A plan in that layout has no other.
    pipeweaver(*plan, "--pp", "1", "--microbatches", "2")
    assert not file.exists()
