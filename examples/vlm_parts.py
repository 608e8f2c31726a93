"""What train_vlm.py trains: chunks of a small ViT and LLM, and made-up data for the plan's units."""

import pathlib
import random

import torch

MODEL_FILE = pathlib.Path(__file__).parent / "small-vlm.json"
WIDTH = {"vit": 64, "llm": 128}
VOCABULARY, MERGE = 512, 4
PATCH = 3 * 14 * 14


def draw_batch(step):
    """Samples as in a batch file: text and up to four images, each of its own size."""
    draw = random.Random(step)
    return [{"id": f"{step}.{i}", "text_tokens": draw.randint(32, 160),
             "images": [{"width": 28 * draw.randint(1, 6), "height": 28 * draw.randint(1, 6)}
                        for _ in range(draw.choice([0, 1, 1, 2, 4]))]} for i in range(16)]


class Layer(torch.nn.Module):
    """A transformer layer over rows [rows, width]; all rows of a unit attend to each other."""

    def __init__(self, width, causal):
        super().__init__()
        self.causal = causal
        self.norm = torch.nn.LayerNorm(width)
        self.attention = torch.nn.MultiheadAttention(width, 2)
        self.feed = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, 4 * width), torch.nn.GELU(),
                                        torch.nn.Linear(4 * width, width))

    def forward(self, x):
        mask = torch.ones(len(x), len(x), dtype=torch.bool, device=x.device).triu(1) if self.causal else None
        normed = self.norm(x)
        x = x + self.attention(normed, normed, normed, attn_mask=mask, need_weights=False)[0]
        return x + self.feed(x)


class Chunk(torch.nn.Module):
    """The layers of one of the plan's stages, with the patch or token embedding, projector or head at its ends."""

    def __init__(self, stage):
        super().__init__()
        part = stage.parts[0]
        torch.manual_seed(stage.stage)  # the same on all replicas
        width = WIDTH[part.module]
        self.blocks = torch.nn.Sequential(*(Layer(width, part.module == "llm") for _ in range(part.layers)))
        self.first = self.last = None
        if part.first_layer == 0:
            vit = part.module == "vit"
            self.first = torch.nn.Linear(PATCH, width) if vit else torch.nn.Embedding(VOCABULARY, width)
        if part.first_layer + part.layers == 4:
            self.last = torch.nn.Linear(width * MERGE if part.module == "vit" else width,
                                        WIDTH["llm"] if part.module == "vit" else VOCABULARY)

    def forward(self, x, others=None):
        if isinstance(x, tuple):  # the LLM's first stage: tokens, and where images stand in for them
            tokens, places = x
            x = self.first(tokens)
            if others["vit"]:
                x = x.index_copy(0, places, torch.cat(others["vit"]))
        elif self.first is not None:
            x = self.first(x)
        x = self.blocks(x)
        if self.last is not None:
            x = self.last(x.reshape(-1, self.last.in_features))
        return x


class Batch:
    """One step's data by the plan's assignment.json. Images are noise, texts count up from a number
    that the sample's name gives."""

    def __init__(self, assignment, device):
        self.assignment, self.device = assignment, device

    def microbatch(self, unit):
        return self.assignment["replicas"][unit.replica]["microbatches"][unit.microbatch]

    def units(self, unit, module):
        return [one for one in self.microbatch(unit)["units"] if one["module"] == module]

    def patches(self, unit):
        items = self.units(unit, "vit")[unit.item]["items"]
        return torch.randn(items[-1]["rows"][1], PATCH, device=self.device)

    def tokens(self, unit):
        """Token numbers of the microbatch and, in the order of the ViT's outputs, the rows that images take: the first
        of their sample."""
        microbatch, places = self.microbatch(unit), []
        tokens = torch.cat([sum(sample["id"].encode()) + torch.arange(sample["rows"][1] - sample["rows"][0])
                            for sample in microbatch["samples"]]) % VOCABULARY
        begin = {sample["id"]: sample["rows"][0] for sample in microbatch["samples"]}
        for one in self.units(unit, "vit"):
            for item in one["items"]:
                places += range(begin[item["sample"]], begin[item["sample"]] + item["tokens"])
                begin[item["sample"]] += item["tokens"]
        return tokens.to(self.device), torch.tensor(places, dtype=torch.long, device=self.device)


def split(batch, unit):
    """A unit's input where its module begins; the LLM's target is the next token."""
    if unit.purpose == "target":
        return batch.tokens(unit)[0].roll(-1)
    return batch.patches(unit) if unit.module == "vit" else batch.tokens(unit)


def loss(output, target):
    return torch.nn.functional.cross_entropy(output, target)
