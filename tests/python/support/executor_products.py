"""Small model files and batches, and chunks for whatever stages the planner cuts them into."""

import json
import random

import torch

DTYPE = torch.float64
HIDDEN = {"vit": 6, "aud": 4, "llm": 8, "dit": 6}


def network(name, kind, layers, **more):
    hidden = HIDDEN[name]
    return {"name": f"{name}-small", "kind": kind, "layers": layers, "hidden": hidden, "ffn": 2 * hidden, "heads": 2,
            "kv_heads": 2, "head_dim": hidden // 2, **more}


def model_file(names, layers, frozen=()):
    """vit and aud in front of llm, dit behind it; `layers` of each."""
    unit = {"vit": ("items", ["image"]), "aud": ("items", ["audio"]), "llm": ("microbatch", ["text"]),
            "dit": ("items", ["image"])}
    kinds = {"vit": ("vit", {"patch_size": 14}), "aud": ("audio_encoder", {}),
             "llm": ("llm", {"vocab": 32, "gated": True}),
             "dit": ("dit", {"in_channels": 4, "cross_attention_dim": 6, "text_tokens": 4})}
    modules = [{"name": name, "architecture": network(name, kinds[name][0], layers[name], **kinds[name][1]),
                "unit": unit[name][0], "modalities": unit[name][1], "trainable": name not in frozen} for name in names]
    edges = []
    if "vit" in names:
        edges.append({"from": "vit", "to": "llm", "token_reduction": 4, "projector": {"in": 24, "out": HIDDEN["llm"]}})
    if "aud" in names:
        edges.append({"from": "aud", "to": "llm", "token_reduction": 4, "projector": {"in": 16, "out": HIDDEN["llm"]}})
    if "dit" in names:
        edges.append({"from": "llm", "to": "dit", "projector": {"in": 8, "out": HIDDEN["dit"]}})
    model = {"format": "pipeweaver-model/1", "name": "-".join(names), "modules": modules, "edges": edges,
             "microbatch_tokens": 64}
    if "vit" in names or "dit" in names:
        model["image"] = {"patch": 14, "merge": 2, "min_tokens": 1, "max_tokens": 64}
    if "aud" in names:
        model["audio"] = {"frames_per_second": 8, "tokens_per_second": 2}
    return model


def batch_lines(seed, samples, names):
    """A batch: text, none to three images (targets where a generator makes them), none to two audio pieces."""
    draw, lines = random.Random(seed), []
    for i in range(samples):
        sample = {"id": f"s{i}", "text_tokens": draw.randint(8, 24)}
        count = draw.choice([0, 0, 1, 2, 3]) if "vit" in names or "dit" in names else 0
        sample["images"] = [{"width": 28 * draw.randint(1, 3), "height": 28 * draw.randint(1, 2),
                             "role": "target" if "dit" in names and "vit" not in names else "input"}
                            for _ in range(count)]
        if "aud" in names:
            sample["audio"] = [{"seconds": draw.randint(1, 4)} for _ in range(draw.choice([0, 1, 2]))]
        lines.append(json.dumps(sample))
    return "\n".join(lines) + "\n"


class Layer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width, dtype=DTYPE)

    def forward(self, x):
        return x + torch.tanh(self.linear(x))


class Chunk(torch.nn.Module):
    """The parts of one of the plan's stages. Where a module begins, its data comes in; where it ends, its projector."""

    def __init__(self, stage, layers, edges):
        super().__init__()
        torch.manual_seed(100 + stage.stage)
        self.parts = stage.parts
        self.begins_chain = stage.reads_batch and stage.parts[0].first_layer == 0
        self.blocks = torch.nn.ModuleList()
        self.projectors = torch.nn.ModuleDict()
        for part in stage.parts:
            for _ in range(part.layers):
                self.blocks.append(Layer(HIDDEN[part.module]))
            after = [edge for edge in edges if edge["from"] == part.module]
            if part.first_layer + part.layers == layers[part.module] and after:
                sizes = after[0]["projector"]
                self.projectors[part.module] = torch.nn.Linear(sizes["in"], sizes["out"], dtype=DTYPE)
        if not stage.trainable:
            self.requires_grad_(False)

    def forward(self, x, others=None, data=None):
        if self.begins_chain and isinstance(x, dict):
            x, data = None, x
        given = [item for name in sorted(others or {}) for item in others[name]]
        blocks = iter(self.blocks)
        for part in self.parts:
            if part.first_layer == 0:
                if x is not None:
                    given.append(x)
                x = begin(part.module, data.get(part.module), given)
                given = []
            for _ in range(part.layers):
                block = next(blocks)
                x = block(x) if x is not None else None
            if part.module in self.projectors and x is not None:
                projector = self.projectors[part.module]
                x = projector(x.reshape(-1, projector.in_features))
        return x


def begin(module, raw, given):
    """A module's first input: an LLM adds a sum of what it is given, a DiT carries it with its own rows."""
    if raw is None:
        return None
    if module == "dit":
        rows, places = raw
        context = given[0]
        if len(context) != sum(end - first for first, end in places):  # the whole microbatch: copies for each item
            context = torch.cat([context[first:end] for first, end in places])
        return torch.cat([rows, context])
    for k, item in enumerate(given):
        raw = raw + (k + 1) * torch.nn.functional.pad(item.sum(0), (0, raw.shape[1] - item.shape[1]))
    return raw


class Batch:
    """assignment.json: what each unit takes, as made-up rows."""

    def __init__(self, assignment, images):
        self.assignment, self.images = assignment, images

    def microbatch(self, replica, microbatch):
        return self.assignment["replicas"][replica]["microbatches"][microbatch]

    def unit(self, replica, chain, microbatch, item):
        for unit in self.microbatch(replica, microbatch)["units"]:
            if (unit["module"], unit["item"]) == (chain, item):
                return unit
        raise KeyError((replica, chain, microbatch, item))

    def rows(self, replica, chain, microbatch, item):
        """Positions of the unit in each module of its chain; none: 0."""
        rows = dict.fromkeys(chain.split("+"), 0)
        for one in self.unit(replica, chain, microbatch, item)["items"]:
            takes = "aud" if one["item"] >= self.images[one["sample"]] else ("vit" if "vit" in rows else "dit")
            rows[takes] += one["rows"][1] - one["rows"][0]
        if "llm" in rows:
            rows["llm"] = self.microbatch(replica, microbatch)["tokens"]
        return rows

    def data(self, replica, chain, microbatch, item):
        generator = torch.Generator().manual_seed(hash((replica, len(chain), microbatch, item)))
        rows = self.rows(replica, chain, microbatch, item)
        data = {module: torch.randn(count, HIDDEN[module], generator=generator, dtype=DTYPE) if count else None
                for module, count in rows.items()}
        if data.get("dit") is not None:
            data["dit"] = data["dit"], self.sample_rows(replica, chain, microbatch, item)
        return data

    def sample_rows(self, *unit):
        """Per item of the unit, its sample's rows in the microbatch."""
        replica, _, microbatch, _ = unit
        places = {sample["id"]: sample["rows"] for sample in self.microbatch(replica, microbatch)["samples"]}
        return [places[one["sample"]] for one in self.unit(*unit)["items"]]


def split(batch, unit):
    if unit.purpose == "target":
        return unit.microbatch + 1.0
    return batch.data(unit.replica, unit.module, unit.microbatch, unit.item)


def loss(output, target):
    return ((output - target) ** 2).mean()


def chunks(stages, model):
    layers = {module["name"]: module["architecture"]["layers"] for module in model["modules"]}
    return {number: Chunk(stage, layers, model["edges"]) for number, stage in stages.items()}


def reference(batch, stages, all_chunks):
    """The step's loss, and its gradients in the chunks: chain by chain, unit by unit, in one process."""
    chains = {}
    for number in sorted(stages):
        chains.setdefault(stages[number].chain, []).append(number)
    total = torch.zeros((), dtype=DTYPE)
    for replica in range(len(batch.assignment["replicas"])):
        for mb, microbatch in enumerate(batch.assignment["replicas"][replica]["microbatches"]):
            outputs = {}
            for chain, mine in chains.items():
                outputs[chain] = [run_unit(batch, stages, all_chunks, (replica, chain, mb, unit["item"]), mine, outputs)
                                  for unit in microbatch["units"] if unit["module"] == chain]
            last = [chain for chain in chains if outputs[chain]][-1]
            rows = [batch.rows(replica, last, mb, u)[last.split("+")[-1]] for u in range(len(outputs[last]))]
            for value, count in zip(outputs[last], rows):
                total = total + microbatch["loss_weight"] * count / sum(rows) * loss(value, mb + 1.0)
    total.backward()
    return float(total.detach())


def run_unit(batch, stages, all_chunks, unit, mine, outputs):
    replica, chain, mb, item = unit
    data, rows, x = batch.data(*unit), batch.rows(*unit), None
    for number in mine:
        stage = stages[number]
        if not any(rows[part.module] for part in stage.parts):
            continue
        others = {}
        for other in stage.inputs:
            others[other] = [taken(batch, unit, value) for value in outputs[other]]
        x = all_chunks[number](x, others, data if stage.reads_batch else None)
    return x


def taken(batch, unit, value):
    """What a unit takes of another chain's output: a generator, the rows of its items' samples."""
    if unit[1] != "dit":
        return value
    return torch.cat([value[first:end] for first, end in batch.sample_rows(*unit)])
