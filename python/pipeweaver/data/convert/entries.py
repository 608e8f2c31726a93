"""Entries of .json and .jsonl files, with the place of each."""

from __future__ import annotations

import codecs
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import FileError, InputError

ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz")


class Unreadable(InputError):
    """A line that is no JSON."""


def is_json(source: Path) -> bool:
    return source.name.endswith(ENDINGS)


def entries_of(source: Path) -> Iterator[tuple[str, Any]]:
    """A list's objects or one a line, whichever the file holds. A line that is no JSON is given as the Unreadable that
    says so; raises InputError where a whole file is none, FileError."""
    try:
        with _opened(source) as file:
            if _start_of(file).startswith(b"["):
                yield from _of_list(source, _loaded(file.read(), str(source)))
            elif source.name.endswith((".json", ".json.gz")) and document_of(source) is not None:
                raise InputError(f"{source}: is no list of objects; allowed are a list of them, or a .jsonl with one a "
                                 "line")
            else:
                yield from _of_lines(source, file)
    except (OSError, EOFError) as error:
        raise FileError(f"{source}: {getattr(error, 'strerror', None) or error}") from None


def document_of(source: Path) -> Any:
    """The one object of a file; None where it holds something else, as entries, of which no more than the first is
    read. Raises FileError."""
    try:
        with _opened(source) as file:
            if not _start_of(file).startswith(b"{"):
                return None
            lines = (line for line in file if line.strip())
            first = next(lines)
            more = next(lines, b"")
            if more and _is_whole(first):
                return None
            return json.loads(first + more + file.read())
    except ValueError:
        return None
    except (OSError, EOFError) as error:
        raise FileError(f"{source}: {getattr(error, 'strerror', None) or error}") from None


def _opened(source: Path) -> BinaryIO:
    return gzip.open(source) if source.suffix == ".gz" else open(source, "rb")  # type: ignore[return-value]


def _start_of(file: BinaryIO) -> bytes:
    """Its first bytes that are no blanks; it then stands behind its byte order mark, where it has one."""
    start = file.read(4096)
    mark = len(codecs.BOM_UTF8) if start.startswith(codecs.BOM_UTF8) else 0
    file.seek(mark)
    return start[mark:].lstrip()


def _is_whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _of_list(source: Path, given: list[Any]) -> Iterator[tuple[str, Any]]:
    for number, one in enumerate(given):
        yield f"{source}[{number}]", one


def _of_lines(source: Path, file: BinaryIO) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        place = f"{source}:{number}"
        try:
            yield place, json.loads(line)
        except ValueError as error:
            yield place, Unreadable(f"{place}: is no JSON: {error}")


def _loaded(data: bytes, source: str) -> list[Any]:
    try:
        given = json.loads(data)
    except json.JSONDecodeError as error:
        raise InputError(f"{source}:{error.lineno}: is no JSON: {error.msg}") from None
    except ValueError as error:
        raise InputError(f"{source}: is no JSON: {error}") from None
    return list(given)
