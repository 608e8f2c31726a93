"""What a layer is said to keep for its backward, beside what PyTorch saves for such a layer on the CPU.

Layers are built here as frameworks run them on GPUs: attention, gated activations and norms are one kernel each, of
which stand-ins say what they save (flash attention: queries, keys, values, output and a number a row and head). All
else is PyTorch's own. Saved tensors are counted by their storage, once each, parameters left out. docs/memory.md has
the derivation, and the differences that the tests below allow or name."""

import json

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

HIDDEN, HEADS, FFN = 512, 8, 2048
HEAD_DIM = HIDDEN // HEADS
PATCHES, TEXT = 1024, 128
TOLERANCE = 0.01  # what is not counted: statistics of norms and softmax, modulation vectors


class Flash(torch.autograd.Function):
    """What flash attention saves; what it computes is of no interest here."""

    @staticmethod
    def forward(ctx, q, k, v):
        output = torch.zeros_like(q)
        ctx.save_for_backward(q, k, v, output, torch.zeros(q.shape[:-1], dtype=torch.float32))
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, _, _ = ctx.saved_tensors
        return torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)


class SwiGlu(torch.autograd.Function):
    """Gate and activation as one kernel, as Transformer Engine has it: it saves its input."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        gate, up = x.chunk(2, dim=-1)
        return nn.functional.silu(gate) * up

    @staticmethod
    def backward(ctx, gradient):
        return torch.zeros_like(ctx.saved_tensors[0])


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, dtype=torch.bfloat16)


def norm(width=HIDDEN, affine=True):
    return nn.LayerNorm(width, elementwise_affine=affine, dtype=torch.bfloat16)


class Attention(nn.Module):
    """Self attention over windows of `window` positions, or over all of them."""

    def __init__(self, qk_norm=False, window=0, rotated=False):
        super().__init__()
        self.qkv, self.out, self.window = linear(HIDDEN, 3 * HIDDEN), linear(HIDDEN, HIDDEN), window
        self.angles = torch.ones(HEAD_DIM, dtype=torch.bfloat16) if rotated else None
        self.norms = nn.ModuleList([norm(HEAD_DIM), norm(HEAD_DIM)]) if qk_norm else None

    def heads(self, x):
        q, k, v = self.qkv(x).view(*x.shape[:-1], 3, HEADS, HEAD_DIM).unbind(-3)
        if self.norms:
            q, k = self.norms[0](q), self.norms[1](k)
        return (q, k, v) if self.angles is None else (q * self.angles, k * self.angles, v)

    def forward(self, x):
        heads = self.heads(x)
        if self.window:  # views: the patches of a window follow each other
            heads = [one.unflatten(0, (-1, self.window)) for one in heads]
        return self.out(Flash.apply(*heads).reshape(x.shape))


class FeedForward(nn.Module):
    def __init__(self, gated=False):
        super().__init__()
        self.up, self.down = linear(HIDDEN, (2 if gated else 1) * FFN), linear(FFN, HIDDEN)
        self.activation = SwiGlu.apply if gated else nn.functional.gelu

    def forward(self, x):
        return self.down(self.activation(self.up(x)))


class VitBlock(nn.Module):
    def __init__(self, gated=False, **attention):
        super().__init__()
        self.norms = nn.ModuleList([norm(), norm()])
        self.attention, self.feed_forward = Attention(**attention), FeedForward(gated)

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.feed_forward(self.norms[1](x))


class CrossAttention(nn.Module):
    def __init__(self, qk_norm=False):
        super().__init__()
        self.q, self.kv, self.out = linear(HIDDEN, HIDDEN), linear(HIDDEN, 2 * HIDDEN), linear(HIDDEN, HIDDEN)
        self.norms = nn.ModuleList([norm(HEAD_DIM), norm(HEAD_DIM)]) if qk_norm else None

    def forward(self, x, context):
        q = self.q(x).unflatten(-1, (HEADS, HEAD_DIM))
        k, v = self.kv(context).view(*context.shape[:-1], 2, HEADS, HEAD_DIM).unbind(-3)
        if self.norms:
            q, k = self.norms[0](q), self.norms[1](k)
        return self.out(Flash.apply(q, k, v).flatten(-2))


class Modulation(nn.Module):
    """Shift, scale and gate of each of `count` parts, from what the sample is conditioned on."""

    def __init__(self, count):
        super().__init__()
        self.linear, self.count = linear(HIDDEN, 3 * count * HIDDEN), count

    def forward(self, condition):
        return self.linear(nn.functional.silu(condition)).unflatten(-1, (self.count, 3, HIDDEN)).unbind(0)


def modulate(x, vectors):
    return x * (1 + vectors[1]) + vectors[0]


class DitBlock(nn.Module):
    """Step-Video, Wan: self attention and feed-forward modulated and gated, cross attention plain."""

    def __init__(self, qk_norm=False):
        super().__init__()
        self.norms = nn.ModuleList([norm(affine=False), norm(), norm(affine=False)])
        self.attention, self.cross, self.feed_forward = Attention(qk_norm), CrossAttention(qk_norm), FeedForward()
        self.modulation = Modulation(2)

    def forward(self, x, context, condition):
        first, second = self.modulation(condition)
        x = x + first[2] * self.attention(modulate(self.norms[0](x), first))
        x = x + self.cross(self.norms[1](x), context)
        return x + second[2] * self.feed_forward(modulate(self.norms[2](x), second))


class Stream(nn.Module):
    def __init__(self, qk_norm):
        super().__init__()
        self.norms = nn.ModuleList([norm(affine=False), norm(affine=False)])
        self.attention, self.feed_forward, self.modulation = Attention(qk_norm), FeedForward(), Modulation(2)


class DoubleStreamBlock(nn.Module):
    """FLUX, Stable Diffusion 3: text and image each with their own weights, attending jointly."""

    def __init__(self, qk_norm=False):
        super().__init__()
        self.streams = nn.ModuleList([Stream(qk_norm), Stream(qk_norm)])

    def forward(self, text, image, condition):
        vectors = [stream.modulation(condition) for stream in self.streams]
        both = list(zip(self.streams, (text, image), vectors, strict=True))
        heads = [s.attention.heads(modulate(s.norms[0](x), first)) for s, x, (first, _) in both]
        attended = Flash.apply(*(torch.cat(pair) for pair in zip(*heads, strict=True))).flatten(-2)
        outputs = []
        for (s, x, (first, second)), part in zip(both, attended.split([len(text), len(image)]), strict=True):
            x = x + first[2] * s.attention.out(part)
            outputs.append(x + second[2] * s.feed_forward(modulate(s.norms[1](x), second)))
        return torch.cat(outputs)


class SingleStreamBlock(nn.Module):
    """FLUX's other half: attention beside the feed-forward, one norm and one gate for both."""

    def __init__(self, joined=False):
        super().__init__()
        self.norm, self.modulation, self.joined = norm(affine=False), Modulation(1), joined
        self.attention, self.feed_forward = Attention(), FeedForward()
        self.out = linear(HIDDEN + FFN, HIDDEN) if joined else None

    def forward(self, x, condition):
        (vectors,) = self.modulation(condition)
        y = modulate(self.norm(x), vectors)
        if not self.joined:
            return x + vectors[2] * (self.attention(y) + self.feed_forward(y))
        attended = Flash.apply(*self.attention.heads(y)).flatten(-2)
        activated = nn.functional.gelu(self.feed_forward.up(y))
        return x + vectors[2] * self.out(torch.cat([attended, activated], -1))


def inputs(*positions):
    """Activations that come from elsewhere and get a gradient."""
    return [torch.zeros(*(() if n == 0 else (n,)), HIDDEN, dtype=torch.bfloat16, requires_grad=True) for n in positions]


def saved_bytes(block, *given, without=()):
    """Bytes of all storages that the backward of block(*given) holds, but for parameters and `without`."""
    kept = []  # alive until all are counted, so that no address is used twice

    def pack(tensor):
        kept.append(tensor)
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        output = block(*given)
    assert output.requires_grad
    left_out = {t.untyped_storage().data_ptr() for t in [*block.parameters(), *without]}
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in kept}
    return sum(size for address, size in storages.items() if address not in left_out)


def kept_bytes(pipeweaver, folder, network, target=False, grown=("layers",)):
    """Bytes that one layer of the network keeps: what two more of them add to the peak of a rank without
    recomputation."""
    sizes = {"heads": HEADS, "kv_heads": HEADS, "head_dim": HEAD_DIM, "hidden": HIDDEN}
    language = {"name": "llm", "kind": "llm", "layers": 1, "ffn": HIDDEN, "vocab": 256, "gated": True, **sizes}
    of_items = {"unit": "items", "modalities": ["image"], "name": "items"}
    of_text = {"unit": "microbatch", "modalities": ["text"], "name": "llm"}
    peaks = []
    for more in (0, 2):
        own = {"name": "own", "ffn": FFN, **sizes, **network, **{key: network[key] + more for key in grown}}
        modules = [{**of_items, "architecture": own}, {**of_text, "architecture": language}]
        names = ["items", "llm"]
        if target:
            modules.reverse(), names.reverse()
        edge = {"from": names[0], "to": names[1], "projector": {"in": HIDDEN, "out": HIDDEN}}
        (folder / "model.json").write_text(json.dumps({
            "format": "pipeweaver-model/1", "name": "one-layer", "modules": modules, "edges": [edge],
            "image": {"patch": 16, "merge": 1, "fixed_pixels": 512}}))
        image = {"tokens": PATCHES, "patches": PATCHES, **({"role": "target"} if target else {})}
        (folder / "batch.jsonl").write_text(json.dumps({"id": "0", "text_tokens": TEXT, "images": [image]}) + "\n")
        answer = json.loads(pipeweaver("emulate", "--model", folder / "model.json", "--cluster", "h100-sxm:1",
                                       "--tp", 1, "--pp", 1, "--batch", folder / "batch.jsonl",
                                       "--recompute", "none", "--json"))
        peaks.append(answer["replicas"][0]["ranks"][0]["memory"]["activations_bytes"])
    return (peaks[1] - peaks[0]) // 2


def close(said, saved):
    assert saved * (1 - TOLERANCE) <= said <= saved, f"said {said}, PyTorch saves {saved}: {said / saved:.4f}"


def vit(**more):
    return {"kind": "vit", "layers": 1, "patch_size": 16, **more}


def dense(**more):
    return {"attention": {"kind": "dense", "causal": False, **more}}


@pytest.mark.parametrize("block, network", [
    ({}, dense()),
    ({"gated": True}, {"gated": True, **dense()}),
    ({"qk_norm": True}, dense(qk_norm=True)),
    ({"gated": True, "window": 64}, {"gated": True, "attention": {"kind": "windowed", "causal": False, "window": 64}}),
], ids=["plain", "gated", "norms of queries and keys", "windowed"])
def test_a_vit_block_keeps_what_pytorch_saves(pipeweaver, tmp_path, block, network):
    close(kept_bytes(pipeweaver, tmp_path, vit(**network)), saved_bytes(VitBlock(**block), *inputs(PATCHES)))


def test_what_rotating_queries_and_keys_beside_their_product_keeps_is_known(pipeweaver, tmp_path):
    saved = saved_bytes(VitBlock(rotated=True), *inputs(PATCHES))

    # The values are a view of the product's output, so all of it stays, beside the queries and keys that were rotated.
    close(kept_bytes(pipeweaver, tmp_path, vit(**dense())), saved - 2 * 2 * HIDDEN * PATCHES)


# A generator is conditioned on its sample: on the text, and on the tokens that stand for the image.
CONTEXT = TEXT + PATCHES


@pytest.mark.parametrize("qk_norm", [False, True])
def test_a_diffusion_transformers_block_keeps_what_pytorch_saves(pipeweaver, tmp_path, qk_norm):
    x, context, condition = inputs(PATCHES, CONTEXT, 0)
    network = {"kind": "dit", "layers": 1, "cross_attention_dim": HIDDEN, "in_channels": 64, **dense(qk_norm=qk_norm)}

    # The context itself is counted once for all blocks of a stage.
    close(kept_bytes(pipeweaver, tmp_path, network, target=True),
          saved_bytes(DitBlock(qk_norm), x, context, condition, without=[context, condition]))


@pytest.mark.parametrize("qk_norm", [False, True])
def test_a_double_stream_block_keeps_what_pytorch_saves(pipeweaver, tmp_path, qk_norm):
    text, image, condition = inputs(CONTEXT, PATCHES, 0)
    network = {"kind": "dit", "layers": 1, "mmdit": True, "in_channels": 64, **dense(qk_norm=qk_norm)}
    said = kept_bytes(pipeweaver, tmp_path, network, target=True)
    saved = saved_bytes(DoubleStreamBlock(qk_norm), text, image, condition)

    # Norms read queries and keys where the product left them, beside the values, which joining has copied.
    values = 2 * HIDDEN * (CONTEXT + PATCHES) if qk_norm else 0
    close(said, saved - values)


@pytest.mark.parametrize("joined", [False, True])
def test_a_single_stream_block_keeps_what_pytorch_saves(pipeweaver, tmp_path, joined):
    x, condition = inputs(CONTEXT + PATCHES, 0)
    network = {"kind": "dit", "layers": 2, "single_layers": 1, "mmdit": True, "in_channels": 64, **dense()}
    said = kept_bytes(pipeweaver, tmp_path, network, target=True, grown=("layers", "single_layers"))
    saved = saved_bytes(SingleStreamBlock(joined), x, condition)

    # Where one product takes attention and activation together, the attention's output is there twice.
    twice = 2 * HIDDEN * (CONTEXT + PATCHES) if joined else 0
    close(said, saved - twice)
