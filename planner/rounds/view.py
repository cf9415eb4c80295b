"""What one broker knows of its vicinity, put together: members, pieces and the ends of streams.

Owns the joining of tables into one picture, and the finding of contradictions. Must not know how a
better plan is searched. Invariant: a view is made only of tables that agree on every stream of
every link between members; what lies outside is told by the members' links to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from planner.layout import Layout
from planner.network import Network
from planner.rounds.tables import HERE, Passing, Tables


class Summary(msgspec.Struct, frozen=True, array_like=True):
    """State what a broker tells of itself; `version` grows with each change of it.

    `drained`: it is to be rid of what it runs, and takes nothing up.
    """

    broker: int
    epoch: int
    version: int
    capacity: int | None
    egress: int | None
    tables: Tables
    drained: bool = False


@dataclass
class Ends:
    """A stream as far as the members know: where it has an end, and the links that leave.

    `source` is a member: where the stream begins or comes in (from the neighbour `whence`).
    """

    rate: int
    source: int
    whence: int
    at: dict[int, int] = field(default_factory=dict)
    out: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Joint:
    """The partial results of an aggregate as far as the members know.

    `header` is a member: where it runs, or where the way to it leaves (to the neighbour `beyond`).
    """

    rate: int
    header: int
    beyond: int
    come: list[tuple[int, int, int]] = field(default_factory=list)


@dataclass
class View:
    """A connected part of the tree; members count from the leader, nearer ones first."""

    layout: Layout
    tree: Network
    brokers: list[int]
    parent: list[int]
    summaries: list[Summary]
    at: dict[int, int] = field(default_factory=dict)
    streams: dict[int, Ends] = field(default_factory=dict)
    joints: dict[int, Joint] = field(default_factory=dict)

    @property
    def numbers(self) -> dict[int, int]:
        """The member of each broker."""
        return {broker: member for member, broker in enumerate(self.brokers)}


def view_of(
    layout: Layout, tree: Network, leader: int, radius: int, known: Mapping[int, Summary]
) -> View | None:
    """Return what `leader` knows of its vicinity; None while that contradicts itself.

    A broker of which nothing is known yet hides those behind it.
    """
    if leader not in known:
        return None
    brokers: list[int] = []
    parent: list[int] = []
    member: dict[int, int] = {}
    for broker in tree.within(leader, radius):
        before = tree.next_hop(broker, leader)
        if broker in known and (before is None or before in member):
            member[broker] = len(brokers)
            brokers.append(broker)
            parent.append(-1 if before is None else member[before])
    view = View(layout, tree, brokers, parent, [known[broker] for broker in brokers])
    for number, summary in enumerate(view.summaries):
        for one in summary.tables.hosted:
            if one.piece in view.at:
                return None  # two say that they run it: one has yet to hear of the other
            view.at[one.piece] = number
    if not (_streams(view, member) and _joints(view, member)):
        return None
    return view if _agree(view, member) else None


def _streams(view: View, member: Mapping[int, int]) -> bool:
    """Finds where streams have their ends; False where one comes in at two places."""
    for number, summary in enumerate(view.summaries):
        for one in summary.tables.passing:
            ends = view.streams.get(one.stream)
            if ends is None:
                ends = view.streams[one.stream] = Ends(one.rate, -1, HERE)
            if one.up == HERE or one.up not in member:
                if ends.source >= 0:
                    return False
                ends.source, ends.whence, ends.rate = number, one.up, one.rate
                ends.at[number] = ends.at.get(number, 0) + 1
            for other in one.down:
                if other not in member:
                    ends.out.append((number, other))
                    ends.at[number] = ends.at.get(number, 0) + 1
    return _inner_ends(view, member)


def _inner_ends(view: View, member: Mapping[int, int]) -> bool:
    """Adds the members' own ends; False where a stream begins elsewhere than its piece is."""
    for stream, ends in view.streams.items():
        known = view.layout.streams[stream]
        if ends.source < 0:
            return False
        if ends.whence == HERE and known.piece is not None:
            if view.at.get(known.piece) != ends.source:
                return False
        elif ends.whence != HERE and known.piece in view.at:
            return False
        for piece in known.consumers:
            if piece in view.at:
                node = view.at[piece]
                ends.at[node] = ends.at.get(node, 0) + 1
        for broker in known.destinations:
            if broker in member:
                node = member[broker]
                ends.at[node] = ends.at.get(node, 0) + 1
    return True


def _joints(view: View, member: Mapping[int, int]) -> bool:
    """Finds where partial results go; False where they go to two places."""
    for number, summary in enumerate(view.summaries):
        for one in summary.tables.joined:
            joint = view.joints.get(one.aggregate)
            if joint is None:
                joint = view.joints[one.aggregate] = Joint(one.rate, -1, HERE)
            if one.toward == HERE or one.toward not in member:
                if joint.header >= 0:
                    return False
                joint.header, joint.beyond = number, one.toward
            joint.come += [(number, who, n) for who, n in one.come if who not in member]
    for number, aggregate in enumerate(view.layout.aggregates):
        joint = view.joints.get(number)
        if joint is None:
            if any(piece in view.at for piece in (*aggregate.partials, aggregate.header)):
                return False
            continue
        here = joint.header if joint.beyond == HERE else None
        if joint.header < 0 or view.at.get(aggregate.header) != here:
            return False
    return True


def _agree(view: View, member: Mapping[int, int]) -> bool:
    """Tell whether both ends of each link between members tell the same of it."""
    passing = [{one.stream: one for one in summary.tables.passing} for summary in view.summaries]
    for summary in view.summaries:
        own = summary.broker
        for one in summary.tables.passing:
            if one.up in member:
                before = passing[member[one.up]].get(one.stream)
                if before is None or own not in before.down or before.rate != one.rate:
                    return False
            for other in one.down:
                if other in member and not _comes(passing[member[other]], one.stream, own):
                    return False
    counts: dict[tuple[int, int, int], int] = {}
    for summary in view.summaries:
        for joined in summary.tables.joined:
            if joined.toward in member:
                sent = joined.own + sum(count for _, count in joined.come)
                counts[joined.aggregate, summary.broker, joined.toward] = sent
    for summary in view.summaries:
        for joined in summary.tables.joined:
            for who, count in joined.come:
                if who in member:
                    key = (joined.aggregate, who, summary.broker)
                    if counts.pop(key, None) != count:
                        return False
    return not counts


def _comes(passing: Mapping[int, Passing], stream: int, own: int) -> bool:
    found = passing.get(stream)
    return found is not None and found.up == own
