"""Segments of CUDA's allocator expand where a plan runs on a GPU, unless the environment says something of it."""

import pytest
import torch

from pipeweaver.torch.allocator import VARIABLES, expand_segments


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize(("device", "said", "expands"), [
    ("cuda:0", None, True), ("cpu", None, False), ("cuda:0", VARIABLES[0], False), ("cuda", VARIABLES[1], False)])
def test_segments_expand_on_gpus_unless_the_environment_says_something(monkeypatch, device, said, expands, is_new):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    if said:
        monkeypatch.setenv(said, "max_split_size_mb:128")
    settings = []
    monkeypatch.setattr(torch._C, "_accelerator_setAllocatorSettings", settings.append if is_new else None,
                        raising=False)
    monkeypatch.setattr(torch.cuda.memory, "_set_allocator_settings", settings.append)
    expand_segments(torch.device(device))
    assert settings == ["expandable_segments:True"] * expands
