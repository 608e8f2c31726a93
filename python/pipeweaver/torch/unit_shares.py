"""Which positions of a unit each copy of a stage takes: "shares" of action lists (docs/formats.md)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

Ranges = tuple[tuple[int, int], ...]


class Piece(NamedTuple):
    """Positions `first` to `end - 1` of a sequence of the unit."""

    sequence: int
    first: int
    end: int

    @property
    def rows(self) -> int:
        return self.end - self.first


@dataclass(frozen=True)
class UnitShare:
    """A unit's sequences (`lengths`, positions) and each copy's pieces of them, in the order in which it has them.
    `reduction`: positions of a row of the chain's output. Of a phase stage `stage` is its number and `of` says per
    sequence which microbatch it belongs to, and its place among that one's items."""

    chain: str
    microbatch: int
    item: int
    lengths: tuple[int, ...]
    reduction: int
    copies: tuple[tuple[Piece, ...], ...]
    stage: int | None = None
    of: tuple[tuple[int, int], ...] = ()

    def positions(self) -> int:
        return sum(self.lengths)

    def positions_of(self, copy: int) -> int:
        return sum(piece.rows for piece in self.copies[copy])

    def split(self) -> list[int]:
        """The sequences that no copy has as a whole."""
        whole = {piece.sequence for pieces in self.copies for piece in pieces
                 if piece.rows == self.lengths[piece.sequence]}
        return [k for k, length in enumerate(self.lengths) if length and k not in whole]

    def rows_of(self, copy: int, behind: bool) -> Ranges:
        """Where the copy's rows are in the unit's whole output, in its order; `behind` the chain's last stage."""
        per_row = self.reduction if behind else 1
        begins = self._begins()
        return tuple(((begins[p.sequence] + p.first) // per_row, (begins[p.sequence] + p.end) // per_row)
                     for p in self.copies[copy])

    def begins(self) -> list[int]:
        """The first row of each sequence in the chain's output, and the end of the last."""
        return [position // self.reduction for position in self._begins()]

    def _begins(self) -> list[int]:
        return [0, *itertools.accumulate(self.lengths)]

    def problem(self) -> str | None:
        """What is wrong with the pieces; None: they cover every position once."""
        covered: list[list[tuple[int, int]]] = [[] for _ in self.lengths]
        even = all(length % self.reduction == 0 for length in self.lengths)
        for piece in (piece for pieces in self.copies for piece in pieces):
            if piece.sequence >= len(self.lengths):
                return f"a piece is of sequence {piece.sequence}, there are {len(self.lengths)}"
            if even and (piece.first % self.reduction or piece.end % self.reduction):
                return f"piece {list(piece)} does not lie between rows of {self.reduction} positions"
            covered[piece.sequence].append((piece.first, piece.end))
        for sequence, ends in enumerate(covered):
            at = 0
            for first, end in sorted(ends):
                if first != at:
                    low, high = sorted((at, first))
                    return f"positions {low} to {high - 1} of sequence {sequence} are not taken once"
                at = end
            if at != self.lengths[sequence]:
                return f"sequence {sequence} has {self.lengths[sequence]} positions, the pieces end at {at}"
        return None
