"""What a broker knows of itself: what it hosts and which streams pass it, and from all of these.

Owns the tables' types, and what of them a laid stream comes to. Must not know messages or search.
Invariant: the tables of two neighbours agree on the streams of their link; what lies behind a
neighbour is told by nothing but that link.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from planner.network import Network
from planner.rounds.units import SCALE

HERE = -1


class Hosted(msgspec.Struct, frozen=True, array_like=True):
    """A piece that runs here; `term` grows by one each time another broker takes it over."""

    piece: int
    term: int
    cost: int


class Passing(msgspec.Struct, frozen=True, array_like=True):
    """A stream: the neighbour it comes from (HERE: it begins here), those it goes on to."""

    stream: int
    rate: int
    up: int
    down: tuple[int, ...]


class Joined(msgspec.Struct, frozen=True, array_like=True):
    """The partial results of an aggregate: how many come from whom, and toward whom all go.

    `toward` is HERE at the header; `own`: one is made here.
    """

    aggregate: int
    rate: int
    toward: int
    come: tuple[tuple[int, int], ...]
    own: bool


class Tables(msgspec.Struct, frozen=True, array_like=True):
    """All of one broker, each list ascending."""

    hosted: tuple[Hosted, ...] = ()
    passing: tuple[Passing, ...] = ()
    joined: tuple[Joined, ...] = ()


@dataclass(frozen=True, slots=True)
class LaidStream:
    """A stream of which all ends are known: the broker that sends it, and those that get it."""

    number: int
    rate: int
    source: int
    ends: Sequence[int]


@dataclass(frozen=True, slots=True)
class LaidAggregate:
    """An aggregate's header, where its partials run, and how many results come in besides."""

    number: int
    rate: int
    header: int
    makers: Collection[int]
    come: Sequence[tuple[int, int]] = ()


def laid_tables(
    tree: Network,
    brokers: Iterable[int],
    hosted: Mapping[int, Sequence[Hosted]],
    streams: Iterable[LaidStream],
    aggregates: Iterable[LaidAggregate],
) -> list[Tables]:
    """Return the tables of `brokers`; streams and aggregates ascend by number.

    Ends may lie beyond `brokers`, next to one of them.
    """
    passing: dict[int, list[Passing]] = {broker: [] for broker in brokers}
    joined: dict[int, list[Joined]] = {broker: [] for broker in passing}
    for stream in streams:
        for node, (up, down) in _spread(tree, stream.source, stream.ends).items():
            if node in passing:
                entry = Passing(stream.number, stream.rate, up, tuple(sorted(down)))
                passing[node].append(entry)
    for joint in aggregates:
        sources = [*((maker, 1) for maker in sorted(joint.makers)), *joint.come]
        for node, come in _gathered(tree, joint.header, sources).items():
            toward = tree.next_hop(node, joint.header) if node != joint.header else HERE
            assert toward is not None
            if node in joined:
                counts, own = tuple(sorted(come.items())), node in joint.makers
                joined[node].append(Joined(joint.number, joint.rate, toward, counts, own))
    result = []
    for node, entries in passing.items():
        pieces = sorted(hosted.get(node, ()), key=lambda item: item.piece)
        result.append(Tables(tuple(pieces), tuple(entries), tuple(joined[node])))
    return result


def _spread(tree: Network, source: int, ends: Sequence[int]) -> dict[int, tuple[int, list[int]]]:
    """Of each broker that a stream reaches: whence, and where on; ends out of reach are lost."""
    reached: dict[int, tuple[int, list[int]]] = {source: (HERE, [])}
    for end in ends:
        node = end
        if end not in tree.hops(source):
            continue
        while node not in reached:
            before = tree.next_hop(node, source)
            assert before is not None
            reached[node] = (before, [])
            node = before
    for node, (up, _) in reached.items():
        if up != HERE:
            reached[up][1].append(node)
    return reached


def _gathered(
    tree: Network, header: int, sources: Iterable[tuple[int, int]]
) -> dict[int, dict[int, int]]:
    """Of each broker on a way to the header: how many partial results come from whom."""
    counts: dict[int, dict[int, int]] = {header: {}}
    for source, count in sources:
        if source not in tree.hops(header):
            continue
        counts.setdefault(source, {})
        for node, onward in pairwise(tree.path(source, header)):
            come = counts.setdefault(onward, {})
            come[node] = come.get(node, 0) + count
    return counts


class TableLoads:
    """Sum up one broker's tables: its work, and what it sends over each of its links."""

    def __init__(self, tables: Tables, *, drained: bool = False) -> None:
        # What is to go away counts at least as much as is felt.
        self.work = sum(max(piece.cost, SCALE if drained else 0) for piece in tables.hosted)
        # By neighbour, members of the vicinity and others alike.
        self.sent: dict[int, int] = {}
        for entry in tables.passing:
            for neighbour in entry.down:
                self.sent[neighbour] = self.sent.get(neighbour, 0) + entry.rate
        for joined in tables.joined:
            if joined.toward != HERE:
                load = joined.rate * (joined.own + sum(count for _, count in joined.come))
                self.sent[joined.toward] = self.sent.get(joined.toward, 0) + load

    @property
    def flow(self) -> int:
        """All that the broker sends to its neighbours."""
        return sum(self.sent.values())
