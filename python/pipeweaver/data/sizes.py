"""How large samples are: tokens, and the patches of each of their items."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from ..errors import InputError

Counts = npt.NDArray[np.int64]
Ragged = Sequence[Sequence[int]]


class Items:
    """Lengths of the items of one kind, sample behind sample."""

    def __init__(self, lengths: Counts, counts: Counts) -> None:
        self.lengths = lengths
        self.counts = counts  # of each sample

    def sums(self, of_each: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Per sample, the sum of what its items have."""
        ends = np.concatenate([[0.0], np.cumsum(of_each)])
        last = np.cumsum(self.counts)
        summed: npt.NDArray[np.float64] = ends[last] - ends[last - self.counts]
        return summed

    def take(self, places: Counts) -> Items:
        """Those of the samples at these places, in that order."""
        counts = self.counts[places]
        first = (np.cumsum(self.counts) - self.counts)[places]
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return Items(self.lengths[np.repeat(first, counts) + within], counts)


class Sizes:
    """Of n samples: `tokens` in the language model's sequence, `items` by their key in a batch file ("images",
    "videos", "audio") with a list of patches for each sample, `loss_tokens` (default: all tokens) and `ids` (default:
    their places). Raises InputError naming the sample that is wrong."""

    def __init__(
        self,
        tokens: Sequence[int] | npt.NDArray[Any],
        items: Mapping[str, Ragged] | None = None,
        loss_tokens: Sequence[int] | npt.NDArray[Any] | None = None,
        ids: Sequence[Any] | None = None,
    ) -> None:
        self.tokens = _counts("tokens", tokens)
        self.items = {kind: _items(kind, lists, len(self)) for kind, lists in (items or {}).items()}
        self.loss_tokens = self.tokens if loss_tokens is None else _counts("loss_tokens", loss_tokens)
        self.ids: Sequence[Any] = range(len(self)) if ids is None else _ids(ids)
        for name, values in (("loss_tokens", self.loss_tokens), ("ids", self.ids)):
            if len(values) != len(self):
                raise InputError(f"{name}: are {len(values)}, but tokens are of {len(self)} samples")
        above = np.flatnonzero(self.loss_tokens > self.tokens)
        if len(above):
            place = int(above[0])
            raise InputError(
                f"loss_tokens[{place}]: is {self.loss_tokens[place]}, must be a whole number to its tokens, "
                f"{self.tokens[place]}"
            )

    def __len__(self) -> int:
        return len(self.tokens)

    def take(self, places: Counts) -> Sizes:
        """The samples at these places, with the places as ids."""
        taken = Sizes(self.tokens[places], None, self.loss_tokens[places], places.tolist())
        taken.items = {kind: items.take(places) for kind, items in self.items.items()}
        return taken

    def fingerprint(self) -> str:
        """The same for the same sizes, on whatever rank."""
        digest = hashlib.sha256()
        for values in (self.tokens, self.loss_tokens):
            digest.update(values.tobytes())
        for kind, items in sorted(self.items.items()):
            digest.update(kind.encode() + items.lengths.tobytes() + items.counts.tobytes())
        return digest.hexdigest()

    @staticmethod
    def of(given: AnySizes) -> Sizes:
        """Sizes as they are, a token count a sample, or samples as a batch file and `pipeweaver.batch_of` have them."""
        if isinstance(given, Sizes):
            return given
        if len(given) > 0 and isinstance(given[0], Mapping):
            return _of_samples(given)  # type: ignore[arg-type]
        return Sizes(given)  # type: ignore[arg-type]


AnySizes = Union[Sizes, Sequence[int], Sequence[Mapping[str, Any]], npt.NDArray[Any]]

_KINDS = ("images", "videos", "audio")


def _of_samples(samples: Sequence[Mapping[str, Any]]) -> Sizes:
    """Items need tokens and patches: how pixels become these is the model's rule, which `batch_of` applies."""
    tokens, loss_tokens, ids = [], [], []
    items: dict[str, list[list[int]]] = {kind: [] for kind in _KINDS}
    for number, sample in enumerate(samples):
        try:
            text = sample["text_tokens"]
            mine = {kind: sample.get(kind, ()) for kind in _KINDS}
            tokens.append(text + sum(item["tokens"] for all_of in mine.values() for item in all_of))
            for kind, all_of in mine.items():
                items[kind].append([item["patches"] for item in all_of])
        except (KeyError, TypeError, AttributeError):
            raise InputError(
                f"batch:{number + 1}: allowed are samples with text_tokens and items with tokens and patches, "
                "as pipeweaver.batch_of gives them"
            ) from None
        loss_tokens.append(sample.get("loss_tokens", text))
        ids.append(sample.get("id", number))
    return Sizes(tokens, {kind: lists for kind, lists in items.items() if any(lists)}, loss_tokens, ids)


def _counts(name: str, values: Sequence[int] | npt.NDArray[Any]) -> Counts:
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.size == 0 and len(values) == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"{name}: allowed is a whole number for each sample")
    counts = array.astype(np.int64)
    if counts.min() < 0:
        place = int(np.argmin(counts))
        raise InputError(f"{name}[{place}]: is {counts[place]}, must be a whole number from 0")
    return counts


def _ids(ids: Sequence[Any] | npt.NDArray[Any]) -> Sequence[Any]:
    """Numbers of NumPy as Python's, which JSON knows. Raises InputError where one comes twice."""
    plain: Sequence[Any] = ids.tolist() if isinstance(ids, np.ndarray) else [
        id.item() if isinstance(id, np.generic) else id for id in ids
    ]
    seen: set[Any] = set()
    for place, id in enumerate(plain):
        if isinstance(id, bool) or not isinstance(id, (int, str)):
            raise InputError(f"ids[{place}]: is {id!r}, must be a text or a whole number")
        if id in seen:
            raise InputError(f"ids[{place}]: {id!r} is the id of another sample as well")
        seen.add(id)
    return plain


def _items(kind: str, lists: Ragged, samples: int) -> Items:
    try:
        flat = [length for one in lists for length in one]
    except TypeError:
        raise InputError(f"items.{kind}: allowed is a list of whole numbers for each sample") from None
    if len(lists) != samples:
        raise InputError(f"items.{kind}: are of {len(lists)} samples, but tokens are of {samples}")
    counts = np.fromiter((len(one) for one in lists), dtype=np.int64, count=samples)
    return Items(_counts(f"items.{kind}", flat), counts)
