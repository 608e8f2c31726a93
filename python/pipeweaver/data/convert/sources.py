"""Where samples come from: a folder of files, shards, tables, or annotations."""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ...errors import FileError, InputError, NotBuiltError
from .annotations import Annotations, of_data_sets
from .data_sets import data_sets_of, lists_data_sets
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
    if source.is_file():
        files = [source]
    else:
        files = [Path(at) / name for at, _, names in sorted(os.walk(source)) for name in sorted(names)
                 if not name.startswith(".")]
    shards = [file for file in files if file.name.endswith(_shards)]
    tables = [file for file in files if file.name.endswith(_tables)]
    if (annotated := _annotated(source, reader, asked)) is not None:
        return annotated
    for option, value in (("media", asked.media), ("form", asked.form), ("sets", asked.sets)):
        if value:
            raise InputError(f"--{option}: goes with a .json or .jsonl of annotations, {source} is none")
    if shards:
        return _of_shards(source, _of_split(source, shards, split), reader)
    if tables:
        return table_samples(source, tables, reader, split)
    if source.is_file():
        raise InputError(f"{source}: is no source of samples; allowed are a folder, .tar, .arrow, .parquet, .json and "
                         ".jsonl")
    return _of_folder(source, files, reader)


def _annotated(source: Path, reader: Reader, asked: Asked) -> Iterator[Sample] | None:
    """None where the source is no file of annotations, and has none that describes it."""
    form = form_named(asked.form) if asked.form else None
    if source.is_dir():
        listed = source / "dataset_info.json"
        if listed.is_file() and lists_data_sets(document_of(listed)):
            return _annotated(listed, reader, asked)
        inside = source / "metadata.jsonl"
        return Annotations(reader, form, asked.media or source).samples(inside) if inside.is_file() else None
    if not is_json(source):
        return None
    document = document_of(source)
    if lists_data_sets(document):
        return of_data_sets(data_sets_of(source, document, asked.sets), reader, form, asked.media)
    if asked.sets:
        raise InputError(f"--sets: goes with a file that lists data sets, {source} is none")
    return Annotations(reader, form, asked.media or source.parent).samples(source)


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


def _of_split(source: Path, shards: list[Path], split: str) -> list[Path]:
    """Of an Energon data set the shards of one split; else all."""
    document = source / ".nv-meta" / "split.yaml"
    if not document.is_file():
        return shards
    given = json.loads(_read_yaml(document))
    parts = given.get("split_parts", {}) if isinstance(given, dict) else {}
    if split not in parts:
        raise InputError(f"--split: is '{split}', {document} has {', '.join(parts) or 'none'}")
    excluded = {name for one in given.get("exclude") or [] for name in _expanded(str(one))}
    wanted = [name for one in parts[split] or [] for name in _expanded(str(one)) if name not in excluded]
    missing = next((name for name in wanted if not (source / name).is_file()), None)
    if missing is not None:
        raise InputError(f"{document}: names {missing}, which is not there")
    if not wanted:
        raise InputError(f"{document}: split '{split}' has no shards")
    return [source / name for name in wanted]


def _read_yaml(document: Path) -> str:
    """The document as JSON."""
    try:
        from ... import _core
    except NotBuiltError:
        raise InputError(
            f"{document}: YAML is read by the compiled part, which `pip install .` in the checkout builds; allowed "
            "without it is a folder of shards without .nv-meta") from None
    return _core.read_document(str(document))


def _expanded(name: str) -> Iterator[str]:
    """shard_{000..010}.tar"""
    found = re.search(r"\{(\d+)\.\.(\d+)\}", name)
    if not found:
        yield name
        return
    for number in range(int(found[1]), int(found[2]) + 1):
        yield from _expanded(name[: found.start()] + str(number).zfill(len(found[1])) + name[found.end() :])


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["it ends too early"])[0].rstrip(":")
