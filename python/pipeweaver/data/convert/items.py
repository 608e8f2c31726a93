"""Items that an entry of annotations names: where each lies, and how large the entry says it is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import InputError
from .forms import ITEMS
from .headers import MOST_PIXELS

_parts = {"image_url": "images", "video_url": "videos", "audio_url": "audio", "input_audio": "audio"}
_places = ("path", "url", "file_name", "data", "image", "video", "audio")
_nested = ("messages", "conversations", "content")
_frames = ("frames", "num_frames", "n_frames", "nframes")
_seconds = ("seconds", "duration")
SIZES = ("width", "height", "width_list", "height_list", "fps", *_frames, *_seconds)
_most_frames = 100_000_000
_most_rate = 10_000
_most_seconds = 1e6
usual_rate = 2.0  # frames a second of a clip that is a list of frames: what Qwen's processors read of clips


@dataclass
class Named:
    """An item by name. `said`: what its own object says of it."""

    kind: str
    path: str
    said: Mapping[str, Any] = field(default_factory=dict)
    frames: int = 0  # of a clip that is a list of pictures, of which `path` is the first


def named_in(entry: Any) -> Iterator[Named]:
    """Of an entry, and of parts of messages that are no text, in their order."""
    if isinstance(entry, list):
        for one in entry:
            yield from named_in(one)
    elif isinstance(entry, dict):
        for key, kind in (*ITEMS.items(), *_parts.items()):
            yield from _named(entry.get(key), kind, entry, key == "video")
        kind = ITEMS.get(str(entry.get("type")), "")
        if kind and entry["type"] not in entry and isinstance(entry.get("type"), str):
            yield from _named({key: entry[key] for key in ("path", "url") if key in entry}, kind, entry, False)
        for key in _nested:
            if not isinstance(entry.get(key), str):
                yield from named_in(entry.get(key))


def _named(value: Any, kind: str, around: Mapping[str, Any], alone: bool) -> Iterator[Named]:
    """`alone`: a list of pictures is one clip."""
    if isinstance(value, str) and value:
        yield Named(kind, value, around if "type" in around else {})
    elif isinstance(value, list) and value:
        if kind == "videos" and alone and all(isinstance(one, str) for one in value) and _is_picture(value[0]):
            yield Named(kind, value[0], around if "type" in around else {}, len(value))
            return
        for one in value:
            yield from _named(one, kind, around, True)
    elif isinstance(value, dict):
        place = next((key for key in _places if isinstance(value.get(key), str)), "")
        path = value[place] if place else ""
        if path:
            inline = place == "data" and not set(".:") & set(path)  # base64 alone, as in input_audio
            yield Named(kind, f"data:;base64,{path}" if inline else path, value)


def _is_picture(path: str) -> bool:
    return path.lower().endswith((".jpg", ".jpeg", ".png", ".webp", ".bmp"))


def size_of(one: Named, number: int, of: int, entry: Mapping[str, Any], place: str) -> dict[str, Any] | None:
    """What a batch file has of item `number` of `of` of its kind, where the entry says enough; else None. Raises
    InputError where what it says cannot be."""
    said = _Said(place, one, number, of, entry)
    size: dict[str, Any] = {}
    if one.kind != "audio":
        width, height = said.side("width"), said.side("height")
        if width is None or height is None:
            return None
        size = {"width": width, "height": height}
    return size if one.kind == "images" else said.length(size)


def _unquoted(value: Any) -> Any:
    """The number of a text; None of another text, as "00:01:30", so that the file says its size."""
    if not isinstance(value, str):
        return value
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


class _Said:
    """Values by the item's own object, else by the entry's, which may be lists."""

    def __init__(self, place: str, one: Named, number: int, of: int, entry: Mapping[str, Any]) -> None:
        self._place, self._one, self._number, self._of, self._entry = place, one, number, of, entry

    def side(self, key: str) -> int | None:
        return self._whole((key, f"{key}_list"), MOST_PIXELS)

    def length(self, size: dict[str, Any]) -> dict[str, Any] | None:
        frames = self._one.frames or self._whole(_frames, _most_frames)
        rate, seconds = self._number_of(("fps",), _most_rate), self._number_of(_seconds, _most_seconds)
        if self._one.kind == "audio":
            return None if seconds is None else {"seconds": seconds}
        if frames and (rate or self._one.frames):
            return {"frames": frames, "fps": rate or usual_rate, **size}
        if frames and seconds:
            return {"frames": frames, "fps": max(0.001, round(frames / seconds, 3)), **size}
        if seconds:
            return {"seconds": seconds, **({"fps": rate} if rate else {}), **size}
        return None

    def _whole(self, keys: tuple[str, ...], most: int) -> int | None:
        key, value = self._found(keys)
        value = _unquoted(value)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= most:
            raise InputError(f"{self._place}: {key} is {value!r}, must be a whole number from 1 to {most}")
        return value

    def _number_of(self, keys: tuple[str, ...], most: float) -> float | None:
        key, value = self._found(keys)
        value = _unquoted(value)
        if value is None:
            return None
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0.001 <= value <= most:
            raise InputError(f"{self._place}: {key} is {value!r}, must be a number from 0.001 to {most:g}")
        return value

    def _found(self, keys: tuple[str, ...]) -> tuple[str, Any]:
        for key in keys:
            if self._one.said.get(key) is not None:
                return key, self._one.said[key]
        for key in keys:
            value = self._entry.get(key)
            if isinstance(value, list) and self._of > 0:
                if len(value) != self._of:
                    raise InputError(f"{self._place}: {key} has {len(value)} values for {self._of} items")
                return key, value[self._number]
            if value is not None and not isinstance(value, list) and self._of == 1:
                return key, value
        return keys[0], None
