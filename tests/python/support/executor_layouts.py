"""A small ViT whose attention keeps to its images, in front of a small LLM: chunks that several GPUs share, the data of
plans' units, and the same step in one process."""

import json
import random

import torch
import torch.nn.functional as F
from executor_package import parallel

DTYPE = torch.float32
HIDDEN, HEADS, REDUCTION = {"vit": 8, "llm": 16}, 4, 4
RAW = 5  # numbers of a patch, and of a token


def model_file(layers):
    """`layers` of the ViT and the LLM."""
    def network(name, kind, **more):
        hidden = HIDDEN[name]
        return {"name": f"{name}-tiny", "kind": kind, "layers": layers[name], "hidden": hidden, "ffn": 2 * hidden,
                "heads": HEADS, "kv_heads": HEADS, "head_dim": hidden // HEADS, **more}

    modules = [{"name": "vit", "architecture": network("vit", "vit", patch_size=14), "unit": "items",
                "modalities": ["image"]},
               {"name": "llm", "architecture": network("llm", "llm", vocab=32, gated=True), "unit": "microbatch",
                "modalities": ["text"]}]
    return {"format": "pipeweaver-model/1", "name": "vit-llm-tiny", "modules": modules,
            "edges": [{"from": "vit", "to": "llm", "token_reduction": REDUCTION,
                       "projector": {"in": REDUCTION * HIDDEN["vit"], "out": HIDDEN["llm"]}}],
            "image": {"patch": 14, "merge": 2, "min_tokens": 1, "max_tokens": 64}, "microbatch_tokens": 64}


def batch_lines(seed, samples):
    """Text and none to four images each."""
    draw, lines = random.Random(seed), []
    for i in range(samples):
        images = [{"width": 28 * draw.randint(1, 4), "height": 28 * draw.randint(1, 3)}
                  for _ in range(draw.choice([0, 1, 2, 3, 4]))]
        lines.append(json.dumps({"id": f"s{i}", "text_tokens": draw.randint(8, 24), "images": images}))
    return "\n".join(lines) + "\n"


class Layout:
    """A GPU's groups for the stages of one module. `group` None: one process that has all."""

    def __init__(self, inner=None, tp=1, sequence_parallel=False):
        self.copies = None
        if inner is None:
            self.group = lone()
        else:
            self.group, self.copies = parallel.inner_groups(inner, tp)
        self.sequence_parallel = sequence_parallel and tp > 1


def lone():
    """A group of this process alone, the same each time."""
    me = torch.distributed.get_rank()
    if me not in LONE:
        LONE[me] = torch.distributed.new_group([me], use_local_synchronization=True)
    return LONE[me]


LONE = {}


class Block(torch.nn.Module):
    """Attention and a feed-forward part, tensor parallel; `attend` is given with the rows."""

    def __init__(self, width, layout):
        super().__init__()
        self.width, self.parts = width, layout.sequence_parallel
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width, dtype=DTYPE) for _ in range(2))
        for norm in self.norms:
            torch.nn.init.normal_(norm.weight, 1.0, 0.1)
            for weight in norm.parameters() if self.parts else ():
                parallel.of_parts(weight)
        more = {"sequence_parallel": self.parts, "dtype": DTYPE}
        self.q, self.k, self.v = (parallel.ColumnParallel(width, width, layout.group, **more) for _ in range(3))
        self.up = parallel.ColumnParallel(width, 2 * width, layout.group, **more)
        self.out = parallel.RowParallel(width, width, layout.group, **more)
        self.down = parallel.RowParallel(2 * width, width, layout.group, **more)

    def forward(self, x, rows, attend):
        y = self.norms[0](x)
        q, k, v = (one(y, rows).unflatten(1, (-1, self.width // HEADS)) for one in (self.q, self.k, self.v))
        x = x + self.out(attend(q, k, v).flatten(1))
        return x + self.down(F.gelu(self.up(self.norms[1](x), rows)))


def causal(q, k, v):
    return F.scaled_dot_product_attention(*(one.transpose(0, 1) for one in (q, k, v)), is_causal=True).transpose(0, 1)


class Chunk(torch.nn.Module):
    """One of the plan's stages, of one module each. Without `share` one process has whole units; `lengths` are then the
    unit's images."""

    def __init__(self, stage, layers, layout):
        super().__init__()
        part, = stage.parts
        torch.manual_seed(100 if stage.phase else 101 + stage.stage)
        self.module, self.layout = part.module, layout
        width = HIDDEN[part.module]
        first, last = part.first_layer == 0, part.first_layer + part.layers == layers[part.module]
        self.first = torch.nn.Linear(RAW, width, dtype=DTYPE) if first else None
        self.blocks = torch.nn.ModuleList(Block(width, layout) for _ in range(part.layers))
        sizes = {"vit": (REDUCTION * width, HIDDEN["llm"]), "llm": (width, RAW)}[part.module]
        self.last = torch.nn.Linear(*sizes, dtype=DTYPE) if last else None
        if self.first and layout.sequence_parallel:
            for weight in self.first.parameters():
                parallel.of_parts(weight)
        if not stage.trainable:
            self.requires_grad_(False)

    def forward(self, x, others=None, share=None, lengths=None):
        if self.first:
            x, rows, lengths = self.begin(x, others, lengths)
        else:
            rows = share.rows if share else len(x)
        if self.module == "llm":
            attend = causal
        elif share and share.unit:
            def attend(q, k, v):
                return parallel.shared_attention(q, k, v, share, self.layout.copies)
        else:
            def attend(q, k, v):
                return parallel.attend(q, k, v, [rows] if share else lengths)
        for block in self.blocks:
            x = block(x, rows, attend)
        return self.end(x, rows) if self.last else x

    def begin(self, x, others, lengths):
        if self.module == "vit":
            x, lengths = x
        rows, x = len(x), self.first(x)
        if self.module == "llm" and others["vit"]:
            images = torch.cat(others["vit"])
            order = torch.arange(1, len(images) + 1, dtype=DTYPE).unsqueeze(1) / len(images)
            at = torch.arange(len(images)) * 7 % rows
            x = x.index_add(0, at, torch.tanh(images) * order)
        if self.layout.sequence_parallel:
            x = parallel.scatter_rows(x, self.layout.group)
        return x, rows, lengths

    def end(self, x, rows):
        parts, group = self.layout.sequence_parallel, self.layout.group
        x = parallel.gather_rows(x, group, rows, alike=True) if parts else x
        if self.module == "llm":
            return self.last(x)
        x = torch.tanh(self.last(x.reshape(len(x) // REDUCTION, REDUCTION * x.shape[1])))
        return parallel.scatter_rows(x, group, alike=True) if parts else x


class Batch:
    """assignment.json, and made-up rows of its units."""

    def __init__(self, assignment):
        self.assignment = assignment

    def microbatch(self, replica, microbatch):
        return self.assignment["replicas"][replica]["microbatches"][microbatch]

    def lengths(self, replica, module, microbatch, item):
        """Of a unit's images."""
        unit = next(unit for unit in self.microbatch(replica, microbatch)["units"]
                    if (unit["module"], unit["item"]) == (module, item))
        return [one["rows"][1] - one["rows"][0] for one in unit["items"]]

    def image(self, replica, microbatch, place, patches):
        """By its place among the microbatch's images."""
        generator = torch.Generator().manual_seed(hash((replica, microbatch, place)))
        return torch.randn(patches, RAW, generator=generator, dtype=DTYPE)

    def tokens(self, replica, microbatch, purpose):
        generator = torch.Generator().manual_seed(hash((replica, microbatch, -1, purpose == "target")))
        return torch.randn(self.microbatch(replica, microbatch)["tokens"], RAW, generator=generator, dtype=DTYPE)

    def places(self, replica, microbatch, item):
        """(microbatch, place) of each image of a ViT's unit."""
        before = sum(len(self.lengths(replica, "vit", microbatch, k)) for k in range(item))
        return [(microbatch, before + k) for k in range(len(self.lengths(replica, "vit", microbatch, item)))]


def split(batch, unit):
    if unit.module == "llm":
        return batch.tokens(unit.replica, unit.microbatch, unit.purpose)
    if unit.share:
        of = unit.share.of or batch.places(unit.replica, unit.microbatch, unit.item)
        lengths = list(unit.share.lengths)
    else:
        of = batch.places(unit.replica, unit.microbatch, unit.item)
        lengths = batch.lengths(unit.replica, unit.module, unit.microbatch, unit.item)
    whole = [batch.image(unit.replica, *place, patches) for place, patches in zip(of, lengths)]
    if unit.pieces is None:
        return torch.cat(whole), lengths
    return torch.cat([torch.zeros(0, RAW), *(whole[p.sequence][p.first:p.end] for p in unit.pieces)]), lengths


def loss(output, target):
    return ((output - target) ** 2).mean()


def chunks(stages, layers, layouts):
    """`layouts`: by module."""
    return {number: Chunk(stage, layers, layouts[stage.parts[0].module]) for number, stage in stages.items()}


def reference(batch, stages, all_chunks, by_image, alone=None):
    """The step's loss, and its gradients in the chunks, of which only the first of a module on several ranks is used.
    `by_image`: attention of the ViT keeps to images, not to units; `alone`: of this replica."""
    vit, llm = of_module(stages, "vit"), of_module(stages, "llm")
    total = torch.zeros((), dtype=DTYPE)
    for replica, content in enumerate(batch.assignment["replicas"]):
        if alone not in (None, replica):
            continue
        for m, microbatch in enumerate(content["microbatches"]):
            outputs = []
            for item, of in enumerate(units_of(batch, replica, m)):
                x = torch.cat([batch.image(replica, *place, count) for place, count in of])
                lengths = [count for _, count in of] if by_image else [len(x)]
                x = (x, lengths)
                for number in vit:
                    x = all_chunks[number](x, lengths=lengths)
                outputs.append(x)
            x = batch.tokens(replica, m, "input")
            for number in llm:
                x = all_chunks[number](x, {"vit": outputs} if number == llm[0] else None)
            total = total + microbatch["loss_weight"] * loss(x, batch.tokens(replica, m, "target"))
    total.backward()
    return float(total.detach())


def of_module(stages, module):
    """Its stages; of a phase, which has them all on every rank, one."""
    found = [number for number in sorted(stages) if stages[number].parts[0].module == module]
    return found[:1] if stages[found[0]].phase else found


def units_of(batch, replica, microbatch):
    """Per unit of the ViT its images: ((microbatch, place), patches)."""
    units, before = [], 0
    for unit in batch.microbatch(replica, microbatch)["units"]:
        if unit["module"] == "vit" and unit["items"]:
            units.append([((microbatch, before + k), one["rows"][1] - one["rows"][0])
                          for k, one in enumerate(unit["items"])])
            before += len(unit["items"])
    return units


def own_part(whole, weight, layout):
    """Of a whole module's gradient what a GPU's weight has."""
    dim = getattr(weight, "partition_dim", None)
    size, rank = torch.distributed.get_world_size(layout.group), torch.distributed.get_rank(layout.group)
    return whole if dim is None else whole.chunk(size, dim)[rank]


def gradient_error(mine, others, layouts, stages):
    """The largest difference over all of the rank's weights, relative to the largest gradient of their chunk; a phase's
    are those of its module's first stage."""
    worst = 0.0
    for number, chunk in mine.items():
        module = stages[number].parts[0].module
        other = others[of_module(stages, module)[0] if stages[number].phase else number]
        gradients = [torch.zeros_like(one) if one.grad is None else one.grad for one in other.parameters()]
        largest = max(float(one.abs().max()) for one in gradients)
        assert largest > 0 or module == "vit"  # a batch may have no images
        for weight, expected in zip(chunk.parameters(), gradients, strict=True):
            found = torch.zeros_like(weight) if weight.grad is None else weight.grad
            difference = (found - own_part(expected, weight, layouts[module])).abs().max()
            worst = max(worst, float(difference) / largest if largest else float(difference))
    return worst
