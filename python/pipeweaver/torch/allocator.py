"""What a plan counts on of PyTorch's allocator of CUDA memory."""

import os

import torch

SETTINGS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


def expand_segments(device: torch.device) -> None:
    """Has what is allocated on a GPU from now on lie in segments that expand: blocks that a microbatch leaves seldom
    fit the next, of another shape (docs/memory.md). What the environment says of the allocator stays."""
    if device.type == "cuda" and not any(name in os.environ for name in SETTINGS):
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
