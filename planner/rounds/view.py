"""What one broker knows of its vicinity, put together: members, pieces and the ends of streams.

Owns the joining of tables into one picture, and the finding of contradictions. Must not know how a
better plan is searched. Invariant: a view is made only of tables that agree on every stream of
every link between members; what lies outside is told by the members' links to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from planner.layout import Layout
from planner.network import Network
from planner.rounds.tables import HERE, Hosted, LaidAggregate, LaidStream, Tables, laid_tables


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


@dataclass(frozen=True, slots=True)
class Ground:
    """A network as others state it to a broker: its number, its tables, and those around.

    Of the brokers `unclear` nothing is known that goes together with the rest, so that nothing is
    planned with them in view.
    """

    me: int
    layout: Layout
    tree: Network
    tables: Tables
    summaries: Mapping[int, Summary] = field(default_factory=dict)
    unclear: Sequence[int] = ()


@dataclass
class Ends:
    """A stream as far as the members know: where it has an end, and the links that leave.

    `source` is a member: where the stream begins or comes in (from the neighbour `whence`).
    """

    rate: int
    source: int
    whence: int
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
    numbers: dict[int, int]
    """The member of each broker."""
    summaries: list[Summary]
    hosts: dict[int, int] = field(default_factory=dict)
    """By piece, the member that runs it."""
    streams: dict[int, Ends] = field(default_factory=dict)
    joints: dict[int, Joint] = field(default_factory=dict)


def view_of(
    layout: Layout, tree: Network, leader: int, radius: int, stated: Mapping[int, Summary]
) -> View | None:
    """Return what `leader` knows of its vicinity; None while that contradicts itself.

    A broker of which nothing is known yet hides those behind it.
    """
    if leader not in stated:
        return None
    member: dict[int, int] = {}
    for broker in tree.within(leader, radius):
        before = tree.next_hop(broker, leader)
        if broker in stated and (before is None or before in member):
            member[broker] = len(member)
    view = View(layout, tree, list(member), member, [stated[broker] for broker in member])
    for number, summary in enumerate(view.summaries):
        for item in summary.tables.hosted:
            if item.piece in view.hosts:
                return None  # two say that they run it: one has yet to hear of the other
            view.hosts[item.piece] = number
    return view if _streams(view) and _joints(view) and _agree(view) else None


def _streams(view: View) -> bool:
    """Finds where streams have their ends; False where one comes in at two places."""
    for number, summary in enumerate(view.summaries):
        for entry in summary.tables.passing:
            ends = view.streams.setdefault(entry.stream, Ends(entry.rate, -1, HERE))
            if entry.up == HERE or entry.up not in view.numbers:
                if ends.source >= 0:
                    return False
                ends.source, ends.whence, ends.rate = number, entry.up, entry.rate
            for other in entry.down:
                if other not in view.numbers:
                    ends.out.append((number, other))
    return _inner_ends(view)


def _inner_ends(view: View) -> bool:
    """Tell whether each stream has a source, and begins where its piece is if it begins here."""
    for stream, ends in view.streams.items():
        listed = view.layout.streams[stream]
        host = ends.source if ends.whence == HERE else None
        if ends.source < 0 or (listed.piece is not None and view.hosts.get(listed.piece) != host):
            return False
    return True


def _joints(view: View) -> bool:
    """Finds where partial results go; False where they go to two places."""
    for number, summary in enumerate(view.summaries):
        for entry in summary.tables.joined:
            own = view.joints.setdefault(entry.aggregate, Joint(entry.rate, -1, HERE))
            if entry.toward == HERE or entry.toward not in view.numbers:
                if own.header >= 0:
                    return False
                own.header, own.beyond = number, entry.toward
            own.come += [(number, who, n) for who, n in entry.come if who not in view.numbers]
    for number, aggregate in enumerate(view.layout.aggregates):
        joint = view.joints.get(number)
        if joint is None:
            if any(piece in view.hosts for piece in (*aggregate.partials, aggregate.header)):
                return False
            continue
        host = joint.header if joint.beyond == HERE else None
        if joint.header < 0 or view.hosts.get(aggregate.header) != host:
            return False
    return True


def _agree(view: View) -> bool:
    """Tell whether the members' tables are those that the view itself comes to.

    So both ends of each link between members tell the same of it.
    """
    where = {piece: view.brokers[member] for piece, member in view.hosts.items()}
    return laid(view, where) == [summary.tables for summary in view.summaries]


def laid(view: View, where: Mapping[int, int]) -> list[Tables]:
    """Return the tables of the members with each piece at the broker that `where` names."""
    hosted: dict[int, list[Hosted]] = {}
    for summary in view.summaries:
        for item in summary.tables.hosted:
            host = where[item.piece]
            own = item if host == summary.broker else Hosted(item.piece, item.term + 1, item.cost)
            hosted.setdefault(host, []).append(own)
    streams = []
    for number, ends in sorted(view.streams.items()):
        listed, source = view.layout.streams[number], ends.whence
        if source == HERE:
            source = view.brokers[ends.source] if listed.piece is None else where[listed.piece]
        to = [*(where[p] for p in listed.consumers if p in where), *fixed_ends(view, number)]
        streams.append(LaidStream(number, ends.rate, source, to))
    aggregates = []
    for number, joint in sorted(view.joints.items()):
        shared = view.layout.aggregates[number]
        header = where[shared.header] if joint.beyond == HERE else joint.beyond
        makers = {where[piece] for piece in shared.partials if piece in where}
        come = [(broker, count) for _, broker, count in joint.come]
        aggregates.append(LaidAggregate(number, joint.rate, header, makers, come))
    return laid_tables(view.tree, view.brokers, hosted, streams, aggregates)


def fixed_ends(view: View, stream: int) -> list[int]:
    """Return the brokers that a stream goes to wherever pieces are."""
    to = view.layout.streams[stream].destinations
    inside = [node for node in to if node in view.numbers]
    return inside + [broker for _, broker in view.streams[stream].out]
