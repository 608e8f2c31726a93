"""Length and size of a clip from the boxes of an MP4 or MOV file."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

_most_index = 256 << 20  # bytes of a moov box
_most_bytes = 1 << 60  # of a file
_within = (b"moov", b"trak", b"mdia", b"minf", b"stbl")  # boxes of boxes


class BrokenMedia(Exception):
    """What is wrong with a file, to be said behind its name."""


@dataclass(frozen=True)
class Media:
    """One item: `kind` is its list in a batch file."""

    kind: str  # images, videos, audio
    width: int = 0
    height: int = 0
    seconds: float = 0
    fps: float = 0  # 0: not known


@dataclass
class _Track:
    handler: bytes = b""
    width: int = 0
    height: int = 0
    seconds: float = 0
    frames: int = 0


def mp4_media(file: BinaryIO) -> Media:
    """The first track of pictures, else of sound. Raises BrokenMedia."""
    try:
        tracks = _tracks(_moov(file))
    except (struct.error, IndexError, ZeroDivisionError, RecursionError):
        raise BrokenMedia("is cut, or no MP4") from None
    for handler, kind in ((b"vide", "videos"), (b"soun", "audio")):
        for track in tracks:
            if track.handler != handler:
                continue
            if track.seconds <= 0:
                raise BrokenMedia("is in fragments and does not say how long it is")
            if kind == "audio":
                return Media(kind, seconds=track.seconds)
            return Media(kind, track.width, track.height, track.seconds, track.frames / track.seconds)
    raise BrokenMedia("has neither pictures nor sound")


def _moov(file: BinaryIO) -> bytes:
    at = 0
    while True:
        file.seek(at)
        head = file.read(16)
        if len(head) < 8:
            raise BrokenMedia("has no index (moov)")
        size, kind = struct.unpack_from(">I4s", head)
        start = 8
        if size == 1:
            size, start = struct.unpack_from(">Q", head, 8)[0], 16
        if kind == b"moov":
            if not 8 <= size <= _most_index:
                raise BrokenMedia(f"has an index of {size} bytes")
            file.seek(at + start)
            index = file.read(size - start)
            if len(index) < size - start:
                raise BrokenMedia("ends within its index (moov)")
            return index
        if size < start or at + size > _most_bytes:
            raise BrokenMedia("has no index (moov)")
        at += size


def _boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at + 8 <= len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if size < 8 or at + size > len(data):
            raise BrokenMedia("is cut, or no MP4")
        yield kind, data[at + 8 : at + size]
        at += size


def _tracks(moov: bytes) -> list[_Track]:
    tracks = []
    for kind, data in _boxes(moov):
        if kind == b"trak":
            track = _Track()
            _fill(track, data)
            tracks.append(track)
    return tracks


def _fill(track: _Track, data: bytes) -> None:
    for kind, body in _boxes(data):
        if kind in _within:
            _fill(track, body)
        elif kind == b"tkhd":
            width, height = struct.unpack_from(">II", body, len(body) - 8)  # 16.16
            track.width, track.height = width >> 16, height >> 16
        elif kind == b"mdhd":
            form, at = (">IQ", 20) if body[0] == 1 else (">II", 12)
            scale, length = struct.unpack_from(form, body, at)
            track.seconds = length / scale
        elif kind == b"hdlr":
            track.handler = track.handler or body[8:12]
        elif kind == b"stts":
            entries = struct.unpack_from(">I", body, 4)[0]
            track.frames = sum(struct.unpack_from(">I", body, 8 + 8 * entry)[0] for entry in range(entries))
