"""Partial results of a window's groups that were made elsewhere, by pane and by who made them.

Owns them until their pane is complete. Must not know windows, watermarks or who sends them.
Invariant: what one maker has sent of panes that are not complete can be taken back as if it had
never come; merging takes it out of here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from broker.engine.window.merge import Groups
from broker.engine.window.partial import Partial, key_of, plain_key
from broker.engine.window.shape import Shape

PlainGroups = list[list[Any]]  # [key, partial] each, as plain data
PaneRows = list[list[Any]]  # [pane, PlainGroups] each


class Apart:
    """See the module."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._panes: dict[int, dict[str, Groups]] = {}

    def __bool__(self) -> bool:
        return bool(self._panes)

    def __len__(self) -> int:
        return sum(len(groups) for _, _, groups in self._each())

    def take(self, maker: str, pane: int, key: Any, partial: Partial) -> bool:
        """Add to what a maker has sent of a group; whether the group is new of it."""
        groups = self._panes.setdefault(pane, {}).setdefault(maker, {})
        known = groups.get(key)
        groups[key] = partial if known is None else known.merged([partial])
        return known is None

    def drop(self, maker: str, first: int | None) -> int:
        """Take back what a maker has sent of panes from the first on; how many groups that were."""
        count = 0
        for pane, makers in list(self._panes.items()):
            if first is None or pane >= first:
                count += len(makers.pop(maker, {}))
            if not makers:
                del self._panes[pane]
        return count

    def rename(self, maker: str, name: str) -> None:
        """Have what a maker has sent be of another name, which has sent nothing."""
        for makers in self._panes.values():
            if maker in makers:
                makers[name] = makers.pop(maker)

    def panes(self) -> list[int]:
        """The panes of which there is something."""
        return sorted(self._panes)

    def settle(self, pane: int, into: Groups) -> int:
        """Merge a pane into its groups; how many fewer there are so."""
        fewer = 0
        for groups in self._panes.pop(pane, {}).values():
            for key, partial in groups.items():
                known = into.get(key)
                fewer += known is not None
                into[key] = partial if known is None else known.merged([partial])
        return fewer

    def state(self) -> list[Any]:
        """Plain data."""
        return [[pane, maker, plain_groups(groups)] for pane, maker, groups in self._each()]

    def restore(self, state: Iterable[list[Any]]) -> None:
        """Take up what `state` gave."""
        self._panes = {}
        for pane, maker, groups in state:
            self._panes.setdefault(pane, {})[maker] = {
                key_of(key): Partial.of_plain(self._shape, one) for key, one in groups
            }

    def _each(self) -> Iterator[tuple[int, str, Groups]]:
        for pane, makers in self._panes.items():
            for maker, groups in makers.items():
                yield pane, maker, groups


def plain_groups(groups: Groups) -> PlainGroups:
    """Groups as plain data; no event may be pending."""
    return [[plain_key(key), one.plain()] for key, one in groups.items()]
