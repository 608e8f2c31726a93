"""What reading and decoding one's own data takes on this machine, as a loader for `pipeweaver emulate --loader`.

Reads files of a folder, out of the system's cache where it lets go of them, and decodes them as a loader does: images
by Pillow, clips by torchcodec, decord or av, sound by soundfile or the standard library, texts by a tokenizer.json.
What decodes is timed in seconds of a core, so that other work on the machine does not count; what reads, by the clock.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import os
import sys
import time
import wave
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from .._arguments import Parser
from ..errors import FileError, InputError, PipeweaverError
from .convert.headers import BrokenMedia, Media, media_of
from .convert.texts import by_tokenizer

Decode = Callable[[bytes], object]

_WORDS = {"images": ("photo", "photos"), "videos": ("clip", "clips"), "audio": ("piece of sound", "pieces of sound"),
          "texts": ("text", "texts")}
_TEXTS = (".txt", ".md", ".json", ".jsonl")


@dataclass
class Kind:
    """What was measured of files of one kind: amounts (megapixels, seconds or tokens) and the seconds they took."""

    bytes: list[int] = field(default_factory=list)
    reads: list[float] = field(default_factory=list)
    amounts: list[float] = field(default_factory=list)
    decodes: list[float] = field(default_factory=list)


def line(amounts: Sequence[float], times: Sequence[float]) -> tuple[float, float]:
    """(of each, of one of its amount), neither below 0, of least squares."""
    count, total, spent = len(times), sum(amounts), sum(times)
    square = sum(one * one for one in amounts)
    product = sum(one * took for one, took in zip(amounts, times))
    spread = count * square - total * total
    slope = (count * product - total * spent) / spread if spread > 1e-9 * count * square else 0.0
    each = (spent - slope * total) / count
    if slope > 0 and each >= 0:
        return each, slope
    return (0.0, product / square) if square > 0 else (spent / count, 0.0)


def _loads(module: str) -> bool:
    """Whether it is installed, with the libraries that it loads."""
    try:
        importlib.import_module(module)
    except (ImportError, OSError, RuntimeError):
        return False
    return True


def _images(size: int | None) -> tuple[Decode, str]:
    pillow = importlib.import_module("PIL.Image")

    def decode(data: bytes) -> object:
        image = pillow.open(io.BytesIO(data)).convert("RGB")
        return image.resize((size, size)) if size else image

    return decode, f"Pillow {importlib.import_module('PIL').__version__}"


def _by_torchcodec(data: bytes) -> object:
    decoder = importlib.import_module("torchcodec.decoders").VideoDecoder(data, num_ffmpeg_threads=1)
    return [decoder[number].shape for number in range(len(decoder))]


def _by_decord(data: bytes) -> object:
    reader = importlib.import_module("decord").VideoReader(io.BytesIO(data), num_threads=1)
    return [reader[number].shape for number in range(len(reader))]


def _by_av(data: bytes) -> object:
    with importlib.import_module("av").open(io.BytesIO(data)) as container:
        return [frame.to_ndarray(format="rgb24").shape for frame in container.decode(video=0)]


def _videos(_: int | None) -> tuple[Decode, str]:
    for name, module, decode in (("torchcodec", "torchcodec.decoders", _by_torchcodec),
                                 ("decord", "decord", _by_decord), ("av", "av", _by_av)):
        if _loads(module):
            return decode, name
    raise ImportError("torchcodec, decord or av")


def _by_wave(data: bytes) -> object:
    numpy = importlib.import_module("numpy")
    with wave.open(io.BytesIO(data)) as sound:
        frames = sound.readframes(sound.getnframes())
        width = sound.getsampwidth()
    samples = numpy.frombuffer(frames[: len(frames) // width * width], dtype="u1").reshape(-1, width)
    if width == 1:  # the only one without a sign
        return samples[:, 0].astype("float32") - 128
    if width == 3:
        return numpy.pad(samples, ((0, 0), (1, 0))).view("<i4")[:, 0].astype("float32") / 256
    return samples.view(f"<i{width}")[:, 0].astype("float32")


def _audio(_: int | None) -> tuple[Decode, str]:
    if _loads("soundfile"):
        return lambda data: importlib.import_module("soundfile").read(io.BytesIO(data)), "soundfile"
    return _by_wave, "the standard library, without resampling"


_DECODERS = {"images": _images, "videos": _videos, "audio": _audio}


def read_cold(path: Path) -> tuple[bytes, float]:
    """The file, and the seconds that took. Raises FileError."""
    try:
        with path.open("rb", buffering=0) as file:
            if hasattr(os, "posix_fadvise"):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            start = time.perf_counter()
            data = file.readall()
            return data, time.perf_counter() - start
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None


def media_in(path: Path) -> Media | None:
    """From its header. None: of no known kind. Raises FileError, also where it is broken."""
    try:
        with path.open("rb") as file:
            return media_of(file)
    except BrokenMedia as error:
        raise FileError(f"{path}: {error}") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None


def by_turns(paths: Sequence[Path]) -> list[Path]:
    """Those of each suffix in their order, one of each after the other."""
    alike: dict[str, list[Path]] = {}
    for path in paths:
        alike.setdefault(path.suffix.lower(), []).append(path)
    return [path for turn in zip_longest(*alike.values()) for path in turn if path is not None]


class Measuring:
    """Files of a folder, one after the other, until there are enough of each kind or the time is over."""

    def __init__(self, most: int, seconds: float, size: int | None, tokenizer: str | None) -> None:
        self.most, self.size = most, size
        self.end = time.monotonic() + seconds
        self.count = by_tokenizer(tokenizer) if tokenizer else None
        self.kinds: dict[str, Kind] = {}
        self.by: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        self.unread: list[str] = []
        self.not_reached = ""
        self._decoders: dict[str, Decode] = {}
        self._kinds_of: dict[str, set[str]] = {}  # by suffix: what such files were

    def run(self, paths: Sequence[Path]) -> None:
        for number, path in enumerate(by_turns(paths)):
            if time.monotonic() > self.end:
                self.not_reached = f"--seconds: were over before {len(paths) - number} of {len(paths)} files"
                break
            if self._has_enough_of(path.suffix.lower()):
                continue
            try:
                self._file(path)
            except FileError as error:
                self.unread.append(str(error))

    def _has_enough_of(self, suffix: str) -> bool:
        kinds = self._kinds_of.get(suffix, set()) if suffix else set()
        return bool(kinds) and all(self._is_done(kind) for kind in kinds)

    def _is_done(self, kind: str) -> bool:
        known = self.kinds.get(kind)
        can = self.count is not None if kind == "texts" else self._decoder(kind) is not None
        return known is not None and (not can or len(known.decodes) >= self.most)

    def _file(self, path: Path) -> None:
        suffix = path.suffix.lower()
        media = media_in(path)
        kind = media.kind if media is not None else "texts" if suffix in _TEXTS else None
        if kind is None:
            return
        self._kinds_of.setdefault(suffix, set()).add(kind)
        if self._is_done(kind):
            return
        if media is None:
            self._text(path)
        else:
            self._add(kind, path, media.width * media.height * 1e-6 if kind == "images" else media.seconds)

    def _decoder(self, kind: str) -> Decode | None:
        if kind not in self._decoders and kind not in self.missing:
            try:
                self._decoders[kind], self.by[kind] = _DECODERS[kind](self.size)
            except ImportError as error:
                self.missing[kind] = f"needs {error.name or error}"
        return self._decoders.get(kind)

    def _add(self, kind: str, path: Path, amount: float) -> None:
        decode = self._decoder(kind)
        known = self.kinds.setdefault(kind, Kind())
        if decode is None:
            return
        if amount <= 0:
            self.missing.setdefault(kind, "some do not say in their header how long they are")
            return
        data, took = read_cold(path)
        try:
            if not known.decodes:
                decode(data)  # the first loads what it needs
            start = time.process_time()
            decode(data)
            spent = time.process_time() - start
        except Exception as error:  # each library has classes of its own
            why = next(iter(str(error).splitlines()), type(error).__name__)
            self.missing.setdefault(kind, f"some cannot be decoded by {self.by[kind]}: {why}")
            return
        self._note(known, len(data), took, amount, spent)

    def _text(self, path: Path) -> None:
        known = self.kinds.setdefault("texts", Kind())
        if self.count is None:
            self.missing["texts"] = "needs --tokenizer FILE"
        else:
            data, took = read_cold(path)
            text = data.decode("utf-8", "replace")
            start = time.process_time()
            tokens = self.count(text)
            self._note(known, len(data), took, tokens, time.process_time() - start)
            self.by["texts"] = "tokenizers"

    @staticmethod
    def _note(known: Kind, size: int, took: float, amount: float, spent: float) -> None:
        known.bytes.append(size)
        known.reads.append(took)
        known.amounts.append(amount)
        known.decodes.append(spent)

    def measured(self) -> dict[str, Kind]:
        return {kind: one for kind, one in self.kinds.items() if one.decodes}


_UNITS = {"images": ("image", "megapixel"), "videos": ("clip", "clip_second"), "audio": ("audio", "audio_second"),
          "texts": ("sample", "token")}


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def _counted(kind: str, count: int) -> str:
    return f"{count} {_WORDS[kind][count != 1]}"


def loader_of(measuring: Measuring, folder: str, workers: int, prefetch: int) -> dict[str, Any]:
    """The loader as a file has it."""
    kinds = measuring.measured()
    sizes = [size for one in kinds.values() for size in one.bytes]
    latency, a_byte = line(sizes, [took for one in kinds.values() for took in one.reads])
    found = ", ".join(_counted(kind, len(one.decodes)) for kind, one in sorted(kinds.items()))
    read: dict[str, Any] = {"name": "read", "on": "storage", "latency_ns": _ns(latency),
                            "bytes_per_s": max(1, min(10**15, round(1 / a_byte))) if a_byte > 0 else 10**15,
                            "source": f"{found} of {folder}, read once"}
    decode: dict[str, Any] = {"name": "decode", "on": "core"}
    for kind, one in sorted(kinds.items()):
        each, amount = _UNITS[kind]
        read[f"{amount}_bytes"] = round(sum(one.bytes) / sum(one.amounts)) if sum(one.amounts) > 0 else 0
        decode[f"{each}_ns"], decode[f"{amount}_ns"] = map(_ns, line(one.amounts, one.decodes))
    decode["source"] = f"{found} of {folder}, by " + ", ".join(measuring.by[kind] for kind in sorted(kinds))
    return {"format": "pipeweaver-loader/1", "name": f"measured on {folder}", "workers": workers, "prefetch": prefetch,
            "stages": [read, decode]}


def files_of(folder: Path) -> list[Path]:
    """Raises FileError, InputError."""
    if not folder.is_dir():
        raise FileError(f"{folder}: is no folder that can be read")
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    if not paths:
        raise InputError(f"{folder}: has no file, needed is one that a loader reads")
    return paths


def measure(folder: str, most: int = 200, seconds: float = 60, size: int | None = None, tokenizer: str | None = None,
            workers: int = 4, prefetch: int = 2) -> tuple[dict[str, Any], list[str]]:
    """The loader, and what was not measured, a line each. Raises InputError where nothing was, FileError."""
    measuring = Measuring(most, seconds, size, tokenizer)
    measuring.run(files_of(Path(folder)))
    lost = [f"{_WORDS[kind][1]}: not measured: {why}" for kind, why in sorted(measuring.missing.items())]
    if measuring.unread:
        more = len(measuring.unread) - 1
        lost.append(measuring.unread[0] + (f" (left out, and {more} more)" if more else " (left out)"))
    if measuring.not_reached:
        lost.append(measuring.not_reached)
    if not measuring.measured():
        raise InputError(f"{folder}: has nothing that can be measured" + "".join(f"; {one}" for one in lost))
    return loader_of(measuring, folder, workers, prefetch), lost


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdigit() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"is '{text}', must be a whole number from {low} to {high}")
        return int(text)

    return read


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m pipeweaver.data.measure", description=__doc__, allow_abbrev=False,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", help="photos, clips, sound and texts, as the loader finds them")
    parser.add_argument("--out", metavar="FILE", help="the loader (default: standard output)")
    parser.add_argument("--files", metavar="N", type=_whole(1, 1_000_000), default=200,
                        help="of each kind at most (default: 200)")
    parser.add_argument("--seconds", metavar="N", type=_whole(1, 86_400), default=60, help="at most (default: 60)")
    parser.add_argument("--resize", metavar="PIXELS", type=_whole(1, 100_000), help="side that photos are resized to")
    parser.add_argument("--tokenizer", metavar="FILE", help="a tokenizer.json, for texts (package tokenizers)")
    parser.add_argument("--workers", metavar="N", type=_whole(0, 1024), default=4, help="of a replica (default: 4)")
    parser.add_argument("--prefetch", metavar="N", type=_whole(1, 1024), default=2,
                        help="packs that each worker makes ahead (default: 2)")
    return parser


def _write(text: str, out: str | None) -> None:
    if out is None:
        print(text, end="")
        return
    part = Path(f"{out}.part")
    try:
        part.write_text(text)
        part.replace(out)
    except OSError as error:
        raise FileError(f"{out}: cannot be written: {error.strerror}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        given = _parser().parse_args(arguments)
        loader, lost = measure(given.folder, given.files, given.seconds, given.resize, given.tokenizer, given.workers,
                               given.prefetch)
        _write(json.dumps(loader, indent=1) + "\n", given.out)
    except PipeweaverError as error:
        print(f"pipeweaver: {error}", file=sys.stderr)
        return error.exit_status
    for one in lost:
        print(one, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
