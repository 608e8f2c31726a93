"""What emit --target megatron writes, through Megatron Core's own parser, configuration and layer counts."""

import json
import subprocess
import warnings

import launches
import pytest
import torch
import yaml
from checkout import ROOT

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    parallel_state = pytest.importorskip("megatron.core.parallel_state")
    from megatron.core.transformer.transformer_block import get_num_layers_to_build
    from megatron.core.transformer.transformer_config import TransformerConfig
    from megatron.core.transformer.transformer_layer import get_transformer_layer_offset

CASES = 200
FIRST_LAST = {"--decoder-first-pipeline-num-layers": "num_layers_in_first_pipeline_stage",
              "--decoder-last-pipeline-num-layers": "num_layers_in_last_pipeline_stage",
              "--num-virtual-stages-per-pipeline-rank": "virtual_pipeline_model_parallel_size"}


@pytest.fixture(scope="module")
def written(pipeweaver, tmp_path_factory):
    """Per case its launch, arrays of flags and configuration."""
    root = tmp_path_factory.mktemp("launches")
    cases = [launches.launch(seed) for seed in range(CASES)]
    for i, launch in enumerate(cases):
        (root / f"{i}").mkdir()
        (root / f"{i}/launch.json").write_text(json.dumps(launch))
    script = f"""for i in $(seq 0 {CASES - 1}); do
      "$1" emit --plan $i --target megatron --out out/$i > /dev/null
      unset ${{!PIPEWEAVER_*}}; source out/$i/megatron.sh
      for name in ${{!PIPEWEAVER_*}}; do
        declare -n array=$name
        printf "%s\\t" $i $name "${{array[@]}}"; printf "\\n"
      done
    done"""
    done = subprocess.run(["bash", "-eu", "-c", script, "-", pipeweaver.path.resolve()], cwd=root,
                          capture_output=True, text=True, check=True)
    arrays = [{} for _ in cases]
    for line in done.stdout.splitlines():
        number, name, *flags = line.split("\t")[:-1]
        arrays[int(number)][name] = flags
    configurations = [yaml.safe_load((root / f"out/{i}/megatron.yaml").read_text()) for i in range(CASES)]
    return list(zip(cases, arrays, configurations))


def planned(launch):
    """Layers of each stage of the language model."""
    return next(module["layers"] for module in launch["modules"] if module["role"] == "language")


def config(launch, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TransformerConfig(num_layers=sum(planned(launch)), hidden_size=64, num_attention_heads=8,
                                 num_moe_experts=8 if "E" in launch["language_letters"] else None,
                                 add_bias_linear=False, pipeline_dtype=torch.bfloat16,
                                 pipeline_model_parallel_size=launch["layout"]["pp"], **more)


def built(of):
    """First layer and number of layers of each chunk of each rank, chunk by chunk, as Megatron Core builds them."""
    ranks, chunks = of.pipeline_model_parallel_size, of.virtual_pipeline_model_parallel_size
    parallel_state.set_virtual_pipeline_model_parallel_world_size(chunks)
    stages = []
    for chunk in range(chunks or 1):
        for rank in range(ranks):
            parallel_state.set_pipeline_model_parallel_rank(rank)
            at = {"vp_stage": chunk if chunks else None, "pp_rank": rank}
            stages.append((get_transformer_layer_offset(of, **at), get_num_layers_to_build(of, **at)))
    parallel_state.set_virtual_pipeline_model_parallel_world_size(None)
    parallel_state.set_pipeline_model_parallel_rank(None)
    return stages


def expected(launch):
    layers = planned(launch)
    return [(sum(layers[:s]), layers[s]) for s in range(len(layers))]


def pairs(flags):
    return dict(zip(flags[::2], flags[1::2]))


def test_layout_strings_build_every_chunk_as_planned(written):
    for launch, arrays, _ in written:
        layout = pairs(arrays["PIPEWEAVER_SPLIT"])["--pipeline-model-parallel-layout"]
        of = config(launch, pipeline_model_parallel_layout=layout)
        assert (of.virtual_pipeline_model_parallel_size or 1) == launch["chunks"]
        assert built(of) == expected(launch), layout


def test_counts_of_the_first_and_the_last_rank_build_the_same(written):
    said = 0
    for launch, arrays, _ in written:
        if "PIPEWEAVER_SPLIT_FIRST_LAST" not in arrays:
            continue
        flags = pairs(arrays["PIPEWEAVER_SPLIT_FIRST_LAST"])
        of = config(launch, **{FIRST_LAST[flag]: int(value) for flag, value in flags.items()})
        assert built(of) == expected(launch), flags
        of_swift = {"--num-virtual-stages-per-pipeline-rank": "--virtual_pipeline_model_parallel_size"}
        assert pairs(arrays["PIPEWEAVER_SPLIT_SWIFT"]) == {
            of_swift.get(flag, "--" + flag[2:].replace("-", "_")): value for flag, value in flags.items()}
        said += 1
    assert said > CASES // 2


def test_a_hybrid_pattern_has_the_layers_of_each_stage(written):
    for launch, arrays, _ in written:
        pattern = pairs(arrays["PIPEWEAVER_SPLIT_HYBRID"])["--hybrid-layer-pattern"]
        assert [len(stage) // 2 for stage in pattern.split("|")] == planned(launch)
        assert pattern.replace("|", "") == launch["language_letters"].replace(" ", "")


def test_loongforge_lists_have_the_layers_of_each_rank_or_stage(written):
    of_stages = 0
    for launch, arrays, _ in written:
        flags, ranks, chunks = pairs(arrays["PIPEWEAVER_SPLIT_LOONGFORGE"]), launch["layout"]["pp"], launch["chunks"]
        if "--custom-virtual-pipeline-layers" in flags:
            layers = [int(one) for one in flags["--custom-virtual-pipeline-layers"].split(",")]
            of_stages += 1
        else:
            of_rank = [int(one) for one in flags["--custom-pipeline-layers"].split(",")]
            layers = [all_ // chunks + (chunk >= chunks - all_ % chunks) for chunk in range(chunks) for all_ in of_rank]
        assert layers == planned(launch)
        assert len(layers) == ranks * chunks
    assert of_stages > 0


def test_configurations_construct_with_the_keys_as_they_are(written):
    for launch, _, configuration in written:
        # What is frozen is said to Megatron-Bridge's models with encoders.
        keys = {key: value for key, value in configuration["model"].items() if not key.startswith("freeze_")}
        keys.pop("pipeline_model_parallel_size")
        keys["num_attention_heads"] = 8
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            of = config(launch, params_dtype=torch.bfloat16,
                        **{key: value for key, value in keys.items() if key != "num_attention_heads"})
        assert built(of) == expected(launch)
        assert of.microbatch_group_size_per_vp_stage == launch["layout"]["pp"]
        wanted = {"none": None, "core-attention": "selective"}
        assert of.recompute_granularity == wanted.get(launch["recompute"], "full")
        if launch["recompute"].startswith("blocks:"):
            assert (of.recompute_method, of.recompute_num_layers) == ("block", int(launch["recompute"][7:]))


def test_flags_and_configuration_say_the_same(written):
    for launch, arrays, configuration in written:
        flags = arrays["PIPEWEAVER_FLAGS"]
        values = {flag: flags[i + 1] if i + 1 < len(flags) and not flags[i + 1].startswith("--") else None
                  for i, flag in enumerate(flags) if flag.startswith("--")}
        model = configuration["model"]
        for degree in ("tensor_model_parallel_size", "pipeline_model_parallel_size"):
            assert values["--" + degree.replace("_", "-")] == str(model[degree])
        assert values["--global-batch-size"] == str(sum(launch["microbatches"]))
        assert configuration["train"]["global_batch_size"] == sum(launch["microbatches"])
        assert ("--use-distributed-optimizer" in values) == (launch["layout"]["zero"] == 1)
        assert ("--sequence-parallel" in values) == (launch["layout"]["tp"] > 1)
        assert ("--microbatch-group-size-per-virtual-pipeline-stage" in values) == (launch["chunks"] > 1)


def test_the_version_is_the_one_that_the_page_names():
    import megatron.core
    assert f"Megatron Core {megatron.core.__version__}" in (ROOT / "docs/megatron-flags.md").read_text()
