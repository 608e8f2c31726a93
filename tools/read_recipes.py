#!/usr/bin/env python3
"""Reads what recipes of a framework set, and writes them as a table for frameworks/.

    tools/read_recipes.py bridge FOLDER VERSION > frameworks/bridge/recipes.txt
    tools/read_recipes.py titan FOLDER VERSION > frameworks/titan/configurations.txt
    tools/read_recipes.py titan-toml FOLDER VERSION > frameworks/titan/train_configs.txt

FOLDER is where the package's Python lies: `src` of Megatron-Bridge, or the unpacked wheel of torchtitan; for versions
of torchtitan before 0.3, which have TOML, the repository. The functions
that make configurations are called; all that they import beside the recipes themselves is replaced by records, which
keep what they are given, so that neither torch nor the framework is needed. A recipe that asks such a record for what
it was not given is left out, and told.

The table's first line is the package with its version, the second the names of settings, parted by blanks. Each line
after these is a recipe: its names, parted by blanks; its model, as its repository is called; and what it sets, as the
number of a setting in the second line, '=' and the value. A layout of a pipeline that holds for other degrees has these
behind its name: "@16x2" for 16 ranks of 2 chunks; a global batch that grows with the replicas its GPUs: "@64".
"""

import argparse
import collections
import importlib
import importlib.abc
import importlib.machinery
import inspect
import pathlib
import re
import sys
import tomllib
import types
import typing

# What is kept of a configuration: settings of launch/read/megatron_table.cpp and frameworks/memory_settings.cpp.
MODEL = (
    "tensor_model_parallel_size pipeline_model_parallel_size context_parallel_size expert_model_parallel_size "
    "expert_tensor_parallel_size virtual_pipeline_model_parallel_size pipeline_model_parallel_layout "
    "num_layers_in_first_pipeline_stage num_layers_in_last_pipeline_stage account_for_embedding_in_pipeline_split "
    "account_for_loss_in_pipeline_split hybrid_layer_pattern microbatch_group_size_per_vp_stage "
    "overlap_p2p_comm batch_p2p_comm sequence_parallel gradient_accumulation_fusion cp_comm_type "
    "num_layers hidden_size ffn_hidden_size num_attention_heads num_query_groups kv_channels seq_length vocab_size "
    "mtp_num_layers num_moe_experts moe_router_topk moe_ffn_hidden_size moe_token_dispatcher_type moe_grouped_gemm "
    "moe_shared_expert_overlap overlap_moe_expert_parallel_comm delay_wgrad_compute recompute_granularity "
    "recompute_method recompute_num_layers recompute_modules fine_grained_activation_offloading offload_modules "
    "cpu_offloading cpu_offloading_num_layers bf16 fp16 fp8 fp8_param fp8_param_gather cross_entropy_loss_fusion "
    "cross_entropy_fusion_impl hidden_dropout tp_comm_overlap freeze_language_model freeze_vision_model "
    "freeze_vision_projection moe_pad_expert_input_to_capacity cuda_graph_impl transformer_impl"
).split()
SIZES = (
    "num_layers hidden_size ffn_hidden_size num_attention_heads num_query_groups kv_channels vocab_size "
    "num_moe_experts moe_router_topk moe_ffn_hidden_size hybrid_layer_pattern"
).split()
OTHERS = {
    "train": "micro_batch_size global_batch_size".split(),
    "dataset": "seq_length sequence_length".split(),
    "ddp": "use_distributed_optimizer overlap_grad_reduce overlap_param_gather grad_reduce_in_fp32 "
    "data_parallel_sharding_strategy num_distributed_optimizer_instances use_megatron_fsdp".split(),
    "optimizer": "optimizer use_precision_aware_optimizer main_grads_dtype main_params_dtype exp_avg_dtype "
    "exp_avg_sq_dtype optimizer_cpu_offload optimizer_offload_fraction use_distributed_optimizer".split(),
    "dist": "use_megatron_fsdp use_torch_fsdp2".split(),
    "comm_overlap": "overlap_p2p_comm overlap_moe_expert_parallel_comm delay_wgrad_compute".split(),
}
# As the reader has what is not said: such values need no place. Sequence and batch are always said.
USUAL = {
    "1": "tensor_model_parallel_size pipeline_model_parallel_size context_parallel_size expert_model_parallel_size "
    "num_distributed_optimizer_instances".split(),
    "false": "sequence_parallel account_for_embedding_in_pipeline_split account_for_loss_in_pipeline_split "
    "cpu_offloading "
    "moe_shared_expert_overlap overlap_moe_expert_parallel_comm delay_wgrad_compute overlap_p2p_comm fp16 "
    "fine_grained_activation_offloading overlap_grad_reduce overlap_param_gather use_precision_aware_optimizer "
    "freeze_language_model freeze_vision_model freeze_vision_projection use_megatron_fsdp use_torch_fsdp2 "
    "optimizer_cpu_offload moe_pad_expert_input_to_capacity fp8_param fp8_param_gather tp_comm_overlap "
    "gradient_accumulation_fusion".split(),
    "float32": "main_grads_dtype main_params_dtype exp_avg_dtype exp_avg_sq_dtype".split(),
    "true": "bf16 batch_p2p_comm cross_entropy_loss_fusion".split(),
    "native": ["cross_entropy_fusion_impl"],
    "[]": "offload_modules recompute_modules".split(),
    "no_shard": ["data_parallel_sharding_strategy"],
    "adam": ["optimizer"],
    "none": ["cuda_graph_impl"],
    "transformer_engine": ["transformer_impl"],
}


class Unreadable(Exception):
    """A recipe asks for what is not known without the framework."""


class Record:
    """What a stand-in makes: keeps what it is given. A member that nobody gave is a record, too."""

    def __init__(self, maker, args=(), kwargs=None):
        object.__setattr__(self, "_maker", maker)
        object.__setattr__(self, "_args", args)
        self.__dict__.update(kwargs or {})

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        if name in USUALLY:
            return USUALLY[name]
        member = Record("?" + name)
        self.__dict__[name] = member
        return member

    def __call__(self, *args, **kwargs):
        return Record(self._maker, args or self._args, kwargs)

    def known(self, name):
        """A member that was given; None: nobody gave it."""
        value = self.__dict__.get(name)
        return None if isinstance(value, Record) and value._maker.startswith("?") else value

    def _refuse(self, *_):
        raise Unreadable(f"asks for {self._maker.lstrip('?')}")

    def __bool__(self):
        return self._refuse() if self._maker.startswith("?") else True

    __iter__ = __lt__ = __le__ = __gt__ = __ge__ = __add__ = __mul__ = __sub__ = __len__ = _refuse
    __floordiv__ = __truediv__ = __mod__ = __int__ = __float__ = __radd__ = __rmul__ = _refuse
    __getitem__ = __contains__ = _refuse


class Maker:
    """Stands for a class or function of the framework: called, it makes a record."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Maker(f"{self._name}.{name}")

    def __call__(self, *args, **kwargs):
        if self._name.endswith("AutoBridge.from_hf_pretrained"):
            return Bridge(args[0] if args else kwargs.get("hf_model_id", kwargs.get("hf_path")))
        if self._name.endswith("Provider"):
            return Record(self._name, args, {**CORE, **kwargs})
        # A decorator leaves what it decorates.
        if len(args) == 1 and not kwargs and inspect.isfunction(args[0]):
            return args[0]
        return Record(self._name, args, kwargs)

    def __or__(self, _):
        return self

    __ror__ = __or__

    def __getitem__(self, _):
        return self

    def keys(self):
        return ()

    def __mro_entries__(self, _):
        return ()

    def __instancecheck__(self, one):
        return isinstance(one, Record) and one._maker.rsplit(".", 1)[-1] == self._name.rsplit(".", 1)[-1]

    def __repr__(self):
        return self._name


# Of Megatron Core's configuration what recipes ask for, as it is where nobody sets it (core_v0.18).
CORE = {
    "tensor_model_parallel_size": 1,
    "pipeline_model_parallel_size": 1,
    "context_parallel_size": 1,
    "expert_model_parallel_size": 1,
    "virtual_pipeline_model_parallel_size": None,
    "sequence_parallel": False,
    "apply_rope_fusion": False,
    "use_transformer_engine_op_fuser": False,
    "cuda_graph_impl": "none",
    "cuda_graph_scope": None,
    "cuda_graph_modules": None,
    "moe_flex_dispatcher_backend": None,
}


# The same of other parts of a configuration, whatever part asks.
USUALLY = {
    "te_rng_tracker": False,
    "use_te_rng_tracker": False,
    "cuda_graph_scope": None,
    "use_transformer_engine_op_fuser": False,
    "rotary_base": 10000.0,
    "enable": False,
    "components": ["model", "loss"],
}


class Bridge:
    """AutoBridge of a model in a repository."""

    def __init__(self, model):
        self.model = model

    def to_megatron_provider(self, **_):
        experts = {"moe_token_dispatcher_type": "alltoall", "moe_grouped_gemm": True}  # of all models/*_bridge.py
        return Record("provider", (), {**CORE, **experts, "hf_model": self.model})


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports that are neither Python's own nor below `real` become modules of makers."""

    def __init__(self, folder, real):
        self.folder, self.real = folder, real

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in sys.stdlib_module_names:
            return None
        if any(name == one or name.startswith(one + ".") for one in self.real):
            return importlib.machinery.PathFinder.find_spec(name, path)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__ = [str(self.folder / pathlib.Path(*spec.name.split(".")))]
        module.__getattr__ = lambda attribute: self.made(spec.name, attribute)
        return module

    @staticmethod
    def made(module, attribute):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return Maker(f"{module}.{attribute}")

    def exec_module(self, module):
        pass


def text_of(value):
    """A value as the table has it; None: it is no plain one."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, (int, float, str)):
        return str(value)
    if isinstance(value, Maker):
        return value._name.rsplit(".", 1)[-1]
    if isinstance(value, (list, tuple)):
        parts = [text_of(one) for one in value]
        return None if None in parts else "[" + ",".join(parts) + "]"
    return None


LETTERS = {"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L", "encoder": "e"}


def layout_text(stages):
    """A pipeline layout in Megatron-LM's letters: "Ettt|tttt|tttL"."""
    if isinstance(stages, str) or stages is None:
        return stages
    return "|".join(squeezed("".join(LETTERS[str(one).rsplit(".", 1)[-1]] for one in stage)) for stage in stages)


def squeezed(letters):
    """Runs of a letter as "t*7"."""
    text, at = "", 0
    while at < len(letters):
        end = at
        while end < len(letters) and letters[end] == letters[at]:
            end += 1
        text += letters[at] if end - at == 1 else f"{letters[at]}*{end - at}"
        at = end
    return text


def is_usual(name, text):
    return text == "null" or name in USUAL.get(text, ())


def kept(section, names, record):
    found = {}
    for name in names:
        if not isinstance(record, Record) or name not in record.__dict__:
            continue
        value = record.__dict__[name]
        text = layout_text(value) if name == "pipeline_model_parallel_layout" else text_of(value)
        if text is None and value is not None and not (isinstance(value, Record) and value._maker.startswith("?")):
            raise Unreadable(f"{section}.{name} is {value!r}")
        if text is not None and not is_usual(name, text):
            found[f"{section}.{name}"] = text.replace(" ", "")
    return found


def layouts_of(model):
    """Layouts that a recipe has by degrees: "PPxVP" and layout."""
    build = model.__dict__.get("_pipeline_model_parallel_layout_builder")
    found = []
    for pp in (1, 2, 4, 6, 8, 12, 16, 32, 64) if build else ():
        for vp in (1, 2, 3, 4, 5, 6, 7, 8):
            try:
                found.append((f"{pp}x{vp}", layout_text(build(pp, None if vp == 1 else vp))))
            except (ValueError, KeyError):
                continue
    return [one for one in found if one[1]]


def precision_of(value):
    """The name of a mixed precision, and whether gradients are added up in 32 bits: it overrides what ddp says."""
    if isinstance(value, str):
        return value.replace("-", "_"), True
    if not isinstance(value, Record):
        return "null", True
    name = value._maker.rsplit(".", 1)[-1]
    if name == "get_mixed_precision_config":
        name = str(value._args[0]).replace("-", "_")
    if name == "MixedPrecisionConfig":
        name = "bf16_mixed" if not value.known("fp8") and not value.known("fp4") else "own_of_8_bits"
    return name, value.known("grad_reduce_in_fp32") is not False


def put_precision(cfg, settings):
    name, in_32_bits = precision_of(cfg.__dict__.get("mixed_precision"))
    settings.pop("ddp.grad_reduce_in_fp32", None)
    if name == "null":
        settings["model.bf16"] = "false"
    elif name != "bf16_mixed":
        settings["mixed_precision"] = name
    if not in_32_bits:
        settings["ddp.grad_reduce_in_fp32"] = "false"


def put_sharding(settings):
    """Of two settings that the framework makes one, that one (training/config.py)."""
    said = [settings.pop(one, "") for one in ("ddp.use_distributed_optimizer", "optimizer.use_distributed_optimizer")]
    if "false" in said and "true" not in said:
        settings["ddp.use_distributed_optimizer"] = "false"
    if "true" in (settings.pop("ddp.use_megatron_fsdp", ""), settings.get("dist.use_megatron_fsdp")):
        settings["dist.use_megatron_fsdp"] = "true"
    else:
        settings.pop("ddp.data_parallel_sharding_strategy", None)


def put_adapters(peft, settings):
    kind = peft._maker.rsplit(".", 1)[-1].lower() if isinstance(peft, Record) else str(peft).lower()
    if kind != "lora":
        settings["peft"] = kind
    for name, usual in (("dim", "32"), ("target_modules", "null")):
        value = peft.__dict__.get(name) if isinstance(peft, Record) else None
        text = usual if value is None else text_of(value)
        if text != "null":
            settings[f"peft.{name}"] = text.replace(" ", "")


def leave_sizes(model, settings):
    """A model that is named has its own; those of other networks than a GPT's say too little."""
    is_gpt = model._maker.endswith(".GPTModelProvider")
    for name in SIZES:
        value = settings.get(f"model.{name}")
        if value is None or is_gpt:
            continue
        if name == "num_layers" and model.known("hf_model"):
            raise Unreadable("has a part of its model's layers")
        del settings[f"model.{name}"]


def bridge_settings(cfg):
    model = cfg.model
    settings = kept("model", MODEL, model)
    for section, names in OTHERS.items():
        settings.update(kept(section, names, cfg.__dict__.get(section)))
    if settings.get("model.cpu_offloading") != "true":
        settings.pop("model.cpu_offloading_num_layers", None)
    put_precision(cfg, settings)
    put_sharding(settings)
    leave_sizes(model, settings)
    if cfg.known("peft") is not None:
        put_adapters(cfg.known("peft"), settings)
    for degrees, layout in layouts_of(model):
        settings[f"model.pipeline_model_parallel_layout@{degrees}"] = layout
    if settings.get("model.seq_length") == settings.get("dataset.seq_length"):
        settings.pop("model.seq_length", None)
    return settings


def functions_in(package, real, ends):
    """Functions that modules of a package have, by name; of aliases the last."""
    found = {}
    root = importlib.import_module(package)
    folder = pathlib.Path(root.__path__[0])
    for path in sorted(folder.rglob("*.py")):
        name = ".".join((package, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__")
        if name.endswith("run_plugins"):
            continue
        module = importlib.import_module(name)
        for attribute, value in sorted(vars(module).items()):
            if inspect.isfunction(value) and attribute.endswith(ends) and not attribute.startswith("_"):
                if value.__module__.startswith(tuple(real)):
                    found[attribute] = value
    return found


def put_benchmark(name, settings):
    """What the runner sets beside a benchmark: its batch is of so many GPUs (scripts/training/run_recipe.py)."""
    if "_bf16_" in name and "optimizer.optimizer" not in settings:
        settings["optimizer.use_precision_aware_optimizer"] = "true"
    gpus = re.search(r"_([0-9]+)gpu_", name)
    if gpus and "train.global_batch_size" in settings:
        settings[f"train.global_batch_size@{gpus[1]}"] = settings.pop("train.global_batch_size")


# Of recipes that name no repository, or a provider in its place, by their names up to the mode.
MODELS = {
    "gemma3_1b": "google/gemma-3-1b-it",
    "gpt3_175b": "gpt3-175b",
    "nemotron_3_nano": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "nemotron_nano_9b_v2": "nvidia/NVIDIA-Nemotron-Nano-9B-v2",
    "nemotronh_8b": "nvidia/Nemotron-H-8B-Base-8K",
}


def read_bridge(folder):
    real = ("megatron.bridge.recipes", "megatron.bridge.perf_recipes")
    sys.meta_path.insert(0, StandIns(folder, real))
    packages = [one for one in real if (folder / one.replace(".", "/")).is_dir()]
    functions = {}
    for package in packages:  # a name of both is the benchmark's (scripts/training/recipe_metadata.py)
        functions.update(functions_in(package, real, "_config"))
    for name, function in functions.items():
        needed = [one for one in inspect.signature(function).parameters.values() if one.default is one.empty]
        if any(one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL) for one in needed):
            continue
        try:
            cfg = function()
            if isinstance(cfg, Record) and isinstance(cfg.model, Record):
                model = cfg.model.known("hf_model") or MODELS.get(re.split("_(?:pretrain|sft|peft)_", name)[0], "")
                settings = bridge_settings(cfg)
                if function.__module__.startswith(real[1]):
                    put_benchmark(name, settings)
                yield name, function, model, settings
        except (Unreadable, AssertionError, TypeError, AttributeError, ValueError, NotImplementedError) as reason:
            print(f"{name}: left out: {reason}", file=sys.stderr)


TITAN = {
    "training": "local_batch_size global_batch_size seq_len enable_cpu_offload dtype mixed_precision_param "
    "disable_cuda_graphs".split(),
    "parallelism": "data_parallel_replicate_degree data_parallel_shard_degree tensor_parallel_degree "
    "pipeline_parallel_degree context_parallel_degree expert_parallel_degree enable_sequence_parallel "
    "pipeline_parallel_schedule pipeline_parallel_microbatch_size pipeline_parallel_layers_per_stage "
    "pipeline_parallel_first_stage_less_layers pipeline_parallel_last_stage_less_layers "
    "fsdp_reshard_after_forward".split(),
    "compile": ["enable"],
}
KINDS = {"FullAC": "full", "SelectiveAC": "selective", "MemoryBudgetAC": "memory-budget"}


def titan_model(package, flavor):
    """What people call a flavor of a family."""
    name = f"{package.replace('qwen3_5', 'qwen3.5').replace('_', '-')}-{flavor.lower()}"
    return {"deepseek-v3-671b": "deepseek-v3", "llama3-405b": "llama3.1-405b"}.get(name, name)


def titan_settings(config, spec):
    settings = {"compile.enable": "false"}
    for section, names in TITAN.items():
        settings.update(kept(section, names, config.__dict__.get(section)))
    kind = config.known("activation_checkpoint")
    settings["activation_checkpoint"] = KINDS[kind._maker.split(".")[-2]] if kind is not None else "none"
    if spec.known("converters"):
        settings["model.converters"] = "[" + ",".join(one._maker.split(".")[-2] for one in spec.converters) + "]"
    if config.known("loss")._maker.endswith("ChunkedLossWrapper.Config"):
        settings["loss"] = "chunked"
    return settings


def read_titan(folder):
    packages = sorted(path.parent.name for path in folder.glob("torchtitan/models/*/config_registry.py"))
    real = tuple(f"torchtitan.models.{one}.config_registry" for one in packages)
    sys.meta_path.insert(0, StandIns(folder, real))
    for package in packages:
        module = importlib.import_module(f"torchtitan.models.{package}.config_registry")
        for name, function in sorted(vars(module).items()):
            if not inspect.isfunction(function) or function.__module__ != module.__name__ or name.startswith("_"):
                continue
            if any(one.default is one.empty for one in inspect.signature(function).parameters.values()):
                continue
            try:
                config = function()
                spec = config.known("model_spec") if isinstance(config, Record) else None
                if spec is not None and spec._args:
                    model = titan_model(package, str(spec._args[0]))
                    yield f"{package}/{name}", function, model, titan_settings(config, spec)
            except (Unreadable, AssertionError, TypeError, AttributeError, ValueError, NotImplementedError) as reason:
                print(f"{package}/{name}: left out: {reason}", file=sys.stderr)


def read_titan_toml(folder):
    for path in sorted(folder.glob("torchtitan/models/*/train_configs/*.toml")):
        config = tomllib.loads(path.read_text())
        if "debug" in path.name:  # several are called so
            continue
        settings = {"compile.enable": "false"}
        for section, names in TITAN.items():
            for name in names:
                if name in config.get(section, {}):
                    settings[f"{section}.{name}"] = text_of(config[section][name])
        checkpoint = config.get("activation_checkpoint", {})
        settings["activation_checkpoint"] = checkpoint.get("mode", "selective").replace("_", "-")
        every = str(checkpoint.get("selective_ac_option", "2"))
        if settings["activation_checkpoint"] == "selective" and every != "op":
            settings["activation_checkpoint.selective_ac_option"] = every
        if config["model"].get("converters"):
            settings["model.converters"] = text_of(config["model"]["converters"])
        yield path.name, path.name, titan_model(config["model"]["name"], config["model"]["flavor"]), settings


def grouped(recipes):
    """Names of one function together, in the order of the first."""
    groups = collections.defaultdict(list)
    for name, function, model, settings in sorted(recipes, key=lambda one: one[0]):
        groups[function].append((name, model, settings))
    return [([one[0] for one in group], group[0][1], group[0][2]) for group in groups.values()]


def table(package, groups):
    keys = sorted({key for _, _, settings in groups for key in settings})
    number = {key: index for index, key in enumerate(keys)}
    lines = [package, " ".join(keys)]
    for names, model, settings in groups:
        said = ";".join(f"{number[key]}={value}" for key, value in sorted(settings.items()))
        assert ";" not in model and "\n" not in said, (names, model)
        lines.append(f"{' '.join(names)};{model};{said}")
    return lines


PACKAGES = {
    "bridge": ("Megatron-Bridge", read_bridge),
    "titan": ("torchtitan", read_titan),
    "titan-toml": ("torchtitan", read_titan_toml),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["bridge", "titan", "titan-toml"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("version")
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    sys.modules["typing_extensions"] = typing
    package, read = PACKAGES[asked.kind]
    print("\n".join(table(f"{package} {asked.version}", grouped(list(read(folder))))))


if __name__ == "__main__":
    main()
