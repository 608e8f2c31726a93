"""Files, members of shards and cells of tables as items and tokens of a sample, and what was met on the way."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NoReturn

from ...errors import FileError, InputError
from .headers import BrokenMedia, Media, media_of
from .texts import KEYS, Count, key_in, texts_in

MEDIA = frozenset("jpg jpeg png webp gif bmp tif tiff mp4 mov m4v m4a wav flac".split())
NOT_READ = frozenset("avif heic heif jxl mkv webm avi mpg mpeg ts mp3 ogg opus aac".split())
TEXTS = frozenset(["txt", "caption"])
_kinds = ("images", "videos", "audio")
_most_seconds = 1e6
_most_text = 64 << 20  # bytes


Opened = Callable[[], AbstractContextManager[BinaryIO]]


class Broken(Exception):
    """A sample with an item that cannot be read, where such samples are left out."""


@dataclass
class Met:
    """What was met while samples were read."""

    passed_over: Counter[str] = field(default_factory=Counter)  # files by their endings
    text_from: set[str] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)  # what is wrong with each
    not_read: Counter[str] = field(default_factory=Counter)  # samples left out, by endings of media
    forms: set[str] = field(default_factory=set)  # of annotations
    sized: int = 0  # items whose sizes are those of annotations
    blended: set[str] = field(default_factory=set)  # metadata sets of several data sets
    rejected: int = 0  # samples with a second answer, which is not counted


class Sample:
    """One line of a batch file in the making."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.items: dict[str, list[dict[str, Any]]] = {kind: [] for kind in _kinds}
        self.text: int | None = None
        self.from_document: int | None = None  # tokens of a .json, which a .txt beside it is taken before

    def named(self, name: str) -> Sample:
        """The same under another name."""
        other = Sample(name)
        other.items, other.text, other.from_document = self.items, self.text, self.from_document
        return other

    def tokens(self) -> int:
        return next((count for count in (self.text, self.from_document) if count is not None), 0)

    def is_empty(self) -> bool:
        return self.tokens() == 0 and not any(self.items.values())

    def line(self) -> dict[str, Any]:
        items = {kind: items for kind, items in self.items.items() if items}
        return {"id": self.name, "text_tokens": self.tokens(), **items}


class Reader:
    """Adds what it reads to samples. `keys` name the text of a document; none: those in use."""

    def __init__(self, count: Count, keys: Sequence[str], target: bool, skip_broken: bool) -> None:
        self.met = Met()
        self._count = count
        self.keys = keys or KEYS
        self._keys_said = bool(keys)
        self._target = target
        self._skip_broken = skip_broken

    def add(self, sample: Sample, place: str, ending: str, opened: Opened) -> None:
        """A file by its ending; `place` names it in errors."""
        ending = ending.lower()
        last = ending.rpartition(".")[2]  # of 0001.left.jpg in a shard
        if last in NOT_READ:
            self._leave_out(place, last)
        if last not in MEDIA and last not in TEXTS and last != "json":
            self.met.passed_over[last] += 1
            return
        try:
            with opened() as file:
                if last in MEDIA:
                    self.add_media(sample, place, file)
                else:
                    self._add_text_file(sample, place, last, file.read(_most_text))
        except OSError as error:
            raise FileError(f"{place}: {error.strerror or error}") from None

    def _leave_out(self, place: str, ending: str) -> NoReturn:
        if self._skip_broken:
            self.met.not_read[ending] += 1
            raise Broken
        allowed = ", ".join(sorted(MEDIA))
        raise InputError(f"{place}: .{ending} is not read, allowed are {allowed}; --skip-broken leaves out such "
                         "samples")

    def add_media(self, sample: Sample, place: str, file: BinaryIO) -> None:
        try:
            media = media_of(file)
            if media is None:
                raise BrokenMedia("is no image, clip or audio that is read")
            sample.items[media.kind].append(self._item(media))
        except BrokenMedia as error:
            self.breaks(f"{place}: {error}")

    def breaks(self, what: str) -> NoReturn:
        """Leaves the sample out, or ends all. Raises Broken, InputError."""
        self.met.broken.append(what)
        if self._skip_broken:
            raise Broken from None
        raise InputError(f"{what}; --skip-broken leaves out samples that cannot be read") from None

    def add_sized(self, sample: Sample, kind: str, size: dict[str, Any]) -> None:
        """An item of the size that an annotation says."""
        self.met.sized += 1
        sample.items[kind].append({**size, "role": "target"} if self._target else size)

    def _item(self, media: Media) -> dict[str, Any]:
        item: dict[str, Any] = {}
        if media.kind != "images":
            if not 0 < media.seconds <= _most_seconds:
                raise BrokenMedia(f"says that it is {media.seconds:g} s long")
            item["seconds"] = max(0.001, round(media.seconds, 3))
        if media.fps > 0:
            item["fps"] = max(0.001, round(media.fps, 3))
        if media.width > 0:
            item.update(width=media.width, height=media.height)
        if self._target:
            item["role"] = "target"
        return item

    def _add_text_file(self, sample: Sample, place: str, ending: str, data: bytes) -> None:
        try:
            text = data.decode()
            if ending == "json":
                document = json.loads(text)
        except ValueError as error:
            raise InputError(f"{place}: is no {'JSON' if ending == 'json' else 'UTF-8'}: {error}") from None
        if ending != "json":
            if not self._keys_said:
                self.met.text_from.add(f".{ending} files")
                sample.text = (sample.text or 0) + self.tokens_of(text)
        elif isinstance(document, Mapping):
            tokens = self.tokens_in(document, "'{}' of .json files")
            if tokens is not None:
                sample.from_document = (sample.from_document or 0) + tokens

    def tokens_in(self, document: Mapping[str, Any], where: str) -> int | None:
        """Of the keys' texts: all of those that are named, else the first of those in use that there is."""
        first = key_in(document, self.keys)
        keys = [key for key in self.keys if document.get(key)] if self._keys_said else [first] if first else []
        for key in keys:
            self.met.text_from.add(where.format(key))
        return sum(self.tokens_of(document[key]) for key in keys) if keys else None

    def tokens_by(self, document: Mapping[str, Any], keys: Sequence[str], where: str) -> int | None:
        """Of all texts under `keys`, where no others were named."""
        if self._keys_said or not keys:
            return self.tokens_in(document, where)
        held = [key for key in keys if document.get(key)]
        self.met.text_from.update(where.format(key) for key in held)
        return sum(self.tokens_of(document[key]) for key in held)

    def tokens_of(self, value: Any) -> int:
        return sum(self._count(text) for text in texts_in(value))

    def passes_over(self, what: str) -> None:
        self.met.passed_over[what] += 1
