"""Partial results: what is known of one group's events in a pane or a run, and those of others.

Owns the taking of events into a partial, the merging of several, and what other brokers have made
of panes that are not complete. Must not know which windows a pane belongs to, watermarks, nor who
sends partials. Invariant: a partial is the same however its events were ordered, taken in runs or
merged; what another has sent can be taken back until its pane is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from broker.engine.event.event import doubtful, lasting
from broker.engine.window.aggregates import plain_value, value_of
from broker.engine.window.code import Shape
from broker.engine.window.constituents import (
    IDS_MAX,
    NEVER,
    Constituents,
    Head,
    order_of,
    plain_order,
)
from broker.engine.window.plan import Aggregation, subject_of

WHOLE_MAX = 32  # events up to which a merged group is no more than the list of them
PENDING_MAX = 2_048  # events set aside before they are taken: runs cost less than single events

_order = attrgetter("order")
_start = attrgetter("start")
_end = attrgetter("end")
_uncertainty = attrgetter("uncertainty")


class Partial:
    """A group's counts, span, first events, and what its aggregates keep (see emit.Summary).

    It is itself the list of its first events: one object for each group and pane, not two. As long
    as these are all, and of one leaf, it is `whole`: what else is kept is made of them when it is
    read, as most windows have few events of a group, and merging lists is the least of merging.
    Else they are those that may yet be among the first `most`.
    """

    __slots__ = (
        "bound", "counts", "end", "events", "folded", "lacking", "maybe", "most", "shape", "start",
        "uncertainty", "whole",
    )  # fmt: skip

    def __init__(self, shape: Shape, events: list[Any] | None = None) -> None:
        """`events`: with which it begins, of a simple shape (see there): its own list of them."""
        self.shape = shape
        self.bound, self.most = NEVER, IDS_MAX  # what ends after `bound` is not among the first
        self.lacking: tuple[str, ...] = ()  # aggregates that were asked for after events had come
        self.whole = shape.whole
        self.folded: list[Any] | None = None if shape.whole else shape.new_in_pane()
        self.uncertainty = 0
        self.maybe = False
        if events is None:
            self.events = []
            self.counts = [0] * len(shape.leaves)
            self.start, self.end = NEVER, -NEVER
        else:
            self.events = events
            self.counts = [len(events)]
            self.start, self.end = events[0].end, events[-1].end

    @property
    def kept(self) -> list[Any]:
        """Return what its aggregates keep."""
        kept = self.folded
        if kept is None:
            kept = self.folded = self.shape.new_in_pane()
            if self.events:
                self.shape.fold(0, kept, self.events)
        return kept

    def take(self, leaf: int, events: Sequence[Any], *, ascending: bool, instants: bool) -> None:
        """Take a run of events of a leaf.

        `ascending`: none ends before the one before it; `instants`: see `are_instants`.
        """
        if self.folded is not None:
            self.shape.fold(leaf, self.folded, events)
        self.counts[leaf] += len(events)
        # As a rule two look-ups in place of three walks over the run, for each group and run.
        low, high = events[0].end, events[-1].end
        if not ascending:
            ends = list(map(_end, events))
            low, high = min(ends), max(ends)
        start = low
        if not instants:
            start = min(map(_start, events))
            self.uncertainty = max(self.uncertainty, *map(_uncertainty, events))
        # Comparisons in place of min and max, as in `merged`.
        if start < self.start:  # noqa: PLR1730
            self.start = start
        if high > self.end:  # noqa: PLR1730
            self.end = high
        if self.bound == NEVER and len(self.events) + len(events) <= self.most:
            self.events += events
        elif low <= self.bound:
            self.keep_first(events, low)
        # Only detected events can be of less than full certainty.
        if self.shape.detected[leaf] and not self.maybe:
            self.maybe = any(event.certainty != "yes" for event in events)

    def crowd(self, ids: int) -> bool:
        """Keep no more events for the sake of order than `ids`; return True if it kept more."""
        if ids >= self.most:
            return False
        self.most = ids
        return True

    def keep_first(self, events: Sequence[Any], low: int) -> None:
        """Add events, none of which ends before `low`; twice as many as `most` may be kept."""
        if low > self.bound:
            return
        if self.bound < NEVER:
            bound = self.bound
            events = [event for event in events if event.end <= bound]
        self.events += events
        if len(self.events) > 2 * self.most:
            self._cut()

    def shorten(self, most: int) -> None:
        """Keep no more than so many."""
        self.most = min(self.most, most)
        if len(self.events) > self.most:
            self._cut()

    def constituents(self) -> Constituents:
        """The ids; nothing may be taken any more."""
        return Constituents(self.events, most=self.most)

    def merged(self, others: Sequence[Partial]) -> Partial:
        """Return a new partial of this one and others together, none of which is changed."""
        made: Partial = Partial.__new__(Partial)
        shape = made.shape = self.shape
        events, ids_max, bound = list(self.events), self.most, self.bound
        start, end, whole = self.start, self.end, self.whole
        uncertainty, maybe, lacking = self.uncertainty, self.maybe, self.lacking
        for other in others:
            events += other.events
            # Comparisons in place of min and max: this runs for each group and pane.
            if other.start < start:  # noqa: PLR1730
                start = other.start
            if other.end > end:  # noqa: PLR1730
                end = other.end
            if other.uncertainty > uncertainty:  # noqa: PLR1730
                uncertainty = other.uncertainty
            if other.most < ids_max:  # noqa: PLR1730
                ids_max = other.most
            if other.bound < bound:  # noqa: PLR1730
                bound = other.bound
            if other.maybe:
                maybe = True
            if other.lacking:
                lacking = tuple(dict.fromkeys([*lacking, *other.lacking]))
            whole = whole and other.whole
        made.start, made.end, made.most, made.bound = start, end, ids_max, bound
        made.uncertainty, made.maybe, made.lacking = uncertainty, maybe, lacking
        made.whole = whole and len(events) <= WHOLE_MAX
        # Beyond the bound, the lists of some are not whole.
        made.events = (
            events if bound == NEVER else [event for event in events if event.end <= bound]
        )
        if made.whole:
            made.counts, made.folded = [len(events)], None
        else:
            parts = [self, *others]
            made.counts = [sum([part.counts[leaf] for part in parts]) for leaf in shape.leaves]
            columns = zip(*[part.kept for part in parts], strict=True)
            made.folded = [kept.merged(same) for kept, *same in columns]
        if len(made.events) > 2 * ids_max:
            made._cut()
        return made

    def plain(self) -> list[Any]:
        """Return plain data."""
        heads = [self.most, self.bound, [plain_order(event.order) for event in self.events]]
        span = [self.start, self.end, self.uncertainty, self.maybe, heads]
        plain = [list(self.counts), span, [kept.plain() for kept in self.kept]]
        return [*plain, list(self.lacking)] if self.lacking else plain

    @classmethod
    def of_plain(cls, shape: Shape, data: list[Any]) -> Partial:
        """Return the partial that `plain` gave as plain data."""
        made = cls(shape)
        made.folded, made.whole = shape.new_in_pane(), False
        made.counts, span, kept = list(data[0]), data[1], data[2]
        made.start, made.end, made.uncertainty, made.maybe = span[:4]
        made.most, made.bound = span[4][:2]
        made.events = [Head(order_of(order)) for order in span[4][2]]
        for accumulator, plain in zip(made.folded, kept, strict=True):
            accumulator.restore(plain)
        made.lacking = tuple(data[3]) if len(data) > 3 else ()
        return made

    def _cut(self) -> None:
        self.folded, self.whole = self.kept, False
        count_max = self.most
        ends = sorted(map(_end, self.events))
        bound = self.bound = ends[count_max - 1]
        kept = [event for event in self.events if event.end <= bound]
        self.events = sorted(kept, key=_order)[:count_max] if len(kept) > count_max else kept


SUMS = ("tally", "moments", "squares")  # each keeps what those before it do


class Conversion:
    """Partials of one version of a window as those of another, which assigns other aggregates.

    Of the events that had come by then nothing was kept for the sake of an aggregate that only the
    other asks for: it is *lacking*, and null, in whatever has any of them.
    """

    def __init__(self, before: Aggregation, now: Aggregation) -> None:
        kept = {subject_of(argument): argument.kept for argument in before.arguments}
        self._now = now
        self._sources: list[tuple[int, str, str] | None] = [None] * len(now.keepings)
        for argument in now.arguments:
            earlier = kept.get(subject_of(argument), {})
            for what, number in argument.kept.items():
                source = next((name for name in _substitutes(what) if name in earlier), None)
                if source is not None:
                    self._sources[number] = (earlier[source], source, what)
        self.lacking = tuple(
            [
                call
                for call, (argument, what) in now.needs.items()
                if not any(name in kept.get(subject_of(argument), {}) for name in _stronger(what))
            ]
        )

    def convert(self, shape: Shape, data: list[Any]) -> list[Any]:
        """Return the plain data of a partial as that of the other version's."""
        # What is lacking begins empty all the same: it is taken along, and never read.
        kept = [accumulator.plain() for accumulator in shape.new_in_pane()]
        for number, source in enumerate(self._sources):
            if source is not None:
                place, what, wanted = source
                kept[number] = _summed(data[2][place], what, wanted)
        asked = [call for call in (data[3] if len(data) > 3 else ()) if call in self._now.needs]
        lacking = list(dict.fromkeys([*asked, *self.lacking]))
        return [data[0], data[1], kept, *([lacking] if lacking else [])]


def _stronger(what: str) -> tuple[str, ...]:
    """Return what keeps all that `what` does."""
    return SUMS[SUMS.index(what) :] if what in SUMS else (what,)


def _substitutes(what: str) -> tuple[str, ...]:
    """Return what `what` can go on from, if only in part."""
    return (*_stronger(what), *reversed(SUMS[: SUMS.index(what)])) if what in SUMS else (what,)


def _summed(data: Any, what: str, wanted: str) -> Any:
    """Return the plain data of one of SUMS as that of another."""
    if what == wanted:
        return data
    if wanted == "tally":
        return data[0]
    number, total, squares, unit = [data, "0", "0", "1"] if what == "tally" else data
    return [number, total, squares if wanted == "squares" else "0", unit]


def are_instants(events: Sequence[Any]) -> bool:
    """Return True if the events are points in time, and sure of it, as those of most streams."""
    if len(events) == 1:
        return bool(events[0].start == events[0].end and not events[0].uncertainty)
    return not lasting(events) and not doubtful(events)


Groups = dict[Any, Partial]
PlainGroups = list[list[Any]]  # [key, partial] each, as plain data
PaneRows = list[list[Any]]  # [pane, PlainGroups] each


class Apart:
    """The partials that others have made, by pane and maker, until their pane is complete.

    They stand apart so that those of a maker that begins again can be taken back as if they had
    never come: a sum has an inverse, but an extreme or a list of first ids has none.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._panes: dict[int, dict[str, Groups]] = {}

    def __bool__(self) -> bool:
        return bool(self._panes)

    def __len__(self) -> int:
        return sum(len(groups) for _, _, groups in self._each())

    def take(self, maker: str, pane: int, key: Any, partial: Partial) -> bool:
        """Add to what a maker has sent of a group; return True if it had sent none."""
        groups = self._panes.setdefault(pane, {}).setdefault(maker, {})
        sent = groups.get(key)
        groups[key] = partial if sent is None else sent.merged([partial])
        return sent is None

    def drop(self, maker: str, first: int | None) -> int:
        """Take back a maker's panes from the first on; return how many groups they had."""
        count = 0
        for pane, makers in list(self._panes.items()):
            if first is None or pane >= first:
                count += len(makers.pop(maker, {}))
            if not makers:
                del self._panes[pane]
        return count

    def rename(self, maker: str, name: str) -> None:
        """Give what a maker has sent another name, which has sent nothing."""
        for makers in self._panes.values():
            if maker in makers:
                makers[name] = makers.pop(maker)

    def panes(self) -> list[int]:
        """Return the panes of which partials were sent."""
        return sorted(self._panes)

    def settle(self, pane: int, into: Groups) -> int:
        """Merge a pane into its groups; return how many fewer there are so."""
        fewer = 0
        for groups in self._panes.pop(pane, {}).values():
            for key, partial in groups.items():
                other = into.get(key)
                fewer += other is not None
                into[key] = partial if other is None else other.merged([partial])
        return fewer

    def state(self) -> list[Any]:
        """Return plain data."""
        return [[pane, maker, plain_groups(groups)] for pane, maker, groups in self._each()]

    def restore(self, state: Iterable[list[Any]]) -> None:
        """Take up what `state` gave."""
        self._panes = {}
        for pane, maker, groups in state:
            self._panes.setdefault(pane, {})[maker] = groups_of(self._shape, groups)

    def _each(self) -> Iterator[tuple[int, str, Groups]]:
        for pane, makers in self._panes.items():
            for maker, groups in makers.items():
                yield pane, maker, groups


# --- plain data -------------------------------------------------------------------------------


def plain_groups(groups: Groups) -> PlainGroups:
    """Return groups as plain data."""
    return [[plain_key(key), partial.plain()] for key, partial in groups.items()]


def groups_of(shape: Shape, data: PlainGroups) -> Groups:
    """Return the groups that `plain_groups` gave as plain data."""
    return {key_of(key): Partial.of_plain(shape, partial) for key, partial in data}


def plain_key(key: Any) -> Any:
    """Return a key of a group, of `distinct` or of a window as plain data."""
    if isinstance(key, tuple):
        return [plain_key(part) for part in key]
    return plain_value(key)


def key_of(data: Any) -> Any:
    """Return the key that `plain_key` gave as plain data."""
    if isinstance(data, list):
        return tuple(key_of(part) for part in data)
    return value_of(data)
