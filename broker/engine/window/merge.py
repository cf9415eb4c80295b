"""Panes into windows: the groups of several panes as those of one.

Owns how much is merged anew at each window. Must not know which panes a window has. Invariant:
panes are not changed, and what is merged is the same by either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from broker.engine.window.partial import Partial

PANES_FEW = 8  # up to so many panes, merging all of them at once is cheapest
PANES_MANY = 32  # with more, merging what grows with its events costs more than to add and remove

Groups = dict[Any, Partial]
Pane = tuple[int, Groups]


class Merger(Protocol):
    """Merges the panes of one window after the other.

    `price`: the candidates that each group of a pane costs, and each of a window.
    """

    price: int

    def wants_from(self, first: int) -> int:
        """The first pane that it has to be given for a window that begins with pane `first`."""

    def merged(self, first: int, panes: Sequence[Pane]) -> Groups:
        """The groups of the window; `panes` ascend from the one wanted to the window's last."""


def merger_of(panes_each: int, *, growing: bool) -> Merger:
    """The cheaper way; what grows with its events (quantiles) is not kept merged in many places."""
    return AtOnce() if growing or panes_each <= PANES_FEW else Steady()


class AtOnce:
    """Merges each window's panes from the beginning."""

    price = 8

    def wants_from(self, first: int) -> int:
        """See Merger."""
        return first

    def merged(self, first: int, panes: Sequence[Pane]) -> Groups:  # noqa: ARG002
        """See Merger."""
        lists: dict[Any, list[Partial]] = {}
        for _, groups in panes:
            for key, partial in groups.items():
                lists.setdefault(key, []).append(partial)
        return {
            key: one[0] if len(one) == 1 else one[0].merged(one[1:]) for key, one in lists.items()
        }


class Steady:
    """A queue of panes that is merged in steps of even size.

    Each pane that comes and each that goes merges at most three times, and each window once more,
    however many panes there are (DABA Lite: Tangwongsan, Hirzel, Schneider, In-order sliding-window
    aggregation in worst-case constant time, VLDB Journal 30, 2021). Two stacks merge less in all,
    but from time to time every pane anew: a step of a second where there are 60,000 groups.

    The panes from `first` to `end` have numbers by age. Those from `back` on are merged as a whole.
    Of each before `left`, and from `ahead` to `back`, there is its merger with all that follow it
    up to `back`; of each from `left` to `right` that with those up to `right`. Those from `right`
    to `ahead` have none yet, and all from `right` to `back` are merged as a whole. With each pane
    that comes or goes, `left` and `ahead` approach `right` by one, and then pass on together to
    `back`; so the mergers are complete when the older half has gone.
    """

    price = 32

    def __init__(self) -> None:
        self._panes: dict[int, Pane] = {}
        self._mergers: dict[int, Groups] = {}
        self._first = self._left = self._right = self._ahead = self._back = self._end = 0
        self._middle: Groups = {}
        self._newer: Groups = {}
        self._newest: int | None = None

    def wants_from(self, first: int) -> int:
        """See Merger."""
        return first if self._newest is None else max(first, self._newest + 1)

    def merged(self, first: int, panes: Sequence[Pane]) -> Groups:
        """See Merger."""
        for pane in panes:
            self._append(pane)
        while self._first < self._end and self._panes[self._first][0] < first:
            self._let_go()
        oldest = self._mergers.get(self._first, {})
        return _together(oldest, self._newer) if self._newer else oldest

    def _append(self, pane: Pane) -> None:
        self._panes[self._end] = pane
        self._newest = pane[0]
        self._newer = _together(pane[1], self._newer)
        self._end += 1
        self._step()

    def _let_go(self) -> None:
        del self._panes[self._first]
        del self._mergers[self._first]
        self._first += 1
        self._step()

    def _step(self) -> None:
        """Do the share of the work that is due with each pane that comes or goes."""
        if self._first == self._back:
            for number in range(self._back, self._end):
                self._mergers[number] = self._panes[number][1]
            self._left = self._right = self._ahead = self._back = self._end
            self._newer = {}
            return
        if self._left == self._back:
            self._turn()
        if self._left == self._right:
            self._left += 1
            self._right += 1
            self._ahead += 1
            return
        self._mergers[self._left] = _together(self._mergers[self._left], self._middle)
        self._left += 1
        self._ahead -= 1
        groups = self._panes[self._ahead][1]
        self._mergers[self._ahead] = _together(groups, self._mergers.get(self._ahead + 1, {}))

    def _turn(self) -> None:
        """Begin anew: half of the panes are from `first` to `back`, half behind that."""
        self._left, self._right = self._first, self._back
        self._ahead = self._back = self._end
        self._middle, self._newer = self._newer, {}


def _together(left: Groups, right: Groups) -> Groups:
    """Return both together, as a new one."""
    few, many = sorted((left, right), key=len)
    united = dict(many)
    for key, partial in few.items():
        other = united.get(key)
        united[key] = partial if other is None else other.merged([partial])
    return united
