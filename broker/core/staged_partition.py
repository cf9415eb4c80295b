"""What a staged agent keeps for a partition, and what its case asks of choices.

Owns the shape of partitions and their snapshots. Must not know how they go on.
"""

from __future__ import annotations

from typing import Any

from broker.core.choice import Manner, Waiting
from broker.core.event import Event
from broker.core.occurrence import Occurrence, events_of, flat
from broker.core.operands import Gathered, Joint, Leaf, Negation, Padded, Silence, operands
from broker.core.pattern import Layout
from broker.core.selection import Selection
from broker.core.stages.base import Site, Stage
from language.tree import Case, Subscription, Thinning

PLAIN_CONTEXTS = frozenset(("unrestricted", "recent"))  # those that joins alone know


def needs_stages(case: Case, layout: Layout, subscription: Subscription | None) -> bool:
    """Whether the case asks for more than joins in order."""
    if case.detect.report != "all" or layout.first or layout.named:
        return True
    if layout.last and case.consuming:  # choosing again asks for all that had their turn
        return True
    if subscription is not None and (
        subscription.at_most is not None
        or subscription.for_ms is not None
        or subscription.until_ms is not None
    ):
        return True
    return any(
        not isinstance(one, Leaf | Joint)
        or (isinstance(one, Joint) and (one.nth is not None or one.context not in PLAIN_CONTEXTS))
        for one in operands(layout.root)
    )


class Partition:
    """The stages of one partition, and what waits for its turn."""

    __slots__ = ("due", "log", "root", "site", "size", "waiting")

    def __init__(self, site: Site, root: Stage) -> None:
        self.site = site
        self.root = root
        self.waiting = Waiting()
        self.log: list[tuple[int, Event]] = []  # kept where events are consumed
        self.due: int | None = None
        self.size = 0

    def idle(self, watermark: int, per_ms: int) -> bool:
        """Whether a new one would do as well; `per_ms` is that of `at most`."""
        waiting = self.waiting
        if self.size or waiting.found or waiting.answered or waiting.decided:
            return False
        if waiting.suppressed or (waiting.reported and waiting.reported[-1] + per_ms > watermark):
            return False
        return self.root.idle()

    def forget(self, oldest: int) -> None:
        """Forget logged events that end before the time, and what was chosen of them."""
        if self.log[0][1].end >= oldest:
            return
        self.log = [entry for entry in self.log if entry[1].end >= oldest]
        if self.site.memory is not None:
            self.site.memory.forget(oldest)


def manner_of(case: Case, layout: Layout, duration_max_ms: int, at_most: Thinning | None) -> Manner:
    """How the case's occurrences are chosen and consumed."""
    selects = layout.last or layout.first
    return Manner(
        Selection(layout, duration_max_ms) if selects else None,
        tuple([layout.places[name] for name in case.consuming]),
        case.detect.report,
        None if at_most is None else (at_most.count, at_most.per_ms),
        sum([one.for_ms for one in operands(layout.root) if isinstance(one, Silence)]),
        case.detect.maybe_drop,
    )


def logged(
    layout: Layout, stores: list[tuple[list[Occurrence], list[Occurrence]]]
) -> list[tuple[int, Event]]:
    """The events of the atoms that the stores hold, in order."""
    found = []
    for joint, (lefts, rights) in zip(layout.joints, stores, strict=True):
        for side, items in ((joint.left, lefts), (joint.right, rights)):
            if isinstance(side, Leaf):
                found += [(side.low, event) for event in items]
    found.sort(key=lambda entry: (entry[1].order, entry[0]))
    return found


def waiting_state(waiting: Waiting) -> list[Any]:
    """What waits, as occurrences and plain values in lists."""
    return [
        waiting.found,
        [] if waiting.taken is None else [waiting.taken],
        list(waiting.answered.values()),
        [one for _, one in waiting.decided.values()],
        list(waiting.reported),
        waiting.suppressed,
    ]


def restore_waiting(waiting: Waiting, state: list[Any], selection: Selection | None) -> None:
    """Take that up again."""
    found, taken, answered, decided, reported, suppressed = state
    waiting.found = found
    waiting.taken = taken[0] if taken else None
    waiting.answered = {id(event): event for event in answered}
    waiting.suppressed = suppressed
    waiting.reported.extend(reported)
    if selection is not None:
        for one in decided:
            selection.decide(one, waiting.decided)


def reports_at_once(layout: Layout, manner: Manner) -> bool:
    """Whether a pattern's meaning needs no order of time, so that it waits for nothing."""
    return not manner.in_turn and all(
        isinstance(one, Leaf)
        or (
            isinstance(one, Joint)
            and one.context == "unrestricted"
            and one.nth is None
            and not one.next
        )
        for one in operands(layout.root)
    )


def log_keep_ms(layout: Layout) -> int | None:
    """How long before the watermark a consumed pattern's events are needed; None: for ever.

    Only where what is complete depends on nothing but the events that it may bind.
    """
    plain = (Leaf, Joint, Negation, Gathered, Padded)
    for one in operands(layout.root):
        if not isinstance(one, plain) or (isinstance(one, Joint) and one.nth is not None):
            return None
    return layout.root.within_ms


def without_lists(layout: Layout, occurrence: Occurrence) -> list[Any]:
    """What an occurrence binds, without what only fills lists."""
    members = enumerate(events_of(occurrence))
    return flat([member for place, member in members if place not in layout.gathered])
