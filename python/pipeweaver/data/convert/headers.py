"""Sizes of images, clips and pieces of audio from the first bytes of a file. Nothing is decoded.

A file is anything with read() and seek(). `media_of` returns None where the content is of no known kind, and raises
BrokenMedia where it is cut or contradicts itself.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, BinaryIO

from .mp4 import BrokenMedia, Media, mp4_media

__all__ = ["BrokenMedia", "Media", "media_of"]

_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # start of frame; the others are tables
_JPEG_ALONE = frozenset([0x01, *range(0xD0, 0xD8)])  # markers without a length
MOST_PIXELS = 100_000  # of a side, as a batch file has it


def media_of(file: BinaryIO) -> Media | None:
    """What the file holds and how large that is."""
    head = file.read(32)
    media = _by_magic(head, file)
    if media is not None and media.kind == "images":
        if not (0 < media.width <= MOST_PIXELS and 0 < media.height <= MOST_PIXELS):
            raise BrokenMedia(f"says {media.width} x {media.height} pixels")
    return media


def _by_magic(head: bytes, file: BinaryIO) -> Media | None:
    if head[:2] == b"\xff\xd8":
        return _jpeg(file)
    if head[:8] == b"\x89PNG\r\n\x1a\n":
        return _image(*_unpack(">II", head, 16))
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return _webp(head)
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return _image(*_unpack("<HH", head, 6))
    if head[:4] in (b"II*\0", b"MM\0*"):
        return _tiff(head, file)
    if head[:2] == b"BM" and len(head) > 26:
        return _bmp(head)
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip"):
        return mp4_media(file)
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return _wav(file)
    if head[:4] == b"fLaC":
        return _flac(head)
    return None


def _image(width: int, height: int) -> Media:
    return Media("images", width=width, height=height)


def _unpack(form: str, data: bytes, offset: int) -> tuple[Any, ...]:
    if len(data) < offset + struct.calcsize(form):
        raise BrokenMedia("ends too early")
    return struct.unpack_from(form, data, offset)


def _jpeg(file: BinaryIO) -> Media:
    """Segments are passed over by their lengths: thumbnails and colour profiles may be large."""
    at = 2
    while True:
        file.seek(at)
        head = file.read(9)
        if len(head) < 4:
            raise BrokenMedia("ends before it says its size")
        marker = head[1]
        if head[0] != 0xFF:
            raise BrokenMedia("has no marker where one belongs")
        if marker == 0xFF:  # padding
            at += 1
        elif marker in _JPEG_SIZES:
            height, width = _unpack(">HH", head, 5)
            return _image(width, height)
        elif marker in (0xD9, 0xDA):
            raise BrokenMedia("has pixels before it says its size")
        else:
            at += 2 + (0 if marker in _JPEG_ALONE else int.from_bytes(head[2:4], "big"))


def _webp(head: bytes) -> Media:
    form = head[12:16]
    if form == b"VP8 ":  # a key frame: 3 bytes of tag, 3 of start code, 14 bits each
        width, height = _unpack("<HH", head, 26)
        return _image(width & 0x3FFF, height & 0x3FFF)
    if form == b"VP8L":
        bits = _unpack("<I", head, 21)[0]
        return _image(1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
    if form == b"VP8X":
        _unpack("<6B", head, 24)
        return _image(1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little"))
    raise BrokenMedia("is WebP of an unknown form")


def _bmp(head: bytes) -> Media:
    if int.from_bytes(head[14:18], "little") == 12:
        return _image(*_unpack("<HH", head, 18))
    width, height = _unpack("<ii", head, 18)
    return _image(width, abs(height))  # negative: rows from the top


def _tiff(head: bytes, file: BinaryIO) -> Media:
    """Tags 256 and 257 of the first directory: of one number of 16 or 32 bits each."""
    order = "<" if head[:2] == b"II" else ">"
    file.seek(_unpack(order + "I", head, 4)[0])
    entries = _unpack(order + "H", file.read(2), 0)[0]
    directory, sides = file.read(12 * entries), {}
    for at in range(0, 12 * entries, 12):
        tag, form = _unpack(order + "HH", directory, at)
        if tag in (256, 257) and form in (3, 4):
            sides[tag] = _unpack(order + ("H" if form == 3 else "I"), directory, at + 8)[0]
    if len(sides) < 2:
        raise BrokenMedia("does not say its size in its first directory")
    return _image(sides[256], sides[257])


@dataclass
class _Wave:
    bytes_per_second: int = 0
    data_bytes: int = 0


def _wav(file: BinaryIO) -> Media:
    found, at = _Wave(), 12
    while not (found.bytes_per_second and found.data_bytes):
        file.seek(at)
        head = file.read(24)
        if len(head) < 8:
            raise BrokenMedia("has no format and data")
        length = int.from_bytes(head[4:8], "little")
        if head[:4] == b"fmt ":
            found.bytes_per_second = _unpack("<I", head, 16)[0]
        if head[:4] == b"data":
            found.data_bytes = length
        at += 8 + length + length % 2
    return Media("audio", seconds=found.data_bytes / found.bytes_per_second)


def _flac(head: bytes) -> Media:
    """The first block is STREAMINFO: 20 bits of rate, 8 of form, 36 of samples, from byte 18 on."""
    bits = int.from_bytes(struct.pack("8B", *_unpack(">8B", head, 18)), "big")
    rate, samples = bits >> 44, bits & (1 << 36) - 1
    if rate == 0 or samples == 0:
        raise BrokenMedia("does not say how long it is")
    return Media("audio", seconds=samples / rate)
