#!/usr/bin/env python3
"""Reads what a plan says in the terminal, in plan.json and in report.html, and compares: one thing has one number.

Of every drawn plan: each printed number is the rounded number of plan.json, and stands on both pages; what is advised
gains 2 % and wins 95 % of its draws; a factor of which one step is padded is named so, and the part that is padding
follows from what is padded to; the shapes that an allocator meets are those of the assignment. Of `--target megatron`
every rung's command is emulated: encoders lie on the first stage as the framework builds them, with as many layers of
the language model there and as many context parallel groups as it takes. With --construct rungs of flags and layouts
are constructed by Megatron Core's own classes on fake process groups (needs torch and megatron-core). Needs no
package else; prints a line for each plan, and at last what was wrong.
"""

import html
import json
import random
import re
import sys
import tempfile
from pathlib import Path

import drawn_runs

ROOT = Path(__file__).resolve().parents[1]
# Seconds, bytes, parts and counts of what is printed.
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "x": 1.0, "%": 0.01, "GiB": 2.0**30, "MiB": 2.0**20, "B": 1e9,
         "": 1.0}
QUANTITY = re.compile(r"(-?\d+(?:\.(\d+))?) ?(s|ms|us|ns|x|%|GiB|MiB|B|)$")
RUNGS = ("now", "data", "flags", "layout", "schedule", "groups")
ROW = re.compile(r"(now|data|flags|layout|schedule|groups|beyond) +.*? (\d+\.\d+ s) +(\d+\.\d+x|-) +(\d+) +"
                 r"(\d+\.\d) of (\d+\.\d) GiB$")
NAMED = re.compile(r"([a-z0-9-]+): step (\d[\d.]* [mun]?s)(?:, (\d+\.\d+x) as fast as now)?")

# What frameworks build, by family, once more and apart from frameworks/*/built_encoders.cpp: how the encoder lies on
# tensor parallel GPUs, the least layers of the language model on the first stage, the most context parallel groups (0:
# any). docs/encoders.md has files and lines.
SPLIT = "split over tensor parallel GPUs without sequence parallelism"
WHOLE = "whole on each tensor parallel GPU"
BUILT = {
    "qwen3_vl": (SPLIT, 3, 0), "qwen3_vl_moe": (SPLIT, 3, 0), "qwen3_5": (SPLIT, 0, 0), "qwen3_5_moe": (SPLIT, 0, 0),
    "qwen2_5_vl": (WHOLE, 0, 1), "glm4v": (WHOLE, 0, 1), "glm4v_moe": (WHOLE, 0, 1), "gemma3": (WHOLE, 0, 1),
    "gemma4": (WHOLE, 0, 0), "mistral3": (WHOLE, 0, 0), "kimi_k25": (WHOLE, 0, 0), "qwen2_5_omni": (WHOLE, 0, 0),
    "internvl_chat": (SPLIT, 0, 0), "llava": (SPLIT, 0, 0),
}

# Models that Megatron-Bridge trains, with clusters and layouts that hold them.
OF_BRIDGE = [
    ("qwen2.5-vl-3b", "h100-sxm:16", ["--tp 2 --pp 2", "--tp 1 --pp 4"]),
    ("qwen2.5-vl-7b", "h200-sxm:16", ["--tp 4 --pp 2", "--tp 2 --pp 4"]),
    ("qwen2.5-vl-32b", "h200-sxm:64", ["--tp 8 --pp 4", "--tp 4 --pp 4"]),
    ("qwen3-vl-4b", "h100-sxm:16", ["--tp 2 --pp 2", "--tp 2 --pp 2 --cp 2"]),
    ("qwen3-vl-8b", "h100-sxm:32", ["--tp 4 --pp 4", "--tp 2 --pp 4 --cp 2"]),
    ("qwen3-vl-32b", "h100-sxm:64", ["--tp 4 --pp 4", "--tp 4 --pp 4 --cp 2"]),
    ("qwen3-vl-30b-a3b", "h100-sxm:32", ["--tp 4 --pp 4", "--tp 2 --pp 4 --cp 2"]),
    ("qwen3.5-9b", "h100-sxm:32", ["--tp 4 --pp 4", "--tp 2 --pp 4"]),
    ("gemma-3-12b", "h200-sxm:32", ["--tp 4 --pp 4", "--tp 2 --pp 4"]),
    ("gemma-4-31b", "h200-sxm:32", ["--tp 4 --pp 4", "--tp 4 --pp 4 --cp 2"]),
    ("glm-4.5v", "h200-sxm:64", ["--tp 4 --pp 8", "--tp 4 --pp 4"]),
    ("qwen2.5-omni-7b", "h200-sxm:16", ["--tp 4 --pp 2", "--tp 2 --pp 4"]),
]
OTHERS = {
    "torch-actions": [("dip-vlm-s", "h100-sxm:16", ["--tp 4 --pp 4"]), ("dip-vlm-m", "h100-sxm:32", ["--tp 8 --pp 4"]),
                      ("internvl3-38b", "h100-sxm:64", ["--tp 8 --pp 4"]),
                      ("wan2.1-t2v-14b", "h100-sxm:16", ["--tp 4 --pp 2"]),
                      ("dip-t2v-s", "h100-sxm:32", ["--tp 4 --pp 4"]),
                      ("qwen2.5-vl-7b", "h100-sxm:16", ["--tp 2 --pp 4"])],
    "torchtitan": [("wan2.1-t2v-14b", "h100-sxm:16", ["--tp 4 --pp 2", "--tp 8 --pp 1"]),
                   ("qwen3.5-9b", "h100-sxm:32", ["--tp 4 --pp 4"]), ("dip-vlm-s", "h100-sxm:16", ["--tp 4 --pp 2"]),
                   ("dip-t2v-s", "h100-sxm:32", ["--tp 4 --pp 4"]),
                   ("llava-1.5-7b", "h100-sxm:16", ["--tp 2 --pp 4"])],
    "fsdp2": [("qwen2.5-vl-7b", "h100-sxm:16", [""]), ("qwen3-vl-8b", "h100-sxm:32", [""]),
              ("wan2.1-t2v-1.3b", "h100-sxm:16", [""]), ("internvl3-8b", "h100-sxm:16", [""]),
              ("gemma-3-4b", "h100-sxm:32", [""]), ("llava-1.5-7b", "h100-sxm:16", [""])],
}
OF_CLIPS = ("wan", "dip-t2v")


def agrees(printed, exact):
    """Whether the text is the number, rounded to what the text shows."""
    found = QUANTITY.match(printed)
    unit = UNITS[found[3]]
    step = 10.0**-len(found[2] or "") * unit
    return abs(float(found[1]) * unit - exact) <= 0.5 * step * (1 + 1e-9) + abs(exact) * 1e-12


# --- what stands where: (thing, text) pairs

def of_rung(name, step, over, rate, peak, usable):
    yield (name, "step"), step
    if over != "-":
        yield (name, "over now"), over
    yield (name, "tokens/s/GPU"), rate
    yield (name, "peak"), peak + " GiB"
    yield (name, "usable"), usable + " GiB"


def sentences(text):
    """What both pages say in words."""
    if found := re.search(r"microbatches have (\d+) shapes, and ([\d.]+) of ([\d.]+) GiB are left", text):
        yield ("room", "shapes"), found[1]
        yield ("room", "left"), found[2] + " GiB"
        yield ("room", "memory"), found[3] + " GiB"
    for basis in ("exact", "interpolated", "extrapolated", "modelled"):
        if found := re.search(rf"([\d.]+ %) {basis}", text):
            yield ("share", basis), found[1]
    if found := re.search(r"wins (\d+) of (\d+) draws of wrong costs against (\w+)", text):
        yield ("headline", "wins"), found[1]
        yield ("headline", "draws"), found[2]
    for found in re.finditer(r"(data|flags|layout|schedule|groups) would bring ([\d.]+ %) more than", text):
        yield (found[1], "would bring"), found[2]
    if found := re.search(r"(?:a bound of (?:this|the folder's) cut leaves|gap) ([\d.]+ %)", text):
        yield ("plan", "gap"), found[1]


def terminal(text):
    lines = text.splitlines()
    head = " ".join(text.split("\n\n", 1)[0].split())
    yield ("batch", "samples"), re.search(r"(\d+) samples?\b", head)[1]
    yield ("batch", "microbatches"), re.search(r" in (\d+) microbatch", head)[1]
    for size, name in re.findall(r"([\d.]+ B),? ?|([\w.-]+) (?=[\d.]+ B)", lines[1]):
        if name:
            yield ("parameters", name), re.search(rf"{re.escape(name)} ([\d.]+ B)", lines[1])[1]
    for line in lines:
        if found := ROW.match(line):
            yield from of_rung(*found.groups())
        if found := re.match(r"do +(now|data|flags|layout|schedule|groups):", line):
            yield ("headline", "rung"), found[1]
    yield from sentences(" ".join(text.split()))


def cells(row):
    return {name: html.unescape(re.sub("<[^>]+>", "", value))
            for name, value in re.findall(r'data-column="([^"]+)">(.*?)</td>', row, re.S)}


def report(page):
    page = re.sub(r"<(style|script|svg)\b.*?</\1>", "", page, flags=re.S)
    ladder = re.search(r'<table class="ladder.*?</table>', page, re.S)[0]
    for best, row in re.findall(r"<tr( class=\"best\")?>(.*?)</tr>", ladder, re.S):
        cell = cells(row)
        if best:
            yield ("headline", "rung"), cell["rung"]
        if "step" in cell:
            peak, usable = re.match(r"([\d.]+) of ([\d.]+) GiB", cell["fullest rank"]).groups()
            name = cell["rung"].split(":")[0]
            yield from of_rung(name, cell["step"], cell["over now"], cell["tokens/s a GPU"], peak, usable)
    for title, value, more in re.findall(r"<dt>(.*?)</dt><dd><strong>(.*?)</strong><span>(.*?)</span>", page):
        yield from of_card(html.unescape(title), html.unescape(value), html.unescape(more))
    for said in re.findall(r'<(?:p class="(?:do|prints)"><strong>|p class="prints">)(.*?)<', page):
        if found := NAMED.match(html.unescape(said)):
            name = found[1] if found[1] in RUNGS else "beyond"
            yield (name, "step"), found[2]
            if found[3]:
                yield (name, "over now"), found[3]
    if found := re.search(r": ([\d.]+) samples?.*? in (\d+) microbatch", page):
        yield ("batch", "samples"), found[1]
        yield ("batch", "microbatches"), found[2]
    yield from sentences(html.unescape(re.sub("<[^>]+>", " ", page)))


def of_card(title, value, more):
    if title == "step":
        yield ("headline", "step"), value
    elif title.startswith("speedup over "):
        below = title.removeprefix("speedup over ")
        yield ("headline", "over " + below), value
        yield (below, "step"), re.search(r"step (\d[\d.]* [mun]?s)$", more)[1]
    elif title == "fullest rank":
        yield ("headline", "peak"), value
    elif title == "MFU":
        yield ("plan", "mfu"), value


def exact(plan):
    """The numbers of plan.json by thing."""
    asked, head = plan["asked"], plan["headline"]
    known = {("batch", "samples"): asked["samples"], ("batch", "microbatches"): asked["microbatches"],
             ("plan", "gap"): plan["gap"], ("plan", "mfu"): plan["mfu"],
             ("headline", "rung"): head["rung"], ("headline", "step"): head["step_ns"] * 1e-9}
    known |= {("share", basis): part for basis, part in plan["share_of_time"]["by_basis"].items()}
    known |= {("parameters", name): count for name, count in plan["parameters"].items()}
    for rung in [*plan["ladder"], *plan["beyond"]]:
        name = rung["rung"] if rung["rung"] in RUNGS else "beyond"
        known |= {(name, "step"): rung["step_ns"] * 1e-9, (name, "over now"): rung["over_now"],
                  (name, "tokens/s/GPU"): rung["tokens_per_second_per_gpu"], (name, "peak"): rung["peak_bytes"],
                  (name, "usable"): rung["usable_bytes"]}
        if "worth" in rung:
            known[name, "would bring"] = rung["worth"]["gain"] - 1
        if rung["rung"] == head["rung"]:
            known["headline", "peak"] = rung["peak_bytes"]
            known |= {("headline", key): rung.get("worth", {}).get(key) for key in ("wins", "draws")}
    if head["compared"]:
        known["headline", "over " + head["compared"]["rung"]] = head["compared"]["over"]
    if room := head.get("room"):
        known |= {("room", "shapes"): room["shapes"], ("room", "left"): room["left_bytes"],
                  ("room", "memory"): room["memory_bytes"]}
    return known


def unequal(plan, pages):
    """What is printed and is not the number of plan.json, and what one page alone has of a rung."""
    known, wrong, seen = exact(plan), [], {}
    for where, pairs in pages.items():
        for thing, text in pairs:
            seen.setdefault(thing, set()).add(where)
            value = known.get(thing)
            if value is None:
                wrong.append(f"{where}: {' '.join(thing)} is {text}, of which plan.json has nothing")
            elif text != value if isinstance(value, str) else not agrees(text, value):
                wrong.append(f"{where}: {' '.join(thing)} is {text}, in plan.json {value}")
    for thing, places in seen.items():
        if thing[0] in (*RUNGS, "beyond", "room") and len(places) < len(pages):
            wrong.append(f"{' '.join(thing)} stands in {', '.join(places)} alone")
    return wrong


# --- what is advised, and what is padded

def unworthy(plan):
    head = plan["headline"]
    if head["rung"] == "now" or not any(rung["rung"] == "now" for rung in plan["ladder"]):
        return []
    worth = next(rung for rung in plan["ladder"] + plan["beyond"] if rung["rung"] == head["rung"]).get("worth")
    if not worth:
        return [f"{head['rung']} is advised, and nothing says what it is worth"]
    if worth["gain"] < 1.02 or worth["wins"] < 0.95 * worth["draws"] or worth["draws"] == 0:
        return [f"{head['rung']} is advised for {worth['gain']:.4f}x and {worth['wins']} of {worth['draws']} draws"]
    return []


def unnamed_padding(plan, text):
    wrong = []
    ladder = plan["ladder"]
    now = next((rung for rung in ladder if rung["rung"] == "now"), None)
    for rung in [*ladder, *plan["beyond"]]:
        mixed = now is not None and ("padding" in rung) != ("padding" in now)
        if mixed and rung["over_now"] is not None and "why_nothing" not in rung:
            wrong.append(f"{rung['rung']} is {rung['over_now']:.3f}x of what is padded otherwise")
        if "padding" in rung and "padded to" not in text:
            wrong.append(f"{rung['rung']} is padded, and the terminal does not say so")
    compared = plan["headline"]["compared"]
    if compared:
        both = (compared["rung"], plan["headline"]["rung"])
        pair = [rung for rung in ladder + plan["beyond"] if rung["rung"] in both]
        if len({"padding" in rung for rung in pair}) > 1:
            wrong.append(f"{compared['rung']} over {plan['headline']['rung']} is of one that is padded")
    return wrong


def unequal_padding(plan):
    """What is launched and pads, and says another part of padding than its own sizes come to."""
    wrong = []
    for rung in plan["ladder"]:
        if "padding" not in rung or not rung["command"]:
            continue
        tokens = rung["tokens_per_second_per_gpu"] * plan["asked"]["gpus"] * rung["step_ns"] * 1e-9
        part = 1 - tokens / (rung["microbatches"] * rung["padding"]["tokens"])
        said = rung["padding"]["part_of_tokens"]
        if abs(part - said) > 1e-4:
            wrong.append(f"{rung['rung']}: {said:.4f} are padding, by what it is padded to {part:.4f}")
    return wrong


def other_shapes(plan, folder):
    """Shapes that are said of the advised rung's memory, and are not those of the microbatches that it is fed."""
    head = plan["headline"]
    rung = next(one for one in plan["ladder"] if one["rung"] == head["rung"])
    files = [name for name in rung["files"] if name.endswith("assignment.json")]
    if "room" not in head or not files or plan["asked"]["model"].startswith(OF_CLIPS):
        return []
    fed = json.loads((folder / files[0]).read_text())
    positions = {sum(item["rows"][1] - item["rows"][0] for unit in one["units"] for item in unit.get("items", []))
                 for replica in fed["replicas"] for one in replica["microbatches"]}
    if len(positions) == head["room"]["shapes"]:
        return []
    return [f"{head['room']['shapes']} shapes are said, {files[0]} has {len(positions)}"]


# --- what Bridge builds

class Rungs:
    """Rungs of a plan for Megatron, by what `emulate` says under their commands."""

    def __init__(self, program, name, model, construct):
        self.program, self.name = program, name
        self.shown = json.loads(program.run("show", model).stdout)
        self.construct = construct

    def wrong(self, plan, folder):
        how, least, most_cp = BUILT[self.shown["family"]]
        for rung in plan["ladder"]:
            if not rung["command"] or "why_nothing" in rung:
                continue
            said = self.program.emulated(self.name, rung["command"])
            if not said:
                continue
            name, chains = rung["rung"], said["partition"]["chains"]
            stages = chains[0]["stages"]
            if said["step_ns"] != rung["step_ns"]:
                yield f"{name}: its command prints {said['step_ns']}, said is {rung['step_ns']}"
            if most_cp and said["asked"]["cp"] > most_cp:
                yield f"{name}: cp {said['asked']['cp']}, built for {most_cp}"
            if not any(how in line for line in said["asked"]["assumed"]):
                yield f"{name}: the encoder is not '{how}'"
            if len(chains) > 1 or any(part["module"] != "llm" for stage in stages[1:] for part in stage["parts"]):
                yield f"{name}: an encoder lies behind the first stage"
            first = sum(part["layers"] for part in stages[0]["parts"] if part["module"] == "llm")
            if first < least:
                yield f"{name}: {first} layers of the language model on the first stage, {least} are needed"
            if self.construct and name in ("flags", "layout"):
                yield from self.refused(rung, said, folder)

    def refused(self, rung, said, folder):
        """By Megatron Core, of the files that `emit` writes for the rung."""
        sys.path.insert(0, str(ROOT / "tests/python/support"))
        import launch_oracles
        import yaml

        launch = json.loads((folder / "launch.json").read_text())
        asked, stages = said["asked"], said["partition"]["chains"][0]["stages"]
        launch["layout"] |= {key: asked[key] for key in ("tp", "cp", "pp", "dp", "ep")} | {
            "zero": asked["recipe"]["zero"]}
        for module in launch["modules"]:
            module["layers"] = [sum(part["layers"] for part in stage["parts"] if part["module"] == module["module"])
                                for stage in stages]
        launch |= {"rung": rung["rung"], "has_pipeline": asked["pp"] > 1, "policy": said["policy"],
                   "chunks": said["partition"]["chunks_per_rank"], "recompute": said["recompute"],
                   "microbatches": [rung["microbatches"] // asked["dp"]] * asked["dp"],
                   "peak_bytes": [rung["peak_bytes"]] * asked["pp"], "recompute_of_ranks": []}
        with tempfile.TemporaryDirectory() as temporary:
            (Path(temporary) / "launch.json").write_text(json.dumps(launch))
            done = self.program.run("emit", "--plan", temporary, "--target", "megatron", "--out", temporary + "/out")
            if done.returncode != 0:
                yield f"{rung['rung']}: emit: {done.stderr.strip()}"
                return
            words = yaml.safe_load((Path(temporary) / "out/megatron.yaml").read_text())
        fields = fields_of(self.shown, words["model"])
        layers, why = launch_oracles.megatron_verdict(fields, asked["gpus"], 8192, words["train"]["micro_batch_size"],
                                                      words["train"]["global_batch_size"], 152064)
        self.program.count("rungs constructed")
        if why:
            yield f"{rung['rung']}: Megatron Core: {why}"
        wanted = next(module["layers"] for module in launch["modules"] if module["role"] == "language")
        if layers != wanted:
            yield f"{rung['rung']}: Megatron Core builds {layers}, planned is {wanted}"


def fields_of(shown, model):
    """Of Megatron Core's configuration: the network's sizes, and what our file says."""
    network = next(one["architecture"] for one in shown["modules"] if one["architecture"]["kind"] == "llm")
    fields = {"num_layers": network["layers"], "hidden_size": network["hidden"], "ffn_hidden_size": network["ffn"],
              "num_attention_heads": network["heads"], "num_query_groups": network["kv_heads"],
              "kv_channels": network["head_dim"], "add_bias_linear": False, "gated_linear_unit": True}
    if moe := network.get("moe"):
        fields |= {"num_moe_experts": moe["experts"], "moe_ffn_hidden_size": moe["expert_ffn"],
                   "moe_router_topk": moe["top_k"]}
    own_of_bridge = ("vision_dp_when_cp", "seq_length")
    return fields | {key: value for key, value in model.items() if key not in own_of_bridge}


# --- plans

def draws(rng, count, microbatches):
    """Two of five plans are for Megatron, one for each of the other targets."""
    order = ["megatron", "torch-actions", "megatron", "torchtitan", "fsdp2"]
    drawn = dict.fromkeys(order, 0)
    for number in range(count):
        target = order[number % len(order)]
        jobs = OF_BRIDGE if target == "megatron" else OTHERS[target]
        model, cluster, layouts = jobs[drawn[target] % len(jobs)]
        layout = layouts[drawn[target] // len(jobs) % len(layouts)]
        drawn[target] += 1
        data = "t2v-mix" if model.startswith(OF_CLIPS) else "vlm-mix"
        many = microbatches or rng.choice([8, 12])
        batch = ["--global-batch", f"{8 * many}mb"] if target == "fsdp2" else ["--microbatches", str(many)]
        yield target, model, cluster, layout, ["--dataset", data, *batch, "--seed", str(rng.randint(1, 99))]


class Pages(drawn_runs.Drawn):
    def __init__(self, asked):
        super().__init__(asked.binary)
        self.rounds, self.construct = asked.rounds, asked.construct

    def check(self, drawn):
        number, (target, model, cluster, layout, batch), folder = drawn
        name = f"{number} {target} {model} {cluster} {layout}".strip()
        words = ["--model", model, "--cluster", cluster, *layout.split(), *batch, "--target", target, "--max-rounds",
                 str(self.rounds)]
        printed, plan = self.plan(name, words, folder)
        text = printed.split("\nwritten to ")[0]
        pages = {"terminal": list(terminal(text)), "report": list(report((folder / "report.html").read_text()))}
        wrong = unequal(plan, pages) + unworthy(plan) + unnamed_padding(plan, text) + unequal_padding(plan)
        wrong += other_shapes(plan, folder)
        if target == "megatron":
            wrong += Rungs(self, name, model, self.construct).wrong(plan, folder)
        self.wrong += [f"{name}: {one}" for one in wrong]
        return line_of(name, plan, sum(map(len, pages.values())), wrong)


def line_of(name, plan, numbers, wrong):
    ladder = " ".join(f"{rung['rung']} {rung['step_ns'] * 1e-9:.3f}" for rung in plan["ladder"]
                      if "why_nothing" not in rung)
    head = plan["headline"]
    rungs = {rung["rung"]: rung for rung in plan["beyond"] + plan["ladder"]}
    worth = rungs[head["rung"]].get("worth")
    says = "-"
    if worth:
        mixed = ("padding" in rungs[head["rung"]]) != ("padding" in rungs[worth["over"]])
        says = f"{worth['gain']:.3f}x of {worth['over']}{', one padded' if mixed else ''}"
        says += f", {worth['wins']}/{worth['draws']}"
    return f"| {name} | {ladder} | {head['rung']} {says} | {numbers} numbers{', WRONG' if wrong else ''} |"


def main():
    parser = drawn_runs.arguments(__doc__, plans=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--microbatches", type=int, help="of each replica (default: 8 or 12)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--construct", action="store_true", help="by Megatron Core's classes; one plan at a time")
    parser.add_argument("--out", type=Path, help="folder of the plans, which are kept")
    asked = parser.parse_args()
    pages, numbers = Pages(asked), drawn_runs.numbers(asked)
    all_drawn = list(draws(random.Random(asked.seed), numbers.stop, asked.microbatches))
    with tempfile.TemporaryDirectory() as temporary:
        under = asked.out or Path(temporary)
        drawn = [(number, all_drawn[number], under / str(number)) for number in numbers]
        return pages.check_all(pages.check, drawn, 1 if asked.construct else asked.jobs)


if __name__ == "__main__":
    sys.exit(main())
