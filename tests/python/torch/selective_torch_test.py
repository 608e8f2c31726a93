"""Selective recomputation in the executor: the same gradients, and what norms and activations give is not kept."""

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from pipeweaver.torch.passes import Pass

ROWS, WIDTH = 64, 32


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        heads = self.qkv(self.norm(x)).reshape(1, -1, 3, 4, WIDTH // 4).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(*heads).transpose(1, 2).reshape(-1, WIDTH)
        x = x + self.out(attended)
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def passed(recompute):
    """Gradients of a pass, the bytes that autograd packed for it, and how often gelu ran."""
    torch.manual_seed(0)
    chunk = nn.Sequential(Block(), Block())
    leaf = torch.randn(ROWS, WIDTH, requires_grad=True)
    packed = []
    one = Pass(chunk, lambda: chunk(leaf), [leaf], recompute, False, True)
    with saved_tensors_hooks(lambda tensor: (packed.append(tensor.nbytes), tensor)[1], lambda tensor: tensor):
        output = one.forward()
    calls = 0
    true_gelu = nn.functional.gelu

    def counted(x):
        nonlocal calls
        calls += 1
        return true_gelu(x)

    nn.functional.gelu = counted
    try:
        one.again()
        gradients = one.backward(torch.ones_like(output))
    finally:
        nn.functional.gelu = true_gelu
    return [*gradients, *(weight.grad for weight in chunk.parameters())], sum(packed), calls


def test_selective_gives_the_gradients_of_none_and_runs_activations_again():
    plain, kept, none_again = passed("none")
    selective, kept_less, again = passed("selective")
    assert none_again == 0 and again == 2  # of two blocks
    assert all(torch.allclose(a, b, rtol=0, atol=1e-6) for a, b in zip(plain, selective, strict=True))
    assert kept_less < kept
