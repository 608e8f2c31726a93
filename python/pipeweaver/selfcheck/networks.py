"""Networks of model files as PyTorch modules: matrices, norms and attention as the planner prices them.

Where a file says nothing, what is usual: RMSNorm and SwiGLU where a network is gated, LayerNorm and GELU else; rotary
embeddings in the language models and the diffusion transformer; products for queries, keys and values in one matrix.
Experts get equally many tokens each, the choice of the router replaced by one in turn, so that every step is alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch.nn import functional

Tensor = torch.Tensor
Architecture = Mapping[str, Any]
Network = TypeVar("Network", bound=torch.nn.Module)
_patch_values = 3 * 14 * 14


class Rotary(torch.nn.Module):
    """Turns pairs of values by angles that grow with the position."""

    def __init__(self, positions: int, head_dim: int) -> None:
        super().__init__()
        rate = 10_000.0 ** (-torch.arange(0, head_dim, 2).float() / head_dim)
        angles = torch.arange(positions).float()[:, None] * rate
        self.cosine: Tensor
        self.sine: Tensor
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """x: [sequences, heads, positions, head_dim]."""
        length = x.shape[2]
        cosine, sine = self.cosine[:length].to(x.dtype), self.sine[:length].to(x.dtype)
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cosine - b * sine, b * cosine + a * sine), dim=-1)


class Attention(torch.nn.Module):
    """Of a network's positions to each other, or to those of `context` columns."""

    def __init__(self, a: Architecture, causal: bool, context: int = 0) -> None:
        super().__init__()
        self.heads, self.keys, self.size = a["heads"], a.get("kv_heads", a["heads"]), a["head_dim"]
        self.causal, bias = causal, not a.get("gated", False)
        columns = self.heads * self.size, 2 * self.keys * self.size
        if context:
            self.query = torch.nn.Linear(a["hidden"], columns[0], bias)
            self.key_value = torch.nn.Linear(context, columns[1], bias)
        else:
            self.query_key_value = torch.nn.Linear(a["hidden"], sum(columns), bias)
        self.output = torch.nn.Linear(columns[0], a["hidden"], bias)

    def forward(self, x: Tensor, rotary: Rotary | None = None, context: Tensor | None = None) -> Tensor:
        """x: [sequences, positions, hidden]; context: [sequences, its positions, its columns]."""
        if context is None:
            q, k, v = self.query_key_value(x).split(
                [self.heads * self.size, self.keys * self.size, self.keys * self.size], dim=-1)
        else:
            q, (k, v) = self.query(x), self.key_value(context).chunk(2, dim=-1)
        q, k, v = self._heads(q, self.heads), self._heads(k, self.keys), self._heads(v, self.keys)
        if rotary is not None:
            q, k = rotary(q), rotary(k)
        grouped = self.keys != self.heads
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal, enable_gqa=grouped)
        made: Tensor = self.output(out.transpose(1, 2).flatten(2))
        return made

    def _heads(self, x: Tensor, count: int) -> Tensor:
        return x.view(*x.shape[:-1], count, self.size).transpose(1, 2)


class Norm(torch.nn.Module):
    def __init__(self, a: Architecture, affine: bool = True) -> None:
        super().__init__()
        self.gated, self.columns = a.get("gated", False), a["hidden"]
        self.weight = torch.nn.Parameter(torch.ones(self.columns)) if affine else None
        self.bias = torch.nn.Parameter(torch.zeros(self.columns)) if affine and not self.gated else None

    def forward(self, x: Tensor) -> Tensor:
        if self.gated:
            return functional.rms_norm(x, (self.columns,), self.weight)
        return functional.layer_norm(x, (self.columns,), self.weight, self.bias)


class FeedForward(torch.nn.Module):
    def __init__(self, a: Architecture) -> None:
        super().__init__()
        self.gated = a.get("gated", False)
        self.up = torch.nn.Linear(a["hidden"], a["ffn"] * (2 if self.gated else 1), bias=not self.gated)
        self.down = torch.nn.Linear(a["ffn"], a["hidden"], bias=not self.gated)

    def forward(self, x: Tensor) -> Tensor:
        x = self.up(x)
        x = self.down(_gate(x) if self.gated else functional.gelu(x, approximate="tanh"))
        return x


def _gate(x: Tensor) -> Tensor:
    gate, value = x.chunk(2, dim=-1)
    return functional.silu(gate) * value


class Experts(torch.nn.Module):
    """Feed-forwards of which each token takes some, all chosen equally often."""

    def __init__(self, a: Architecture) -> None:
        super().__init__()
        moe = a["moe"]
        self.count, self.chosen = moe["experts"], moe["top_k"]
        self.router = torch.nn.Linear(a["hidden"], self.count, bias=False)
        self.up = torch.nn.Parameter(torch.empty(self.count, a["hidden"], 2 * moe["expert_ffn"]))
        self.down = torch.nn.Parameter(torch.empty(self.count, moe["expert_ffn"], a["hidden"]))

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, -2)
        copies = len(rows) * self.chosen
        expert = torch.arange(copies, device=x.device) % self.count  # of each copy; a token's copies lie together
        share = self.router(rows).float().softmax(-1).gather(1, expert.view(len(rows), self.chosen))
        share = (share / share.sum(-1, keepdim=True)).to(x.dtype)
        by_expert = torch.argsort(expert, stable=True)
        token = by_expert // self.chosen
        taken = rows[token].view(self.count, copies // self.count, -1)
        made = torch.bmm(_gate(torch.bmm(taken, self.up)), self.down).view(copies, -1)
        made = made * share.flatten()[by_expert, None]
        return torch.zeros_like(rows).index_add(0, token, made).view_as(x)


class Block(torch.nn.Module):
    """A layer of a ViT or language model."""

    def __init__(self, a: Architecture, causal: bool) -> None:
        super().__init__()
        self.first, self.second = Norm(a), Norm(a)
        self.attention = Attention(a, causal)
        self.feed = Experts(a) if "moe" in a else FeedForward(a)

    def forward(self, x: Tensor, rotary: Rotary | None) -> Tensor:
        x = x + self.attention(self.first(x), rotary)
        x = x + self.feed(self.second(x))
        return x


class DiffusionBlock(torch.nn.Module):
    """Self attention and feed-forward under scale, shift and gate; between them attention to the text."""

    def __init__(self, a: Architecture) -> None:
        super().__init__()
        self.first, self.second, self.crossed = Norm(a, affine=False), Norm(a, affine=False), Norm(a)
        self.attention, self.cross = Attention(a, False), Attention(a, False, a["cross_attention_dim"])
        self.feed = FeedForward(a)
        self.modulation = torch.nn.Parameter(torch.zeros(6, a["hidden"]))

    def forward(self, x: Tensor, rotary: Rotary | None, context: Tensor) -> Tensor:
        shift, scale, gate, shift2, scale2, gate2 = self.modulation
        x = x + (1 + gate) * self.attention(self.first(x) * (1 + scale) + shift, rotary)
        x = x + self.cross(self.crossed(x), context=context)
        x = x + (1 + gate2) * self.feed(self.second(x) * (1 + scale2) + shift2)
        return x


class Again(torch.nn.Module):
    """A block that is recomputed: whole, or but for what its products and attention give."""

    def __init__(self, block: torch.nn.Module, recompute: str) -> None:
        super().__init__()
        self.block, self.recompute = block, recompute

    def forward(self, *arguments: Any) -> Tensor:
        from ..torch.passes import checkpointed

        x: Tensor = checkpointed(self.block, self.recompute)(*arguments)
        return x


class Vlm(torch.nn.Module):
    """ViT, projector and language model, or the language model alone where there are no images."""

    def __init__(self, llm: Architecture, positions: int, vit: Architecture | None = None) -> None:
        super().__init__()
        self.hidden = llm["hidden"]
        self.embedding = torch.nn.Embedding(llm["vocab"], self.hidden)
        self.vision = torch.nn.ModuleList()
        if vit is not None:
            self.patches = torch.nn.Linear(_patch_values, vit["hidden"])
            self.vision.extend(Block(vit, False) for _ in range(vit["layers"]))
            self.projector = torch.nn.Linear(4 * vit["hidden"], self.hidden)
        self.rotary = Rotary(positions, llm["head_dim"])
        self.blocks = torch.nn.ModuleList(Block(llm, True) for _ in range(llm["layers"]))
        self.norm = Norm(llm)
        self.head = torch.nn.Linear(self.hidden, llm["vocab"], bias=False)

    def layers(self) -> list[torch.nn.ModuleList]:
        return [self.vision, self.blocks]

    def forward(self, tokens: Tensor, images: Tensor | None = None) -> Tensor:
        """tokens: [samples, positions]; images: [images of all samples, patches, values], which take each sample's
        first positions. Gives logits."""
        x: Tensor = self.embedding(tokens)
        if images is not None:
            seen = self.patches(images)
            for block in self.vision:
                seen = block(seen, None)
            seen = self.projector(seen.reshape(len(tokens), -1, self.projector.in_features))
            x = torch.cat((seen, x[:, seen.shape[1]:]), dim=1)
        for block in self.blocks:
            x = block(x, self.rotary)
        x = self.head(self.norm(x))
        return x


class Diffusion(torch.nn.Module):
    """A diffusion transformer over latent positions, with text of `condition_dim` columns."""

    def __init__(self, dit: Architecture, positions: int) -> None:
        super().__init__()
        self.first = torch.nn.Linear(dit["in_channels"], dit["hidden"])
        self.text = torch.nn.Linear(dit["condition_dim"], dit["cross_attention_dim"])
        self.rotary = Rotary(positions, dit["head_dim"])
        self.blocks = torch.nn.ModuleList(DiffusionBlock(dit) for _ in range(dit["layers"]))
        self.norm = Norm(dit, affine=False)
        self.last = torch.nn.Linear(dit["hidden"], dit["in_channels"])

    def layers(self) -> list[torch.nn.ModuleList]:
        return [self.blocks]

    def forward(self, latents: Tensor, text: Tensor) -> Tensor:
        """latents: [clips, positions, channels]; text: [clips, its positions, its columns]."""
        x: Tensor = self.first(latents)
        context = self.text(text)
        for block in self.blocks:
            x = block(x, self.rotary, context)
        x = self.last(self.norm(x))
        return x


def initialised(model: Network, seed: int = 0) -> Network:
    """The model with weights drawn from `seed`: small ones in matrices, no biases."""
    generator: dict[torch.device, torch.Generator] = {}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim < 2:
                if name.endswith("bias"):
                    weight.zero_()
                continue
            draw = generator.setdefault(weight.device, torch.Generator(weight.device).manual_seed(seed))
            weight.normal_(0.0, 0.02, generator=draw)
    return model


def wrapped(model: Vlm | Diffusion, recompute: str, compiled: bool) -> Sequence[torch.nn.Module]:
    """Makes every block recompute, then compiles it, as torchtitan does; gives the blocks as they are now."""
    found: list[torch.nn.Module] = []
    for blocks in model.layers():
        for number, block in enumerate(blocks):
            if recompute != "none":
                block = blocks[number] = Again(block, recompute)
            if compiled:
                block.compile(dynamic=False)
            found.append(block)
    return found
