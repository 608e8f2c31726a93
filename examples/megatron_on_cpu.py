"""megatron-core without a GPU: it asks torch.cuda for a device, a synchronization and random states wherever it runs,
and these are the CPU's here. Nothing else of it is changed. On GPUs none of this is wanted."""

import types

import torch
from megatron.core.pipeline_parallel import schedules
from megatron.core.tensor_parallel import random as tensor_random


class OnCpu(types.ModuleType):
    """torch, but zeros on "cuda" lie on the CPU: where Megatron's schedules count tokens."""

    def __init__(self):
        super().__init__("torch")

    def __getattr__(self, name):
        return getattr(torch, name)

    @staticmethod
    def zeros(*size, device=None, **more):
        return torch.zeros(*size, **more)


def stand_in():
    """In this process."""
    torch.cuda.current_device = lambda: torch.device("cpu")
    torch.cuda.synchronize = lambda *device: None
    torch.cuda.get_rng_state = lambda *device, **more: torch.get_rng_state()
    torch.cuda.manual_seed = torch.manual_seed
    torch.Tensor.cuda = lambda self, *device, **more: self
    tensor_random._get_cuda_rng_state = lambda *device, **more: torch.get_rng_state()
    tensor_random._set_cuda_rng_state = lambda state, *device, **more: torch.set_rng_state(state)
    schedules.torch = OnCpu()


# What has no kernel on CPUs, in the words of TransformerConfig.
WITHOUT_KERNELS = {"use_cpu_initialization": True, "masked_softmax_fusion": False,
                   "gradient_accumulation_fusion": False, "bias_activation_fusion": False,
                   "bias_dropout_fusion": False, "persist_layer_norm": False, "batch_p2p_comm": False}
