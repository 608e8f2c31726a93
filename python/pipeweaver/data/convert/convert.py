"""From a source of samples to a batch file, and what to say about it."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from ...errors import FileError, InputError
from .reader import Met, Reader, Sample
from .sources import Asked, samples_of
from .texts import by_tokenizer, by_words

usual_tokens_per_word = 1.3  # of English text under the vocabularies in use, rounded; an assumption


@dataclass
class Converted:
    """What was written, and what was assumed for it."""

    samples: list[dict[str, Any]] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def convert(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    samples: int | None = None,
    seed: int | None = None,
    split: str = "train",
    media: str | os.PathLike[str] | None = None,
    text: Sequence[str] = (),
    tokens_per_word: float | None = None,
    tokenizer: str | None = None,
    target: bool = False,
    skip_broken: bool = False,
    form: str = "",
    sets: Sequence[str] = (),
) -> Converted:
    """Writes the batch file `out`, gzip if it ends in .gz: the first `samples` of the source, with `seed` so many at
    random. Equal sources and arguments give equal bytes. Raises InputError, FileError."""
    if seed is not None and samples is None:
        raise InputError("--seed: goes with --samples, how many are drawn")
    if tokenizer and tokens_per_word is not None:
        raise InputError("--tokenizer, --tokens-per-word: allowed is one of the two")
    rate = usual_tokens_per_word if tokens_per_word is None else tokens_per_word
    reader = Reader(by_tokenizer(tokenizer) if tokenizer else by_words(rate), text, target, skip_broken)
    asked = Asked(split, None if media is None else Path(media), form, tuple(sets))
    found = samples_of(Path(source), reader, asked)
    taken = _taken(found, samples, seed)
    if not taken:
        left_out = "; ".join(_left_out(reader.met))
        raise InputError(f"{source}: has no samples" + (f": all are left out: {left_out}" if left_out else ""))
    _require_own_ids(taken, source)
    lines = [sample.line() for sample in taken]
    _write(Path(out), lines)
    how = f"tokens of texts: by {tokenizer}" if tokenizer else (
        f"{rate:g} tokens of text a word, or a character of Chinese, Japanese or Korean "
        "(--tokens-per-word; --tokenizer FILE counts)")
    return Converted(lines, _assumed(lines, reader.met, how, bool(tokenizer)), _remarks(reader.met))


def _taken(found: Iterator[Sample], samples: int | None, seed: int | None) -> list[Sample]:
    """In the source's order, also where they are drawn."""
    if seed is None:
        return list(islice(found, samples))
    assert samples is not None
    drawn = random.Random(seed)
    kept: list[tuple[int, Sample]] = []
    for number, sample in enumerate(found):
        if len(kept) < samples:
            kept.append((number, sample))
        elif (place := drawn.randrange(number + 1)) < samples:
            kept[place] = (number, sample)
    return [sample for _, sample in sorted(kept, key=lambda one: one[0])]


def _require_own_ids(samples: list[Sample], source: object) -> None:
    seen: set[str] = set()
    for sample in samples:
        if sample.name in seen:
            raise InputError(f"{source}: sample '{sample.name}' is there twice; allowed are samples of different names")
        seen.add(sample.name)


def _write(out: Path, lines: list[dict[str, Any]]) -> None:
    """Whole or not at all."""
    part = out.with_name(out.name + ".part")
    data = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines).encode(
        errors="replace")
    try:
        part.write_bytes(gzip.compress(data, mtime=0) if out.suffix == ".gz" else data)
        os.replace(part, out)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise FileError(f"--out: {out}: {error.strerror}") from None


def _assumed(lines: list[dict[str, Any]], met: Met, how: str, exact: bool) -> list[str]:
    sentences = []
    if any(line["text_tokens"] for line in lines):
        sentences.append(f"text from {', '.join(sorted(met.text_from))}")
        sentences.append(how)
    without = sum(1 for line in lines if not line["text_tokens"])
    if without:
        sentences.append(f"{without} of {len(lines)} samples have no text: 0 tokens (a .txt beside them, or --text)")
    if met.forms:
        sentences.append(f"entries of the form {', '.join(sorted(met.forms))}, by their keys (--form names one)")
    if met.sized:
        sentences.append(f"sizes of {met.sized} items are those of the annotations; their files are not opened")
    for name in sorted(met.blended):
        sentences.append(f"the data sets of {name} are blended by their weights until one of them ends")
    if met.rejected:
        sentences.append(f"{met.rejected} samples have a rejected answer, of which nothing is counted: a pair is two "
                         "sequences")
    if any("videos" in line for line in lines):
        sentences.append("clips have their whole length; the model's rule says how much of it is read")
    sentences.append("no tokens of a chat template or of markers around items are counted")
    return sentences


def _remarks(met: Met) -> list[str]:
    remarks = []
    if met.passed_over:
        what = [f"{n} {kind}" if " " in kind else f"{n} .{kind}" for kind, n in sorted(met.passed_over.items())]
        remarks.append("passed over: " + ", ".join(what))
    remarks.extend(f"left out: {what}" for what in _left_out(met))
    return remarks


def _left_out(met: Met) -> list[str]:
    what = [f"{len(met.broken)} broken, the first {met.broken[0]}"] if met.broken else []
    if met.not_read:
        kinds = ", ".join(f"{n} with .{ending}" for ending, n in sorted(met.not_read.items()))
        what.append(f"{kinds}, which is not read")
    return what


def _seconds(item: dict[str, Any]) -> float:
    return float(item["seconds"] if "seconds" in item else round(item["frames"] / item["fps"], 3))


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def summary(lines: list[dict[str, Any]]) -> str:
    """One line: how many samples and items, and how large."""
    parts = [f"{sum(line['text_tokens'] for line in lines)} tokens of text"]
    images = [image for line in lines for image in line.get("images", ())]
    if images:
        by_area = sorted(((one["width"], one["height"]) for one in images), key=lambda one: (one[0] * one[1], one))
        small, middle, large = (f"{w} x {h}" for w, h in (by_area[0], by_area[(len(images) - 1) // 2], by_area[-1]))
        parts.append(f"{_counted(len(images), 'image')}, by area {small} to {large} pixels, median {middle}")
    for kind, noun, rest in (("videos", "clip", ""), ("audio", "piece", " of audio")):
        seconds = [_seconds(item) for line in lines for item in line.get(kind, ())]
        if seconds:
            name = _counted(len(seconds), noun) + rest
            parts.append(f"{name} of {min(seconds):g} to {max(seconds):g} s, median {median(seconds):g}")
    return _counted(len(lines), "sample") + ": " + "; ".join(parts)
