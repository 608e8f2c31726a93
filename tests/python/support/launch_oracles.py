"""What frameworks themselves say of a launch: Megatron Core's classes and torchtitan's functions, asked without a GPU.

Each function returns nothing where the launch is constructed, else the exception's text."""

import contextlib
import dataclasses
import logging
import types
import unittest.mock
import warnings

import torch
import torch.nn.functional

logging.disable(logging.INFO)


class Group:
    """A process group of that size, as far as its size and rank are asked for."""

    def __init__(self, size, rank=0):
        self.sizes = size, rank

    def size(self):
        return self.sizes[0]

    def rank(self):
        return self.sizes[1]


@contextlib.contextmanager
def fake_world(size):
    """A default process group of that many ranks in which nothing is sent."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=size)
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()


def refused(ask):
    """The text with which `ask` refuses; nothing where it does not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ask()
        except (AssertionError, ValueError, RuntimeError, NotImplementedError, ZeroDivisionError, TypeError, IndexError,
                KeyError, OSError) as error:
            return f"{type(error).__name__}: {error}"
    return None


def megatron_groups(fields, gpus):
    """parallel_state.initialize_model_parallel on a world of fakes."""
    from megatron.core import parallel_state

    def ask():
        try:
            parallel_state.initialize_model_parallel(
                tensor_model_parallel_size=fields.get("tensor_model_parallel_size", 1),
                pipeline_model_parallel_size=fields.get("pipeline_model_parallel_size", 1),
                virtual_pipeline_model_parallel_size=fields.get("virtual_pipeline_model_parallel_size"),
                context_parallel_size=fields.get("context_parallel_size", 1),
                expert_model_parallel_size=fields.get("expert_model_parallel_size", 1),
                expert_tensor_parallel_size=fields.get("expert_tensor_parallel_size"),
                create_gloo_process_groups=False)
        finally:
            parallel_state.destroy_model_parallel()

    with fake_world(gpus):
        return refused(ask)


def megatron_config(fields):
    """The configuration, or why there is none."""
    from megatron.core.transformer.transformer_config import MLATransformerConfig, TransformerConfig

    kind = MLATransformerConfig if fields.get("multi_latent_attention") else TransformerConfig
    built = []
    why = refused(lambda: built.append(kind(**fields, pipeline_dtype=torch.bfloat16)))
    return (built[0] if built else None), why


def megatron_layers(config):
    """Layers that every rank and chunk builds; with the counts, that none is negative."""
    from megatron.core import parallel_state
    from megatron.core.transformer.transformer_block import get_num_layers_to_build

    chunks = config.virtual_pipeline_model_parallel_size
    counts = []

    def ask():
        before = parallel_state._VIRTUAL_PIPELINE_MODEL_PARALLEL_WORLD_SIZE
        rank_before = parallel_state._MPU_PIPELINE_MODEL_PARALLEL_RANK
        parallel_state._VIRTUAL_PIPELINE_MODEL_PARALLEL_WORLD_SIZE = chunks
        try:
            for chunk in range(chunks or 1):
                for rank in range(config.pipeline_model_parallel_size):
                    parallel_state._MPU_PIPELINE_MODEL_PARALLEL_RANK = rank
                    counts.append(get_num_layers_to_build(config, vp_stage=chunk if chunks else None, pp_rank=rank))
        finally:
            parallel_state._VIRTUAL_PIPELINE_MODEL_PARALLEL_WORLD_SIZE = before
            parallel_state._MPU_PIPELINE_MODEL_PARALLEL_RANK = rank_before
        assert min(counts) >= 0, "a stage has fewer than 0 layers"

    return counts, refused(ask)


def megatron_weights(config, vocabulary):
    """What linear layers, embeddings and mixtures divide."""
    from megatron.core.tensor_parallel.utils import VocabUtility, divide

    def ask():
        tp = config.tensor_model_parallel_size
        divide(config.ffn_hidden_size, tp)
        VocabUtility.vocab_range_from_global_vocab_size(vocabulary, 0, tp)
        if config.num_moe_experts:
            assert config.num_moe_experts % config.expert_model_parallel_size == 0
            divide(config.moe_ffn_hidden_size, config.expert_tensor_parallel_size)
            if config.moe_shared_expert_intermediate_size:
                divide(config.moe_shared_expert_intermediate_size, tp)

    return refused(ask)


def megatron_step(config, gpus, sequence, micro_batch, global_batch):
    """Numbers of microbatches, the interleaved schedule's beginning, and parts of the sequence."""
    from megatron.core.num_microbatches_calculator import ConstantNumMicroBatchesCalculator
    from megatron.core.pipeline_parallel import schedules
    from megatron.core.tensor_parallel.mappings import _split_along_first_dim

    tp, pp, cp = (config.tensor_model_parallel_size, config.pipeline_model_parallel_size, config.context_parallel_size)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.config = config

    class Sent(Exception):
        """Raised where the schedule has checked all that it checks."""

    class Communicator:
        pp_group = Group(pp)

        def __init__(self):
            self.config = config

    @dataclasses.dataclass
    class Groups:
        tp = cp = embd = pos_embd = pp = dp_cp = Group(1)

    asked = []

    def beyond(model):  # it asks for the model's type once among its checks and once behind them
        asked.append(model)
        if len(asked) > 1:
            raise Sent

    def interleaved(microbatches):
        chunks = config.virtual_pipeline_model_parallel_size
        zeros = torch.zeros
        with unittest.mock.patch.object(schedules, "get_model_type", beyond), \
                unittest.mock.patch.object(torch, "zeros", lambda *sizes, device, **more: zeros(*sizes, **more)), \
                contextlib.suppress(Sent):
            schedules.forward_backward_pipelining_with_interleaving(
                forward_step_func=None, data_iterator=[None] * chunks, model=[Model() for _ in range(chunks)],
                num_microbatches=microbatches, seq_length=sequence, micro_batch_size=micro_batch,
                p2p_communicator=Communicator(), pg_collection=Groups())

    def ask():
        calculator = ConstantNumMicroBatchesCalculator(global_batch, micro_batch, gpus // (tp * pp * cp), False, 1)
        if config.virtual_pipeline_model_parallel_size is not None:
            interleaved(calculator.get())
        if cp > 1:  # as get_batch_on_this_cp_rank views it
            torch.empty(1, sequence).view(1, 2 * cp, sequence // (2 * cp))
        if config.sequence_parallel:
            _split_along_first_dim(torch.empty(sequence // cp, 1), Group(tp))
        # MoELayer.forward, which needs its layers
        if config.num_moe_experts and tp > 1 and not config.sequence_parallel:
            raise ValueError("experts with tensor parallelism take sequence parallelism")

    return refused(ask)


def megatron_verdict(fields, gpus, sequence, micro_batch, global_batch, vocabulary):
    """What Megatron Core says of a configuration's fields and a step: (layers by stage, why not)."""
    why = megatron_groups(fields, gpus)
    if why:
        return None, why
    config, why = megatron_config(fields)
    if why:
        return None, why
    layers, why = megatron_layers(config)
    why = why or megatron_weights(config, vocabulary)
    return layers, why or megatron_step(config, gpus, sequence, micro_batch, global_batch)


# --- torchtitan

class Stage:
    """A pipeline stage as far as schedules ask for it when they are made."""

    def __init__(self, index, stages, ranks, rank):
        self.stage_index, self.num_stages, self.group_size, self.group_rank = index, stages, ranks, rank
        self.is_first, self.is_last, self.has_backward = index == 0, index == stages - 1, True
        self.submod = torch.nn.Identity()
        self.stage_index_to_group_rank = {}


def titan_stages(parallelism, model):
    """Modules of every stage."""
    from torchtitan.distributed import pipeline_parallel

    if parallelism.module_fqns_per_model_part is not None:
        pipeline_parallel._get_pipeline_metadata(types.SimpleNamespace(pp=parallelism.pipeline_parallel_degree),
                                                 parallelism, model)
        return parallelism.module_fqns_per_model_part
    stages, layers, first, last = pipeline_parallel._get_pipeline_metadata(
        types.SimpleNamespace(pp=parallelism.pipeline_parallel_degree), parallelism, model)
    return pipeline_parallel._generate_llm_fqn_per_model_part(stages, layers, first, last)


def titan_schedule(parallelism, modules, local_batch):
    """Every rank's schedule is made; one that has no order is none."""
    from torchtitan.distributed import pipeline_parallel

    ranks = parallelism.pipeline_parallel_degree
    for rank in range(ranks):
        indices = pipeline_parallel._get_pp_rank_to_stage_indices_mapping(
            rank, ranks, parallelism.pipeline_parallel_schedule, len(modules))
        stages = [Stage(index, len(modules), ranks, rank) for index in indices]
        schedule = pipeline_parallel._build_pipeline_schedule(
            parallelism=parallelism, local_batch_size=local_batch, stages=stages, loss_fn=lambda *_: None)
        assert type(schedule).__name__ != "PipelineScheduleMulti", "the schedule has no order"


def trainer_config(parallelism, training):
    """Trainer.Config's own checks. Its module needs Triton, so that the two functions are taken from its text."""
    import ast
    import importlib.util
    import pathlib

    text = pathlib.Path(importlib.util.find_spec("torchtitan").origin).with_name("trainer.py").read_text()
    trainer = next(node for node in ast.parse(text).body if getattr(node, "name", "") == "Trainer")
    config = next(node for node in trainer.body if getattr(node, "name", "") == "Config")
    wanted = ("__post_init__", "_validate_cuda_graphs")
    functions = [node for node in config.body if getattr(node, "name", "") in wanted]
    assert len(functions) == 2
    other = types.SimpleNamespace(Config=type("Config", (), {}))
    names = {"SelectiveAC": other, "MemoryBudgetAC": other, "FlexAttention": other}
    exec(compile(ast.Module(functions, []), "trainer.py", "exec"), names)
    asked = types.SimpleNamespace(parallelism=parallelism, training=training, model_spec=None,
                                  activation_checkpoint=None,
                                  debug=types.SimpleNamespace(batch_invariant=False, spmd_typechecking=False))
    asked._validate_cuda_graphs = lambda: names["_validate_cuda_graphs"](asked)
    names["__post_init__"](asked)


def titan_verdict(parallelism, training, gpus, model):
    """What torchtitan says: (modules of the stages, why not). `model`: layers, heads, kv_heads, experts, tied."""
    from torchtitan.config import ParallelismConfig, TrainingConfig
    from torchtitan.distributed import ParallelDims

    found = []

    def ask():
        p, t = ParallelismConfig(**parallelism), TrainingConfig(**training)
        trainer_config(p, t)
        dims = ParallelDims.from_config(p, gpus)
        if dims.ep > 1:  # build_mesh unflattens the ranks so
            inner = dims.dp_shard * dims.cp * dims.tp
            assert inner // dims.ep * dims.ep == inner, "ep does not divide the ranks of a replica"
            assert model["experts"] % dims.ep == 0, "ep does not divide the experts"
        # Trainer.__init__ and Decoder.Config.update_from_config, which need processes and a model.
        divisor = (dims.tp if p.enable_sequence_parallel else 1) * (2 * dims.cp if dims.cp > 1 else 1)
        assert t.seq_len % divisor == 0, "sequence"
        together = t.local_batch_size * dims.dp_replicate * dims.dp_shard
        assert t.global_batch_size != 0 and (t.global_batch_size < 0 or t.global_batch_size % together == 0), "batch"
        assert not (model["tied"] and dims.pp > 1), "tied"
        assert dims.tp == 1 or (model["heads"] % dims.tp == 0 and model["kv_heads"] % dims.tp == 0), "heads"
        if dims.pp > 1:
            layers = types.SimpleNamespace(layers=[None] * model["layers"])
            found.extend(titan_stages(p, layers))
            titan_schedule(p, found, t.local_batch_size)

    why = refused(ask)
    return found, why


# --- Megatron-LM's arguments, whose parser is in no package: its rules as core_v0.16.1 has them in
# megatron/training/arguments.py, written down here once more, apart from the table under test.

def argument_rule(fields, gpus, sequence):
    """The first of validate_args' assertions that fails; nothing if none does."""
    tp, pp, ep = (fields.get(f"{kind}_model_parallel_size", 1) for kind in ("tensor", "pipeline", "expert"))
    cp = fields.get("context_parallel_size", 1)
    layers, layout = fields["num_layers"], fields.get("pipeline_model_parallel_layout")
    ends = any(fields.get(f"num_layers_in_{end}_pipeline_stage") is not None for end in ("first", "last"))
    chunks = fields.get("virtual_pipeline_model_parallel_size")
    counted = layers + sum(fields.get(f"account_for_{what}_in_pipeline_split", False) for what in ("embedding", "loss"))
    if gpus % (tp * pp * cp):
        return "world size"
    if chunks is not None and layout:
        return "two ways to say chunks"
    if layout:
        from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout
        try:
            stages = PipelineParallelLayerLayout.get_num_stages_from_str(layout)
        except AssertionError:
            return "letters of a layout"
        if stages % pp:
            return "stages of a layout"
        chunks = stages // pp
    elif chunks is None and not ends and counted % pp:
        return "layers by ranks"
    if (chunks or 1) > 1 and pp <= (1 if fields["overlap_p2p_comm"] else 2):
        return "ranks of chunks"
    if fields.get("bf16") and fields.get("fp16"):
        return "two precisions"
    if fields["hidden_size"] % fields["num_attention_heads"]:
        return "width of a head"
    if cp > 1 and sequence % (2 * cp):
        return "sequence by context"
    recompute, method = fields.get("recompute_granularity"), fields.get("recompute_method")
    if fields.get("distribute_saved_activations") and (tp == 1 or recompute != "full" or method is None):
        return "saved activations"
    if recompute == "selective" and method is not None:
        return "method of selective recomputation"
    experts = fields.get("num_moe_experts") or 0
    if ep > 1 and (experts == 0 or experts % ep):
        return "experts by groups"
    return None


def as_validated(fields):
    """The fields of the configuration that validate_args makes of arguments for which argument_rule() has nothing."""
    config = dict(fields)
    chunks = config.pop("virtual_pipeline_model_parallel_size", None)
    if config.get("pipeline_model_parallel_layout"):
        from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout
        stages = PipelineParallelLayerLayout.get_num_stages_from_str(config["pipeline_model_parallel_layout"])
        chunks = stages // config.get("pipeline_model_parallel_size", 1)
    config["virtual_pipeline_model_parallel_size"] = chunks if (chunks or 1) > 1 else None
    if config["virtual_pipeline_model_parallel_size"] is None:
        config["overlap_p2p_comm"] = False
    config["batch_p2p_comm"] = not config["overlap_p2p_comm"]
    config["gradient_accumulation_fusion"] = True
    config["sequence_parallel"] = config["sequence_parallel"] and config["tensor_model_parallel_size"] > 1
    config["cpu_offloading"] = config.get("cpu_offloading_num_layers", 0) > 0
    config["num_moe_experts"] = config.get("num_moe_experts") or None
    return config
