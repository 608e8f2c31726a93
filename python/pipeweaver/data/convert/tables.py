"""Samples of a Hugging Face data set on disk: Arrow files as save_to_disk writes them, or Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...errors import FileError, InputError
from .annotations import KEYS_OF_ENTRIES, Annotations
from .forms import ITEMS
from .reader import Broken, Reader, Sample

_rows_at_once = 256  # of a Parquet file: its images are in memory


def table_samples(source: Path, files: list[Path], reader: Reader, split: str) -> Iterator[Sample]:
    """Of all files, or those of one split where folders or names say which they are of."""
    try:
        import pyarrow
    except ImportError:
        raise InputError(
            f"{source}: tables are read with the package pyarrow (pip install pyarrow); allowed without it are folders "
            "of files, .tar shards, .json and .jsonl"
        ) from None
    return _rows(pyarrow, source, _of_split(source, files, split), reader)


def _of_split(source: Path, files: list[Path], split: str) -> list[Path]:
    names = {_split_of(source, file) for file in files} - {""}
    if len(names) <= 1:
        return files
    if split not in names:
        raise InputError(f"--split: is '{split}', {source} has {', '.join(sorted(names))}")
    return [file for file in files if _split_of(source, file) == split]


def _split_of(source: Path, file: Path) -> str:
    """"train" of train/data-00000-of-00002.arrow and of data/train-00000-of-00002.parquet."""
    begin = file.name.split("-")[0]
    if begin != "data" and "-of-" in file.name:
        return begin
    return file.parent.name if file.parent != source else ""


def _rows(pyarrow: Any, source: Path, files: list[Path], reader: Reader) -> Iterator[Sample]:
    root = source if source.is_dir() else source.parent
    for file in files:
        name, number = file.relative_to(root).with_suffix("").as_posix(), 0
        try:
            for batch in _batches(pyarrow, file):
                columns = _Columns(pyarrow, batch.schema, file, reader.keys)
                for row in range(batch.num_rows):
                    sample = Sample(f"{name}/{number}")
                    number += 1
                    try:
                        columns.fill(sample, batch, row, f"{file}: row {number - 1}", reader)
                    except Broken:
                        continue
                    if not sample.is_empty():
                        yield sample
                    else:
                        reader.passes_over("samples without text and items")
        except (pyarrow.ArrowException, OSError) as error:
            kind = FileError if isinstance(error, FileNotFoundError) else InputError
            raise kind(f"{file}: is no table that can be read: {str(error).splitlines()[0]}") from None


def _batches(pyarrow: Any, file: Path) -> Iterator[Any]:
    if file.suffix == ".parquet":
        from pyarrow import parquet

        yield from parquet.ParquetFile(file).iter_batches(batch_size=_rows_at_once)
        return
    with pyarrow.memory_map(str(file)) as mapped:
        try:
            stream = pyarrow.ipc.open_stream(mapped)
        except pyarrow.ArrowInvalid:  # the other form of the format
            table = pyarrow.ipc.open_file(mapped)
            yield from (table.get_batch(i) for i in range(table.num_record_batches))
            return
        yield from stream


class _Columns:
    """Which columns of a table hold the bytes of items, and which are keys as annotations have them."""

    def __init__(self, pyarrow: Any, schema: Any, file: Path, keys: Sequence[str]) -> None:
        self._pyarrow = pyarrow
        self._folder = file.parent
        self._media = [field.name for field in schema if self._is_media(field.type)]
        known = KEYS_OF_ENTRIES - self._names_of_media() | set(keys)
        self._others = [field.name for field in schema if field.name in known and not self._has_bytes(field.type)]

    def _names_of_media(self) -> set[str]:
        """Keys of items that are in the table itself: paths under these are of the same items, or their names alone."""
        held = {ITEMS.get(name) for name in self._media}
        return {key for key, kind in ITEMS.items() if kind in held or (self._media and key == "file_name")}

    def _is_media(self, kind: Any) -> bool:
        """{bytes, path}, as features of images, clips and audio are kept, alone or in a list."""
        types = self._pyarrow.types
        if types.is_list(kind) or types.is_large_list(kind):
            return self._is_media(kind.value_type)
        return bool(types.is_struct(kind)) and {"bytes", "path"} <= {kind.field(i).name for i in range(kind.num_fields)}

    def _has_bytes(self, kind: Any) -> bool:
        types = self._pyarrow.types
        return self._is_media(kind) or bool(types.is_binary(kind) or types.is_large_binary(kind))

    def fill(self, sample: Sample, batch: Any, row: int, place: str, reader: Reader) -> None:
        for name in self._media:
            self._add(sample, batch.column(name)[row], f"{place}, column '{name}'", reader)
        entry = {name: batch.column(name)[row].as_py() for name in self._others}
        present = {name: value for name, value in entry.items() if value is not None}
        Annotations(reader, None, self._folder).fill(sample, present, place, "column '{}'")

    def _add(self, sample: Sample, cell: Any, place: str, reader: Reader) -> None:
        if not cell.is_valid:
            return
        if not self._pyarrow.types.is_struct(cell.type):
            for one in cell:
                self._add(sample, one, place, reader)
            return
        content, path = cell["bytes"], cell["path"].as_py()
        if content.is_valid:
            with self._pyarrow.BufferReader(content.as_buffer()) as file:
                reader.add_media(sample, place, file)
        elif path:
            part = self._folder / path
            try:
                with open(part, "rb") as file:
                    reader.add_media(sample, f"{place}: {part}", file)
            except OSError as error:
                raise FileError(f"{place}: {part}: {error.strerror}") from None
