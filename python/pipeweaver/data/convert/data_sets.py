"""Files that list data sets: dataset_info.json of LLaMA-Factory, and the meta files of InternVL's trainings.

Source: src/llamafactory/data/parser.py of hiyouga/LLaMA-Factory; internvl/train/internvl_chat_finetune.py of
OpenGVLab/InternVL (data_augment and the like say nothing of sizes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import InputError
from .forms import Form, form_named

_elsewhere = ("hf_hub_url", "ms_hub_url", "om_hub_url", "script_url", "cloud_file_name")
_columns = ("messages", "prompt", "query", "response", "history", "system", "images", "videos", "audios", "chosen",
            "rejected")
_usual = {"sharegpt": {"messages": "conversations"},
          "alpaca": {"prompt": "instruction", "query": "input", "response": "output"}}
_ours = {"messages": "conversations", "prompt": "instruction", "query": "input", "response": "output"}


@dataclass
class DataSet:
    """One of a list. `place` names it in errors."""

    name: str
    place: str
    file: Path
    media: Path
    times: float = 1  # how often its samples are taken; below 1: the first part of them
    form: Form | None = None
    keys: dict[str, str] = field(default_factory=dict)  # what an entry calls one of the forms' keys
    content: str = "value"  # the key of a turn's text


def lists_data_sets(document: Any) -> bool:
    """Whether it is such a file."""
    return isinstance(document, dict) and bool(document) and all(
        isinstance(one, dict) and any(isinstance(one.get(key), str) for key in ("annotation", "file_name", *_elsewhere))
        for one in document.values())


def data_sets_of(source: Path, document: Mapping[str, Any], names: Sequence[str]) -> list[DataSet]:
    """Those that are named; none: all. Raises InputError. Pre: the document lists data sets."""
    missing = next((name for name in names if name not in document), None)
    if missing is not None:
        raise InputError(f"--sets: {source} has no '{missing}', it has {', '.join(document)}")
    wanted = list(names) or list(document)
    if not names and len(document) > 1 and not all("annotation" in one for one in document.values()):
        raise InputError(f"{source}: lists {len(document)} data sets; --sets takes some of {', '.join(document)}")
    return [_data_set(source, name, document[name]) for name in wanted]


def _data_set(source: Path, name: str, given: Mapping[str, Any]) -> DataSet:
    place = f"{source}: {name}"
    if isinstance(given.get("annotation"), str):
        times = given.get("repeat_time", 1)
        if not isinstance(times, (int, float)) or isinstance(times, bool) or not 0 < times <= 1000:
            raise InputError(f"{place}: repeat_time is {times!r}, must be a number above 0 to 1000")
        media = _beside(source, str(given.get("root", "")))
        return DataSet(name, place, _beside(source, given["annotation"]), media, times)
    if not isinstance(given.get("file_name"), str):
        where = next(key for key in _elsewhere if key in given)
        raise InputError(f"{place}: has {where}, and nothing is downloaded; allowed is file_name")
    formatting = given.get("formatting", "alpaca")
    if formatting not in ("alpaca", "sharegpt"):
        raise InputError(f"{place}: formatting is '{formatting}', allowed are alpaca and sharegpt")
    columns, tags = given.get("columns") or {}, given.get("tags") or {}
    if not isinstance(columns, dict) or not isinstance(tags, dict):
        raise InputError(f"{place}: columns and tags: must be objects")
    named = {**_usual[formatting], **columns}
    keys = {str(named[column]): _ours.get(column, column) for column in _columns if named.get(column)}
    return DataSet(name, place, source.parent / given["file_name"], source.parent,
                   form=form_named("sharegpt" if formatting == "sharegpt" else "alpaca"), keys=keys,
                   content=str(tags.get("content_tag", "value")))


def _beside(source: Path, path: str) -> Path:
    """Relative to the file, else to the folder in which the command runs, as trainings take it."""
    beside = source.parent / path
    return Path(path) if not beside.exists() and Path(path).exists() else beside


def standard(entry: Mapping[str, Any], of: DataSet) -> dict[str, Any]:
    """The entry with the keys of its form in place of its own."""
    known = {of.keys.get(key, key): value for key, value in entry.items()}
    turns = known.get("conversations")
    if of.content != "value" and isinstance(turns, list):
        known["conversations"] = [{"value": turn.get(of.content)} if isinstance(turn, dict) else turn
                                  for turn in turns]
    return known
