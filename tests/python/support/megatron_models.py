"""megatron-core's GPTModel on CPUs: a small one, and its data.

What stands in for torch.cuda is in examples/megatron_on_cpu.py. Layers, tensor parallelism, DistributedDataParallel,
finalize_model_grads and schedules are the package's own."""

import dataclasses
import sys
import warnings

import torch
import torch.distributed as dist
from absent import needed
from checkout import ROOT

warnings.filterwarnings("ignore", module="megatron")
core = needed("megatron.core")
needed("megatron.core.models.gpt.gpt_layer_specs")

sys.path.insert(0, str(ROOT / "examples"))

from megatron.core import parallel_state  # noqa: E402
from megatron.core.distributed import (  # noqa: E402
    DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads)
from megatron.core.models.gpt import GPTModel  # noqa: E402
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec  # noqa: E402
from megatron.core.pipeline_parallel import schedules  # noqa: E402
from megatron.core.tensor_parallel import random as tensor_random  # noqa: E402
from megatron.core.transformer import TransformerConfig  # noqa: E402
from megatron.core.transformer.moe import moe_utils  # noqa: E402
from megatron_on_cpu import WITHOUT_KERNELS, stand_in  # noqa: E402, F401

VOCABULARY, POSITIONS, SEQUENCES, WIDTH = 32, 8, 2, 16


class Norm(torch.nn.LayerNorm):
    """A norm for sequence parallelism: PyTorch's, marked so that its gradients are summed over positions. Without Apex
    megatron-core has none."""

    def __init__(self, config, hidden_size, eps=1e-5, **more):
        super().__init__(hidden_size, eps=eps)
        for weight in self.parameters():
            weight.sequence_parallel = config.sequence_parallel


@dataclasses.dataclass
class Job:
    """One model under one way of training."""

    pipeline: int = 2
    tensor: int = 2
    chunks: int = 2
    layers: int = 4
    sequence_parallel: bool = False
    tied: bool = True
    overlap: bool = False
    aligned: bool = False
    per_token: bool = False
    deallocate: bool = True
    variable: bool = False
    scale: float | None = None
    sharded: bool = False  # the distributed optimizer's reduce-scatter
    experts: int = 0  # on the four ranks of two replicas, whose tokens are gathered
    dropout: float = 0.0


class Trained:
    """The chunks of this rank, wrapped and configured as Megatron's training does it."""

    def __init__(self, job):
        self.job = job
        virtual = job.chunks if job.chunks > 1 else None
        experts = {}
        if job.experts:
            parallel_state.initialize_model_parallel(job.tensor, job.pipeline, virtual, expert_model_parallel_size=4,
                                                     expert_tensor_parallel_size=1)
            moe_utils.te_general_gemm = None  # which 0.16.1 asks for, and does not define without Transformer Engine
            experts = {"num_moe_experts": job.experts, "expert_model_parallel_size": 4, "moe_router_topk": 2,
                       "moe_aux_loss_coeff": 0.01, "moe_token_dispatcher_type": "allgather", "add_bias_linear": False}
        else:
            parallel_state.initialize_model_parallel(job.tensor, job.pipeline, virtual)
        torch.manual_seed(1)
        tensor_random.model_parallel_cuda_manual_seed(1)
        self.config = TransformerConfig(
            num_layers=job.layers, hidden_size=WIDTH, num_attention_heads=2, sequence_parallel=job.sequence_parallel,
            tensor_model_parallel_size=job.tensor, pipeline_model_parallel_size=job.pipeline,
            virtual_pipeline_model_parallel_size=virtual, pipeline_dtype=torch.float32,
            attention_dropout=job.dropout, hidden_dropout=job.dropout, variable_seq_lengths=job.variable,
            calculate_per_token_loss=job.per_token, deallocate_pipeline_outputs=job.deallocate,
            **{"moe_token_dispatcher_type": "alltoall", **experts, **WITHOUT_KERNELS})
        self.model = [self.chunk(k, virtual) for k in range(job.chunks)]
        self.configure()

    def chunk(self, k, virtual):
        stage = {} if virtual is None else {"ignore_virtual": False, "vp_stage": k}
        spec = get_gpt_layer_local_spec(num_experts=self.job.experts or None)
        if self.job.sequence_parallel:
            from megatron.core.transformer.transformer_block import TransformerBlockSubmodules

            spec.submodules.input_layernorm = spec.submodules.pre_mlp_layernorm = Norm
            here = self.job.layers // self.job.pipeline // self.job.chunks
            spec = TransformerBlockSubmodules(layer_specs=[spec] * here, layer_norm=Norm)
        whole = GPTModel(self.config, spec, VOCABULARY, 4 * POSITIONS, vp_stage=None if virtual is None else k,
                         pre_process=parallel_state.is_pipeline_first_stage(**stage),
                         post_process=parallel_state.is_pipeline_last_stage(**stage),
                         share_embeddings_and_output_weights=self.job.tied)
        return DistributedDataParallel(self.config, DistributedDataParallelConfig(
            overlap_grad_reduce=self.job.overlap, use_distributed_optimizer=self.job.sharded, bucket_size=500), whole)

    def configure(self):
        """As megatron.training's train()."""
        one = self.job.chunks == 1
        if self.job.overlap:
            self.config.no_sync_func = self.model[0].no_sync if one else [chunk.no_sync for chunk in self.model]
        if self.job.aligned:
            starts = [chunk.start_grad_sync for chunk in self.model]
            self.config.grad_sync_func = starts[0] if one else starts
        if self.job.scale is not None:
            self.config.grad_scale_func = lambda loss: loss * self.job.scale
        self.config.finalize_model_grads_func = finalize_model_grads

    def arguments(self, step, microbatches, lengths=None, **more):
        """What train_step passes on."""
        data = [batches(step, lengths or [POSITIONS] * microbatches) for _ in self.model]
        one = self.job.chunks == 1
        return {"forward_step_func": self.forward_step, "data_iterator": data[0] if one else data,
                "model": self.model, "num_microbatches": microbatches, "seq_length": POSITIONS,
                "micro_batch_size": SEQUENCES, **more}

    def forward_step(self, iterator, model):
        tokens, targets, mask = next(iterator)
        length = tokens.shape[1]
        causal = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)[None, None]
        output = model(tokens, torch.arange(length).expand_as(tokens).contiguous(), causal, labels=targets)

        def loss(losses):
            total = (losses * mask).sum()
            if not self.job.per_token:
                return total / mask.sum(), {"lm loss": (total / mask.sum()).detach().clone()}
            count = mask.sum().to(torch.int)
            return total, count, {"lm loss": torch.stack([total.detach(), count.to(torch.float)])}

        return output, loss

    def run(self, function, step, microbatches, **more):
        """One step from gradients of zero: what it returned, and the gradients."""
        for chunk in self.model:
            chunk.zero_grad_buffer()
        tensor_random.get_cuda_rng_tracker().reset()
        tensor_random.model_parallel_cuda_manual_seed(1)
        returned = function(**self.arguments(step, microbatches, **more))
        return returned, [weight.main_grad.clone() for chunk in self.model for weight in chunk.parameters()]

    def close(self):
        dist.barrier()
        parallel_state.destroy_model_parallel()


def batches(step, lengths):
    """Each replica's microbatches of a step: tokens, targets, and which of these count."""
    draw = torch.Generator().manual_seed(1000 * step + parallel_state.get_data_parallel_rank())
    for length in lengths:
        tokens = torch.randint(0, VOCABULARY, (SEQUENCES, length + 1), generator=draw)
        mask = (torch.rand(SEQUENCES, length, generator=draw) < 0.8).to(torch.float32)
        mask[0, 0] = 1
        yield tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), mask


def apart(found, expected):
    """The largest difference of two lists of tensors."""
    return max(float((a - b).abs().max()) for a, b in zip(found, expected, strict=True))


def losses_apart(found, expected):
    """Of what two schedules returned."""
    assert len(found) == len(expected)
    return max((float((a["lm loss"] - b["lm loss"]).abs().max()) for a, b in zip(found, expected)), default=0.0)
