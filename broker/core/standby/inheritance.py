"""The results of a lost home that its heir has in its own log, and which of the home's they are.

Owns where they stand in both logs. Must not know how they came here. Invariant: a reader that was
at an offset of the lost log finds in the heir's what came behind it, each result once, or learns
from `first` which offsets are in neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, convert, to_builtins

INHERITANCES_MAX = 100  # the oldest go: their readers have had the time of a hundred losses


class ResultRun(Struct, array_like=True, frozen=True):
    """Results that follow each other in both logs: `count` from offset `theirs`, here `own`."""

    theirs: int
    own: int
    count: int


class Inheritance(Struct, array_like=True, frozen=True):
    """The results of log `epoch` of `home`, from its offset `first` up to, and without, `end`."""

    home: str
    epoch: str
    first: int
    end: int
    runs: tuple[ResultRun, ...]

    @property
    def own_end(self) -> int:
        """Return the offset here behind the last of them; 0 where there are none."""
        return self.runs[-1].own + self.runs[-1].count if self.runs else 0


class Inheritances:
    """Those of a broker, in its core's state; the latest is the last."""

    def __init__(self) -> None:
        self.kept: list[Inheritance] = []

    def add(
        self, home: str, log: tuple[str, int, int], own_first: int, offsets: Sequence[int]
    ) -> None:
        """Add results that stand here from `own_first` on; `log` is its epoch, first and end."""
        if log[0]:
            self.kept.append(Inheritance(home, *log, tuple(_runs(own_first, offsets))))
            del self.kept[:-INHERITANCES_MAX]

    def upto(self, epoch: str) -> int:
        """Return the offset of a lost log from which on no result was taken over."""
        return max([kept.end for kept in self.kept if kept.epoch == epoch], default=0)

    def before(self, end: int) -> list[dict[str, Any]]:
        """Return, for readers of the log up to `end`, those of which all results are there."""
        return [
            {
                "home": kept.home,
                "epoch": kept.epoch,
                "from": kept.first,
                "to": kept.end,
                "runs": [[run.theirs, run.own, run.count] for run in kept.runs],
            }
            for kept in self.kept
            if kept.own_end <= end
        ]

    def state(self) -> list[Any]:
        """Return plain data."""
        return [to_builtins(kept) for kept in self.kept]

    def restore(self, state: Iterable[Any]) -> None:
        """Take up such a state, in the place of all that is here."""
        self.kept = [convert(row, Inheritance) for row in state]


def _runs(own_first: int, offsets: Sequence[int]) -> list[ResultRun]:
    runs: list[ResultRun] = []
    for own, theirs in enumerate(offsets, own_first):
        last = runs[-1] if runs else None
        if last is not None and theirs == last.theirs + last.count:
            runs[-1] = ResultRun(last.theirs, last.own, last.count + 1)
        else:
            runs.append(ResultRun(theirs, own, 1))
    return runs
