#!/usr/bin/env python3
"""Trains a small GPTModel of megatron-core under a searched plan: TP 2 x PP 2, two model chunks a rank, on CPUs.

    torchrun --nproc-per-node 4 examples/train_megatron_schedule.py --plan plan/actions.json [--steps 8]

Without --plan the order of passes is Megatron's own. Everything else is the same, so the losses are, too.
"""

import argparse
import warnings

import torch
import torch.distributed as dist

warnings.filterwarnings("ignore", module="megatron")  # that it has no Apex

from megatron.core import parallel_state  # noqa: E402
from megatron.core.distributed import (  # noqa: E402
    DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads)
from megatron.core.models.gpt import GPTModel  # noqa: E402
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec  # noqa: E402
from megatron.core.pipeline_parallel import get_forward_backward_func  # noqa: E402
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed  # noqa: E402
from megatron.core.transformer import TransformerConfig  # noqa: E402
from megatron_on_cpu import WITHOUT_KERNELS, stand_in  # noqa: E402

from pipeweaver.torch import read_actions  # noqa: E402
from pipeweaver.torch.megatron import PlannedSchedule  # noqa: E402

VOCABULARY, LENGTH, SEQUENCES, MICROBATCHES = 64, 32, 2, 8


def build():
    """This rank's model chunks, as megatron.training's get_model() and train() make and configure them."""
    config = TransformerConfig(num_layers=4, hidden_size=64, num_attention_heads=4, tensor_model_parallel_size=2,
                               pipeline_model_parallel_size=2, virtual_pipeline_model_parallel_size=2,
                               pipeline_dtype=torch.float32, attention_dropout=0.0, hidden_dropout=0.0,
                               **WITHOUT_KERNELS)
    model = []
    for chunk in range(2):
        ends = [is_end(ignore_virtual=False, vp_stage=chunk)
                for is_end in (parallel_state.is_pipeline_first_stage, parallel_state.is_pipeline_last_stage)]
        part = GPTModel(config, get_gpt_layer_local_spec(), VOCABULARY, LENGTH, pre_process=ends[0],
                        post_process=ends[1], share_embeddings_and_output_weights=True, vp_stage=chunk)
        model.append(DistributedDataParallel(config, DistributedDataParallelConfig(), part))
    config.finalize_model_grads_func = finalize_model_grads
    return model


def batches(step):
    """A step's microbatches; what follows a token is the same everywhere."""
    draw = torch.Generator().manual_seed(step)
    for _ in range(MICROBATCHES):
        first = torch.randint(0, VOCABULARY, (SEQUENCES, 1), generator=draw)
        tokens = (first + 7 * torch.arange(LENGTH + 1)) % VOCABULARY
        yield tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def forward_step(iterator, model):
    """Megatron's contract: the output, and what makes a loss of it."""
    tokens, targets = next(iterator)
    causal = torch.triu(torch.ones(LENGTH, LENGTH, dtype=torch.bool), 1)[None, None]
    output = model(tokens, torch.arange(LENGTH).expand_as(tokens).contiguous(), causal, labels=targets)
    return output, lambda losses: (losses.mean(), {"lm loss": losses.detach().mean()})


def asked(model, step):
    """The arguments that train_step calls a forward_backward function with."""
    return {"forward_step_func": forward_step, "data_iterator": [batches(step) for _ in model], "model": model,
            "num_microbatches": MICROBATCHES, "seq_length": LENGTH, "micro_batch_size": SEQUENCES}


def say(what, losses):
    """On the rank that has the losses."""
    if losses and parallel_state.get_tensor_model_parallel_rank() == 0:
        print(f"{what}: loss {sum(float(one['lm loss']) for one in losses) / len(losses):.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--plan")
    parser.add_argument("--steps", type=int, default=8)
    options = parser.parse_args()
    torch.set_num_threads(1)
    stand_in()
    dist.init_process_group("gloo")
    parallel_state.initialize_model_parallel(2, 2, 2)
    torch.manual_seed(1)
    model_parallel_cuda_manual_seed(1)
    model = build()
    weights = [weight for chunk in model for weight in chunk.parameters()]
    optimizer = torch.optim.AdamW(weights, 3e-3)

    forward_backward_func = get_forward_backward_func()
    if options.plan:
        forward_backward_func = PlannedSchedule(read_actions(options.plan))
    for step in range(options.steps):
        for chunk in model:
            chunk.zero_grad_buffer()
        say(f"step {step}", forward_backward_func(**asked(model, step)))
        for weight in weights:
            weight.grad = weight.main_grad
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        say("evaluation", forward_backward_func(**asked(model, 1000), forward_only=True))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
