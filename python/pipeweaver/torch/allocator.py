"""What a plan counts on of PyTorch's allocator of CUDA memory."""

import os

import torch

VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


def expand_segments(device: torch.device) -> None:
    """Has what is allocated on a GPU from now on lie in segments that expand: blocks that a microbatch leaves seldom
    fit the next, of another shape (docs/memory.md). What the environment says of the allocator stays."""
    if device.type != "cuda" or any(name in os.environ for name in VARIABLES):
        return
    # Newer versions have it for all accelerators, and call the other one deprecated.
    newer = getattr(torch._C, "_accelerator_setAllocatorSettings", None)
    configure = newer or torch.cuda.memory._set_allocator_settings
    configure("expandable_segments:True")
