"""What a broker knows of itself: what it hosts and which streams pass it, and from all of these.

Owns the tables' types, and the tables that a placement gives. Must not know messages or search.
Invariant: the tables of two neighbours agree on the streams of their link; what lies behind a
neighbour is told by nothing but that link.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from planner.layout import Layout
from planner.rounds.tree import Tree
from planner.rounds.units import scaled

HERE = -1


class Hosted(msgspec.Struct, frozen=True, array_like=True):
    """A piece that runs here; `term` grows by one each time somebody new is entrusted with it."""

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


class Amounts:
    """Rates and costs as they stand, in whole units."""

    def __init__(self, layout: Layout) -> None:
        self.rates = [scaled(stream.rate) for stream in layout.streams]
        self.partials = [scaled(aggregate.rate) for aggregate in layout.aggregates]
        self.costs = [scaled(piece.cost) for piece in layout.pieces]


@dataclass(frozen=True, slots=True)
class Standing:
    """A network of which all know where each piece runs, and what everything comes to."""

    layout: Layout
    tree: Tree
    hosts: tuple[int, ...]
    amounts: Amounts

    def tables(self) -> list[Tables]:
        """The tables of all brokers."""
        return tables_of(self.layout, self.tree, self.hosts, self.amounts)


def tables_of(
    layout: Layout,
    tree: Tree,
    hosts: Sequence[int],
    amounts: Amounts,
    terms: Mapping[int, int] | None = None,
) -> list[Tables]:
    """The tables of all brokers when each piece is at its host; a host of -1: nowhere."""
    count = len(tree.neighbours)
    hosted: list[list[Hosted]] = [[] for _ in range(count)]
    for piece, host in enumerate(hosts):
        if host >= 0:
            term = 0 if terms is None else terms.get(piece, 0)
            hosted[host].append(Hosted(piece, term, amounts.costs[piece]))
    passing: list[list[Passing]] = [[] for _ in range(count)]
    for number, stream in enumerate(layout.streams):
        source = stream.origin if stream.piece is None else hosts[stream.piece]
        if source is None or source < 0:
            continue
        ends = [*(hosts[piece] for piece in stream.consumers), *stream.destinations]
        for node, (up, down) in _spread(tree, source, ends).items():
            rate = amounts.rates[number]
            passing[node].append(Passing(number, rate, up, tuple(sorted(down))))
    joined: list[list[Joined]] = [[] for _ in range(count)]
    for number, aggregate in enumerate(layout.aggregates):
        header = hosts[aggregate.header]
        if header < 0:
            continue
        makers = {hosts[piece] for piece in aggregate.partials}
        for node, come in _gathered(tree, header, makers).items():
            toward = tree.next_hop(node, header) if node != header else HERE
            assert toward is not None
            rate = amounts.partials[number]
            counts = tuple(sorted(come.items()))
            joined[node].append(Joined(number, rate, toward, counts, node in makers))
    return [
        Tables(tuple(h), tuple(p), tuple(j))
        for h, p, j in zip(hosted, passing, joined, strict=True)
    ]


def _spread(tree: Tree, source: int, ends: Sequence[int]) -> dict[int, tuple[int, list[int]]]:
    """Of each broker that a stream reaches: whence, and where on; ends out of reach are lost."""
    found: dict[int, tuple[int, list[int]]] = {source: (HERE, [])}
    for end in ends:
        node = end
        if end not in tree.hops(source):
            continue
        while node not in found:
            before = tree.next_hop(node, source)
            assert before is not None
            found[node] = (before, [])
            node = before
    for node, (up, _) in found.items():
        if up != HERE:
            found[up][1].append(node)
    return found


def _gathered(tree: Tree, header: int, makers: set[int]) -> dict[int, dict[int, int]]:
    """Of each broker on a way to the header: how many partial results come from whom."""
    found: dict[int, dict[int, int]] = {header: {}}
    for maker in sorted(makers):
        if maker not in tree.hops(header):
            continue
        way = tree.way(maker, header)
        found.setdefault(maker, {})
        for node, onward in pairwise(way):
            come = found.setdefault(onward, {})
            come[node] = come.get(node, 0) + 1
    return found
