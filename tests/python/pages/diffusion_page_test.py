"""docs/diffusion.md: its commands run one after the other, print what it shows, and leave what its launches need."""

import json

from absent import needed
from checkout import ROOT
from getting_started import blocks, follow, page_of

needed("pipeweaver.data.convert")

PAGE = page_of("docs/diffusion.md")


def test_the_page_goes_from_sizes_to_launches(pipeweaver, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    printed = follow(pipeweaver, tmp_path, PAGE)
    assert printed[2:4] == blocks("", PAGE)[:2]
    # What a model file leaves out is written with its default.
    shown = (tmp_path / "shown.json").read_text()
    assert '"min_tokens": 1' in shown and '"max_tokens": 400' in shown
    assert (tmp_path / "planned/replica-000/actions.json").is_file()
    # Clips of their own sizes: 21 or 13 latent frames of 52 x 30 patches.
    replicas = json.loads((tmp_path / "wan/assignment.json").read_text())["replicas"]
    tokens = sorted(one["tokens"] for replica in replicas for one in replica["microbatches"])
    assert len(replicas) == 2 and tokens == [13 * 30 * 52] * 8 + [21 * 52 * 30] * 8
    flags = (tmp_path / "flags/torchtitan.sh").read_text()
    assert "tensor_parallel_degree 1\n" in flags and "pipeline_parallel_degree 1\n" in flags
    assert "fsdp_reshard_after_forward never" in flags and "degree 16" in flags


def test_a_model_without_a_pipeline_is_told_of_no_schedule_and_whose_module_it_is(pipeweaver, tmp_path):
    out = pipeweaver("plan", "--model", "wan2.1-t2v-1.3b", "--cluster", "h100-sxm:1", "--tp", "1", "--pp", "1", "--cp",
                     "1", "--zero", "2", "--microbatch-tokens", "12000", "--dataset", "constant-0+5s",
                     "--global-batch", "4", "--now", "megatron,1f1b,full", "--target", "torchtitan", "--max-rounds",
                     "1", "--quiet", "--out", tmp_path / "plan")
    assert "recompute none (activation_checkpoint mode)" in " ".join(out.split())
    assert "source torchtitan/torchtitan.sh in your launch script" in " ".join(out.split())
    pipeweaver("emit", "--plan", tmp_path / "plan", "--target", "torchtitan", "--out", tmp_path / "flags")
    script = (tmp_path / "flags/torchtitan.sh").read_text()
    assert "has FLUX alone (--module flux)" in script and "\n# is your own" in script


def test_a_language_model_has_its_own_module_in_torchtitan(pipeweaver, tmp_path):
    pipeweaver("plan", "--model", "llama3-8b", "--cluster", "h100-sxm:8", "--tp", "8", "--pp", "1", "--dataset",
               "constant-4096", "--microbatches", "2", "--target", "torchtitan", "--max-rounds", "0", "--quiet",
               "--out", tmp_path / "plan")
    assert "FLUX" not in (tmp_path / "plan/torchtitan/torchtitan.sh").read_text()
