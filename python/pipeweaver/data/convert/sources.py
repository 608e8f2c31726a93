"""Where samples come from: a folder of files, shards, tables, or annotations."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ...errors import FileError, InputError
from .annotations import Annotations, of_data_sets
from .data_sets import data_sets_of, lists_data_sets
from .energon import blended, is_metadata_set, sets_of_split, shards_of_split
from .entries import document_of, is_json
from .forms import form_named
from .reader import Broken, Reader, Sample
from .tables import table_samples

_shards = (".tar", ".tar.gz", ".tgz")
_tables = (".arrow", ".parquet")


@dataclass(frozen=True)
class Asked:
    """What is read of a source that has several, and how."""

    split: str = "train"
    media: Path | None = None
    form: str = ""
    sets: tuple[str, ...] = ()


def samples_of(source: Path, reader: Reader, asked: Asked) -> Iterator[Sample]:
    """All samples of the source, in its order. Raises InputError, FileError."""
    split = asked.split
    if not source.exists():
        raise FileError(f"{source}: there is no such file or folder")
    if is_metadata_set(source):
        return _of_metadata_set(source, reader, asked)
    if source.is_file():
        files = [source]
    else:
        files = [Path(at) / name for at, _, names in sorted(os.walk(source)) for name in sorted(names)
                 if not name.startswith(".")]
    shards = [file for file in files if file.name.endswith(_shards)]
    tables = [file for file in files if file.name.endswith(_tables)]
    plain = not shards and not tables
    if (annotated := _annotated(source, reader, asked, plain)) is not None:
        return annotated
    for option, value in (("media", asked.media), ("form", asked.form), ("sets", asked.sets)):
        if value:
            raise InputError(f"--{option}: goes with a .json or .jsonl of annotations, {source} is none")
    if shards:
        return _of_shards(source, shards_of_split(source, shards, split), reader)
    if tables:
        return table_samples(source, tables, reader, split)
    if source.is_file():
        raise InputError(f"{source}: is no source of samples; allowed are a folder, .tar, .arrow, .parquet, .json and "
                         ".jsonl")
    return _of_folder(source, files, reader)


def _annotated(source: Path, reader: Reader, asked: Asked, plain: bool) -> Iterator[Sample] | None:
    """None where the source is no file of annotations, and has none that describes it; `plain`: it has no shards and
    tables, which are read before a metadata.jsonl."""
    form = form_named(asked.form) if asked.form else None
    if source.is_dir():
        listed = source / "dataset_info.json"
        if listed.is_file() and lists_data_sets(document_of(listed)):
            return _annotated(listed, reader, asked, plain)
        inside = source / "metadata.jsonl"
        return Annotations(reader, form, asked.media or source).samples(inside) if plain and inside.is_file() else None
    if not is_json(source):
        return None
    document = document_of(source)
    if lists_data_sets(document):
        return of_data_sets(data_sets_of(source, document, asked.sets), reader, form, asked.media)
    if asked.sets:
        raise InputError(f"--sets: goes with a file that lists data sets, {source} is none")
    return Annotations(reader, form, asked.media or source.parent).samples(source)


def _of_metadata_set(source: Path, reader: Reader, asked: Asked) -> Iterator[Sample]:
    """Samples of its data sets in turn, by their weights, until one of them has no more."""
    sets = sets_of_split(source, asked.split)
    if len(sets) > 1:
        reader.met.blended.add(source.name)

    def named(number: int, path: Path, split: str) -> Iterator[Sample]:
        name = f"{number}-{path.name}/" if len(sets) > 1 else ""
        for sample in samples_of(path, reader, replace(asked, split=split)):
            yield sample.named(name + sample.name)

    parts = [named(number, one.path, one.split) for number, one in enumerate(sets)]
    return blended(parts, [one.weight for one in sets])


def _whole(sample: Sample, reader: Reader) -> bool:
    """Whether it is a sample: a group of files without text and items is none."""
    if sample.is_empty():
        reader.passes_over("samples without text and items")
    return not sample.is_empty()


def _opened(path: Path) -> BinaryIO:
    return open(path, "rb")


def _of_folder(source: Path, files: list[Path], reader: Reader) -> Iterator[Sample]:
    """Files of one name but for the ending are a sample."""
    groups: dict[str, list[Path]] = {}
    for file in files:
        groups.setdefault(file.relative_to(source).with_suffix("").as_posix(), []).append(file)
    for name, parts in groups.items():
        sample = Sample(name)
        try:
            for part in parts:
                reader.add(sample, str(part), part.suffix[1:], partial(_opened, part))
        except Broken:
            continue
        if _whole(sample, reader):
            yield sample


def _of_shards(source: Path, shards: list[Path], reader: Reader) -> Iterator[Sample]:
    root = source if source.is_dir() else source.parent
    for shard in shards:
        name = shard.relative_to(root).as_posix()
        name = name[: -len(next(end for end in _shards if name.endswith(end)))]
        try:
            with tarfile.open(shard) as tar:
                yield from _of_shard(tar, shard, name, reader)
        except (tarfile.TarError, EOFError) as error:
            raise InputError(f"{shard}: is no shard that can be read: {_first_line(error)}") from None
        except OSError as error:
            raise FileError(f"{shard}: {error.strerror or error}") from None


def _of_shard(tar: tarfile.TarFile, shard: Path, name: str, reader: Reader) -> Iterator[Sample]:
    """Members of one name up to the first dot are a sample. Data are passed over but for their first bytes."""
    sample: Sample | None = None
    is_broken = False
    for member in tar:
        folder, _, base = member.name.rpartition("/")
        key, dot, ending = base.partition(".")
        if not member.isfile() or not key or not dot:
            continue
        whole = f"{name}/{folder}/{key}" if folder not in ("", ".") else f"{name}/{key}"
        if sample is None or sample.name != whole:
            if sample is not None and not is_broken and _whole(sample, reader):
                yield sample
            sample, is_broken = Sample(whole), False
        if is_broken:
            continue
        try:
            reader.add(sample, f"{shard}:{member.name}", ending, partial(_member, tar, member))
        except Broken:
            is_broken = True
    if sample is not None and not is_broken and _whole(sample, reader):
        yield sample


def _member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> AbstractContextManager[BinaryIO]:
    file = tar.extractfile(member)
    return file if file is not None else io.BytesIO()  # type: ignore[return-value]


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["it ends too early"])[0].rstrip(":")
