"""`collect`: the occurrences completed by one event, as one.

Owns the groups that wait until nothing can join them any more. Must not know how occurrences are
found. Invariant: an occurrence is in the group of its completing event, or waits for its choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.occurrence import (
    Occurrence,
    end_of,
    events_of,
    flat,
    identity,
    sort_in_order,
    start_of,
)
from broker.engine.pattern.selection.selection import Decided, Selection
from broker.engine.pattern.times.completion import Completion, completing
from broker.engine.pattern.uncertainty.uncertainty import MAYBE, Maybe
from broker.engine.pattern.uncertainty.verdicts import certainty_of


@dataclass(slots=True)
class Group:
    """The occurrences that one event completes; where none binds an event, one occurrence alone."""

    last: Any  # that event, or the occurrence
    over_at: int  # once the limit is there, nothing joins any more
    end: int  # of the member that ends first
    start: int  # of the one that begins first
    members: list[Occurrence] = field(default_factory=list)


@dataclass(slots=True)
class Groups:
    """The groups of one partition that are not reported, by the identity of what completes them."""

    by_last: dict[int, Group] = field(default_factory=dict)
    count: int = 0  # of all members
    # Of no group is the time or the beginning of what completes it before these.
    over_from: int = WATERMARK_END
    begun_from: int = WATERMARK_END

    def add(self, one: Occurrence, completion: Completion) -> None:
        """Put an occurrence with those that are completed by the same event."""
        last = last_of(one)
        # By identity: in one partition an event is one object, and ids are text.
        group = self.by_last.get(id(last))
        if group is None:
            over_at = completion.over_at(last)
            group = Group(last, over_at, end_of(one), start_of(one))
            self.by_last[id(last)] = group
            self._note(group)
        group.end, group.start = min(group.end, end_of(one)), min(group.start, start_of(one))
        group.members.append(one)
        self.count += 1

    def take(self, keys: Iterable[int]) -> list[list[Occurrence]]:
        """The members of these groups, which are no more."""
        taken = [self.by_last.pop(key).members for key in keys]
        self.count -= sum(map(len, taken))
        # Bounds of what stays may only be found anew: which group had the least is not kept.
        self.over_from = self.begun_from = WATERMARK_END
        for group in self:
            self._note(group)
        return taken

    def __iter__(self) -> Iterator[Group]:
        return iter(self.by_last.values())

    def members(self) -> list[Occurrence]:
        """All that wait in a group."""
        return [one for group in self for one in group.members]

    def _note(self, group: Group) -> None:
        self.over_from = min(self.over_from, group.over_at)
        self.begun_from = min(self.begun_from, start_of(group.last))


def last_of(one: Occurrence) -> Any:
    """Return what completes an occurrence; itself if it binds no event."""
    event = completing(one)
    return one if event is None else event


def by_end(
    found: list[Occurrence], limit: int, *, drop_maybe: bool
) -> tuple[list[Occurrence], list[Occurrence]]:
    """Return what is reported of those that end by the limit, by what completes each.

    And the others, which wait.
    """
    groups: dict[int, list[Occurrence]] = {}
    rest = []
    for one in found:
        if end_of(one) > limit:
            rest.append(one)
        elif not (drop_maybe and certainty_of(one) == MAYBE):
            groups.setdefault(id(last_of(one)), []).append(one)
    return as_reported(groups.values()), rest


def as_reported(groups: Iterable[list[Occurrence]]) -> list[Occurrence]:
    """Return what is reported of the groups, in order."""
    made = list(map(together, groups))
    sort_in_order(made)
    return made


def decide(
    found: list[Occurrence], selection: Selection, decided: Decided, limit: int
) -> tuple[list[Occurrence], list[Occurrence]]:
    """Those that `last` and `first` have chosen for good, and those of which it is not known."""
    closed = [selection.closes_at(one) <= limit for one in found]
    if not any(closed):
        return [], found
    winners = {id(one) for one in selection.chosen(found, decided)}
    for one, is_closed in zip(found, closed, strict=True):
        if is_closed:
            selection.decide(one, decided)
    chosen = [
        one
        for one, is_closed in zip(found, closed, strict=True)
        if is_closed and id(one) in winners
    ]
    rest = [one for one, is_closed in zip(found, closed, strict=True) if not is_closed]
    return chosen, rest


def ripe(
    groups: Groups,
    undecided: list[Occurrence],
    completion: Completion,
    limit: int,
    begins: Callable[[], int],
    *,
    in_order: bool,
) -> list[list[Occurrence]]:
    """The members of each group that nothing can join any more; they leave.

    Nothing else that ends by the limit is found, nor anything that begins before `begins()`.
    `in_order`: only what nothing can precede that is reported later.
    """
    begun = begins() if groups.by_last and completion.lingers else WATERMARK_NONE
    # Asked at each watermark, and mostly nothing is whole: two comparisons, not one a group.
    if groups.over_from > limit and groups.begun_from >= begun:
        return []
    # One of a group that `last` may still refuse keeps the group together, and waiting.
    open_still = {id(last_of(one)) for one in undecided}
    keys = [
        key
        for key, group in groups.by_last.items()
        if key not in open_still and (group.over_at <= limit or start_of(group.last) < begun)
    ]
    if in_order:
        keys = _unpreceded(groups, keys, undecided, limit)
    return groups.take(keys) if keys else []


def _unpreceded(
    groups: Groups, keys: list[int], undecided: list[Occurrence], limit: int
) -> list[int]:
    ready = set(keys)
    ends = [end_of(group.last) for key, group in groups.by_last.items() if key not in ready]
    ends += [end_of(last_of(one)) for one in undecided]
    known = min([limit + 1, *ends])
    return [key for key in keys if max(map(end_of, groups.by_last[key].members)) < known]


def together(several: list[Occurrence]) -> Occurrence:
    """Several occurrences as one: each place the list of all that fills it in any of them."""
    columns = []
    for column in zip(*map(events_of, several), strict=True):
        # Paper 002's result set: an event that is in many matches is sent once.
        distinct = {identity(member): member for member in flat(column)}
        columns.append(tuple(sorted(distinct.values(), key=lambda member: member.order)))
    end: int = max(map(end_of, several))
    # Of a set that holds a certain match it is certain that there is one.
    strongest = max(map(certainty_of, several))
    end = Maybe(end) if strongest == MAYBE else int(end)
    return (end, min(map(start_of, several)), *columns)


def times(
    groups: Groups,
    found: list[Occurrence],
    selection: Selection | None,
    completion: Completion,
    watermark: int,
    *,
    in_order: bool,
) -> list[int]:
    """The watermarks at which a group may be whole."""
    known = [completion.over_at(last_of(one)) for one in found]
    if selection is not None:
        closes = map(selection.closes_at, found)
        known = [max(pair) for pair in zip(known, closes, strict=True)]
    if in_order:
        known += [end_of(one) for one in groups.members()]
    if groups.over_from > watermark and not in_order:
        return [*known, groups.over_from]
    return known + [group.over_at for group in groups]
