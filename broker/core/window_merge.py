"""Panes into windows: the groups of several panes as those of one.

Owns how much is merged anew at each window. Must not know which panes a window has. Invariant:
panes are not changed, and what is merged is the same by either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from broker.core.window_partial import Partial

PANES_FEW = 8  # up to so many panes, merging all of them at once is cheapest
PANES_MANY = 32  # with more, merging what grows with its events costs more than to add and remove

Groups = dict[Any, Partial]
Pane = tuple[int, Groups]


class Merger(Protocol):
    """Merges the panes of one window after the other."""

    def wants_from(self, first: int) -> int:
        """The first pane that it has to be given for a window that begins with pane `first`."""

    def merged(self, first: int, panes: Sequence[Pane]) -> Groups:
        """The groups of the window; `panes` ascend from the one wanted to the window's last."""


def merger_of(panes_each: int, *, growing: bool) -> Merger:
    """The cheaper way; what grows with its events (quantiles) is not kept merged in many places."""
    return AtOnce() if growing or panes_each <= PANES_FEW else Stacks()


class AtOnce:
    """Merges each window's panes from the beginning."""

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


class Stacks:
    """A queue of panes as two stacks, each merged as it stands.

    Of the older panes, each one's merger with all younger ones in its stack is kept, so that the
    oldest can go; the younger ones are one running merger. Each pane is merged twice, and each
    window once more, however many panes it has (Two-Stacks, as Tangwongsan, Hirzel, Schneider tell
    it in Low-latency sliding-window aggregation in worst-case constant time, DEBS 2017).
    """

    def __init__(self) -> None:
        self._older: list[Pane] = []  # the oldest last
        self._younger: list[Pane] = []
        self._running: Groups = {}
        self._newest: int | None = None

    def wants_from(self, first: int) -> int:
        """See Merger."""
        return first if self._newest is None else max(first, self._newest + 1)

    def merged(self, first: int, panes: Sequence[Pane]) -> Groups:
        """See Merger."""
        for pane, groups in panes:
            self._younger.append((pane, groups))
            _merge_into(self._running, groups)
            self._newest = pane
        while self._older and self._older[-1][0] < first:
            self._older.pop()
        if not self._older and self._younger and self._younger[0][0] < first:
            self._turn(first)
        if not self._older:
            return self._running
        made = dict(self._older[-1][1])
        _merge_into(made, self._running)
        return made

    def _turn(self, first: int) -> None:
        """Make the younger stack the older one."""
        made: Groups = {}
        for pane, groups in reversed(self._younger):
            if pane >= first:
                made = dict(made)
                _merge_into(made, groups)
                self._older.append((pane, made))
        self._younger = []
        self._running = {}


def _merge_into(made: Groups, groups: Groups) -> None:
    for key, partial in groups.items():
        known = made.get(key)
        made[key] = partial if known is None else known.merged([partial])
