"""Coefficients of a model on a machine: the emulator prices microbatches of known sizes, least squares do the rest."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._options import Batch, Config
from .._plan import Plan, batch_of, emulate
from ..errors import InputError, LimitError
from .costs import Costs, Quadratic, StageCosts, Times
from .sizes import Items, Sizes

_COUNTS = 8  # of items in a probe, for each size
_SINGLES = 24  # samples of a microbatch of their own, each with one of the complementary size
_OF_FILE = ("dataset", "batch", "microbatches", "global_batch", "global-batch", "seed")  # what a given batch replaces
_OF_BATCH = ("dataset", "batch", "microbatches", "global_batch", "global-batch", "packing", "assignment", "dp")


def coefficients(config: Mapping[str, Any], batch: Batch | None = None, *, policy: str = "1f1b") -> Costs:
    """What a sample costs on every stage of `config`'s pipeline, as `pipeweaver.emulate` prices it on the partition
    that it chooses for this batch (or that `config` names). Takes a second or so: once for a job. The budget of a
    microbatch is `microbatch_tokens` of the configuration, or the model's. `batch` takes the place of the
    configuration's batch or data set. Raises InputError, FileError, LimitError."""
    if not isinstance(config, Mapping):
        raise InputError("configuration: allowed are keys and values, as of `pipeweaver plan`")
    if batch is not None:
        config = {key: value for key, value in config.items() if key not in _OF_FILE}
    with tempfile.TemporaryDirectory() as folder:
        cut = emulate(config, batch, policy=policy, out=folder)
        samples = batch_of(config) if batch is None else batch_of({**config, "batch": _written(batch, folder)})
        fixed = {key: value for key, value in config.items() if key not in _OF_BATCH}
        fixed.update(partition=os.path.join(folder, "partition.json"), packing="given", assignment="in-turn")
        layout = cut.summary["asked"]
        fixed.update(tp=layout["tp"], pp=layout["pp"], dp=layout["dp"])
        probes = _probes(samples, _budget(cut))
        return _fitted(_priced(fixed, probes, policy), probes)


def _priced(config: Mapping[str, Any], probes: list[dict[str, Any]], policy: str) -> Plan:
    """What passes take does not depend on their order: where the policy's has no memory for the probes, which are full
    microbatches, it is one that waits for memory."""
    try:
        return emulate(config, probes, policy=policy)
    except LimitError:
        return emulate(config, probes, policy="dual-queue")


def _written(batch: Batch, folder: str) -> str:
    if isinstance(batch, (str, os.PathLike)):
        return os.fspath(batch)
    from .._options import as_batch

    path = os.path.join(folder, "batch.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        file.write(as_batch(batch)[1] or "")
    return path


def _budget(cut: Plan) -> int:
    """The most that any microbatch of the batch has, at least what one sample has."""
    return max(int(one["tokens"]) for mine in cut.assignment["replicas"] for one in mine["microbatches"])


def _probes(samples: list[dict[str, Any]], budget: int) -> list[dict[str, Any]]:
    """Microbatches of one text each and of many, and of one sample with few and with many items. In turn a short one
    and one that does not fit beside its neighbours, so that each is a microbatch of its own."""
    probes: list[dict[str, Any]] = []

    def add(tokens: int, items: Mapping[str, list[dict[str, Any]]]) -> None:
        text = tokens - sum(int(item["tokens"]) for all_of in items.values() for item in all_of)
        if text >= 0:
            probes.append({"id": f"p{len(probes)}", "text_tokens": text, **items})

    for step in range(1, _SINGLES + 1):
        short = budget * step // (2 * _SINGLES + 2)
        add(short, {})
        add(budget - short + 1 if step > 1 else budget, {})
    for parts in (2, 4, 8, 16):
        for _ in range(parts):
            add(budget // parts, {})
    for kind, items in _kinds(samples):
        for item in items:
            most = max(1, budget // max(1, int(item["tokens"])))
            for part in range(1, _COUNTS + 1):
                add(budget, {kind: [item] * max(1, most * part // _COUNTS)})
    return probes


def _kinds(samples: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Of each kind of items that the samples have: some of the sizes that occur, the largest among them, and one of
    half as many patches, which tells squares from lengths."""
    found = []
    for kind in ("images", "videos", "audio"):
        items = [item for sample in samples for item in sample.get(kind, ())]
        if items:
            items.sort(key=lambda item: (item["patches"], item["tokens"]))
            some = [items[len(items) * part // 4] for part in (1, 2, 3)] + [items[-1]]
            half = {**some[0], "patches": max(1, int(some[0]["patches"]) // 2)}
            found.append((kind, [half, *some]))
    return found


def _fitted(plan: Plan, probes: list[dict[str, Any]]) -> Costs:
    sizes = Sizes.of(probes)
    kinds = list(sizes.items)
    places = {id: place for place, id in enumerate(sizes.ids)}
    rows, forwards, times = [], 0.0, []
    for replica, mine in zip(plan.replicas, plan.assignment["replicas"]):
        of_stages, forward = _stage_times(replica)
        forwards += forward
        times.append(of_stages)
        for microbatch in mine["microbatches"]:
            rows.append(_features(sizes, [places[one["id"]] for one in microbatch["samples"]]))
    features, measured = np.array(rows), np.concatenate(times)
    stages = [_stage(_least_squares(features, measured[:, stage]), kinds) for stage in range(measured.shape[1])]
    return Costs(tuple(stages), forwards / float(measured.sum()))


def _stage_times(replica: Any) -> tuple[Times, float]:
    """[microbatch, stage] forward and backward, and what all forwards take."""
    tasks = replica.problem.to_dict()["tasks"]
    durations = replica.solution.duration_ns
    shape = (1 + max(task["microbatch"] for task in tasks), 1 + max(task["stage"] for task in tasks))
    times = np.zeros(shape)
    forward = 0.0
    for task, duration in zip(tasks, durations):
        times[task["microbatch"], task["stage"]] += duration
        forward += float(duration) if task["kind"] == "F" else 0.0
    return times, forward


def _features(sizes: Sizes, places: list[int]) -> list[float]:
    """Squares, lengths and number of the samples, then of the items of each kind, and the microbatch itself."""
    lengths = [sizes.tokens[places], *(_items_of(items, places) for items in sizes.items.values())]
    each = [[float((all**2).sum()), float(all.sum()), float(len(all))] for all in lengths]
    return [value for three in each for value in three] + [1.0]


def _items_of(items: Items, places: list[int]) -> Any:
    ends = np.cumsum(items.counts)
    return np.concatenate([items.lengths[ends[place] - items.counts[place] : ends[place]] for place in places])


def _least_squares(features: Times, measured: Times) -> Times:
    """Coefficients from 0, in relative errors: what comes out negative is left out, one after the other."""
    weight = 1 / np.maximum(measured, 1e-3 * measured.max())  # a stage has nothing to do with some
    weighted, target = features * weight[:, None], measured * weight
    found = np.zeros(features.shape[1])
    open_to = [column for column in range(features.shape[1]) if features[:, column].any()]
    while open_to:
        scale = weighted[:, open_to].max(axis=0)
        solved = np.linalg.lstsq(weighted[:, open_to] / scale, target, rcond=None)[0] / scale
        if (solved >= 0).all():
            found[open_to] = solved
            return found
        open_to.pop(int(np.argmin(solved * scale)))
    raise InputError("coefficients: nothing that is measured grows with the sizes")


def _stage(found: Times, kinds: list[str]) -> StageCosts:
    values = [float(value) for value in found]
    items = {kind: Quadratic(*values[3 + 3 * k : 6 + 3 * k]) for k, kind in enumerate(kinds)}
    return StageCosts(Quadratic(*values[:3]), items, values[-1])
