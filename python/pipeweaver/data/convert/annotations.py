"""Samples of annotations: entries that name files, or say how large these are."""

from __future__ import annotations

import base64
import binascii
import io
import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import FileError, InputError
from .data_sets import DataSet, standard
from .entries import Unreadable, entries_of
from .forms import FORMS, ITEMS, REJECTED, Form, form_of, is_of, texts_of
from .items import SIZES, Named, named_in, size_of
from .reader import MEDIA, NOT_READ, Broken, Reader, Sample
from .texts import KEYS

# All that is looked at in an entry.
KEYS_OF_ENTRIES = frozenset([*ITEMS, *KEYS, *SIZES, *REJECTED, *(key for form in FORMS for key in form.keys())])
_most_shown = 300  # characters of a path: base64 may stand in its place
_address = re.compile(r"(?!file:)\w+://")


@dataclass
class Annotations:
    """Reads entries of one form, or each by its own keys."""

    reader: Reader
    form: Form | None
    media: Path
    of: DataSet | None = None  # that the entries are of

    def samples(self, source: Path, before: str = "") -> Iterator[Sample]:
        """Of a file, in its order; `before` their names."""
        names: Counter[str] = Counter()
        for number, (place, entry) in enumerate(entries_of(source)):
            try:
                sample = self._sample(before, number, place, entry, source.name)
            except Broken:
                continue
            if sample.is_empty():
                self.reader.passes_over("samples without text and items")
                continue
            names[sample.name] += 1
            if names[sample.name] > 1:  # as where several questions are of one image
                sample.name += f"#{names[sample.name]}"
            yield sample

    def _sample(self, before: str, number: int, place: str, entry: Any, source: str) -> Sample:
        if isinstance(entry, Unreadable):
            self.reader.breaks(str(entry))
        if not isinstance(entry, dict):
            self.reader.breaks(f"{place}: is no object")
        if self.of:
            entry = standard(entry, self.of)
        name = entry.get("id", entry.get("file_name"))
        sample = Sample(before + str(number if name is None or name == "" else name))
        self.fill(sample, entry, place, "'{}' of " + source)
        return sample

    def fill(self, sample: Sample, entry: Mapping[str, Any], place: str, where: str) -> None:
        """Adds the entry's tokens and items, those of kinds alone that the sample has none of yet, as a table's row has
        the files themselves; `where` its texts are, with a place for their key. Raises Broken, InputError, FileError.
        """
        form = self.form or form_of(entry)
        if not is_of(form, entry):
            wanted = " and ".join(f"'{key}'" for key in form.needs)
            self.reader.breaks(f"{place}: lacks {wanted}, which entries of the form {form.name} have")
        self.reader.met.forms.add(form.name)
        self.reader.met.rejected += any(entry.get(key) for key in REJECTED)
        sample.text = self.reader.tokens_by(entry, texts_of(form, entry), where)
        self._add_items(sample, entry, place)

    def _add_items(self, sample: Sample, entry: Mapping[str, Any], place: str) -> None:
        items = [one for one in named_in(entry) if not sample.items[one.kind]]
        of = Counter(one.kind for one in items)
        number: Counter[str] = Counter()
        mixed = bool(of["images"] and of["videos"])  # then a size of the entry's is not said of one of them
        for one in items:
            try:
                size = size_of(one, number[one.kind], 0 if mixed else of[one.kind], entry, place)
            except InputError as error:
                self.reader.breaks(str(error))
            number[one.kind] += 1
            if size is not None and (one.kind == "images" or one.frames or not _is_picture(one.path)):
                self.reader.add_sized(sample, one.kind, size)
            else:
                self._add_file(sample, one, entry, place)

    def _add_file(self, sample: Sample, one: Named, entry: Mapping[str, Any], place: str) -> None:
        if one.path.startswith("data:"):
            self.reader.add_media(sample, place, io.BytesIO(self._inline(one.path, place)))
            return
        if _address.match(one.path):
            self.reader.breaks(f"{place}: {one.path} is an address; allowed are files, or addresses of items whose "
                               "width and height are said")
        part = self.media / one.path.removeprefix("file://")
        ending = part.suffix[1:].lower()
        if ending not in MEDIA | NOT_READ:
            allowed = ", ".join(sorted(MEDIA))
            ending = part.suffix or "no ending"
            self.reader.breaks(f"{place}: {str(part)[:_most_shown]}: {ending} is not read, allowed are {allowed}")
        if not one.frames:
            self.reader.add(sample, f"{place}: {part}", ending, partial(_opened, part))
            return
        first = Sample("")
        self.reader.add(first, f"{place}: {part}", ending, partial(_opened, part))
        sides = first.items["images"][0]
        whole = Named("videos", one.path, {**one.said, **sides}, one.frames)
        size = size_of(whole, 0, 1, entry, place)
        assert size is not None
        self.reader.add_sized(sample, "videos", size)

    def _inline(self, path: str, place: str) -> bytes:
        """Of data:image/png;base64,..."""
        head, _, data = path.partition(",")
        try:
            if not head.endswith(";base64"):
                raise ValueError("it is no base64")
            return base64.b64decode(data, validate=True)
        except (ValueError, binascii.Error) as error:
            self.reader.breaks(f"{place}: {head[:40]} cannot be read: {error}")


def _is_picture(path: str) -> bool:
    return path.lower().endswith((".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff"))


def _opened(path: Path) -> BinaryIO:
    return open(path, "rb")


def of_data_sets(sets: list[DataSet], reader: Reader, form: Form | None, media: Path | None) -> Iterator[Sample]:
    """Of several, one after the other, each as often as it says."""
    for one in sets:
        if not one.file.is_file():
            raise FileError(f"{one.place}: {one.file}: there is no such file")
        own = Annotations(reader, form or one.form, media / one.media if media else one.media, one)
        samples = own.samples(one.file, f"{one.name}/")
        yield from _repeated(samples, int(one.times)) if one.times >= 1 else _first_part(samples, one.times)


def _repeated(samples: Iterator[Sample], times: int) -> Iterator[Sample]:
    kept: list[Sample] = []
    for sample in samples:
        if times > 1:
            kept.append(sample)
        yield sample
    for time in range(2, times + 1):
        yield from (sample.named(f"{sample.name}@{time}") for sample in kept)


def _first_part(samples: Iterator[Sample], part: float) -> Iterator[Sample]:
    """Each as soon as enough others are known to follow it. Pre: 0 < part < 1."""
    kept: deque[Sample] = deque()
    given = 0
    for number, sample in enumerate(samples, 1):
        kept.append(sample)
        while given < int(number * part):
            given += 1
            yield kept.popleft()

