"""From what is known of a vicinity to the network that the rounds plan there.

Owns the numbering of brokers, pieces and streams, and each broker's digest. Must not know who tells
what. Invariant: two brokers that know the same of the submissions whose span a third is in have the
same digest of it, and then its tables carry the same at both, whatever numbers each gives to what.

A submission is one piece. What an origin sends of one type is one stream where all ask for the same
and take as much of it. Where one takes clearly less than another that asks for the same, or for
what covers its filter, its part lies within the other's: there are then several streams, each of
what the next one takes besides, and nothing that both want travels twice. Parts of filters of which
neither covers the other are counted both, as if they had nothing in common: that is right where
they are disjoint, and too much where they overlap, so that limits are kept. Results go from the
host to the home, which alone tells others. What lies beyond the brokers that are known counts as
being at the last of them on the way there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.known import Known
from broker.core.coordinator.scope import Geography
from broker.core.coordinator.statement import BrokerWord, Input, Piece, Submission, encoded
from broker.network.operators.filters import Filter, covered_by, filter_of
from planner.layout import Layout, Role, Stream
from planner.layout import Piece as PlannedPiece
from planner.network import Network
from planner.problem import Problem
from planner.rounds.settings import Settings
from planner.rounds.tables import Hosted, LaidStream, Tables, laid_tables
from planner.rounds.units import scaled
from planner.rounds.view import Summary

ALIKE_PERCENT = 25  # rates that differ by less are of the same events, measured at other times
ALIKE_LEAST = 64  # bytes a second: of less nobody cares
DIGEST_BYTES = 7  # so that it fits into a number of 64 bits
NOWHERE = Problem((), (), (), ())  # the rounds go by the layout alone

Hosts = Callable[[Submission], tuple[str, int]]
"""(host, term) that a submission is taken to have."""


@dataclass(frozen=True, slots=True)
class Laid:
    """The network that is planned; `tables` are of the brokers in reach, by number."""

    me: str
    names: tuple[str, ...]
    numbers: Mapping[str, int]
    pieces: tuple[Piece, ...]
    layout: Layout
    tree: Network
    tables: Mapping[int, Tables]
    digests: Mapping[str, int]

    def summaries(self, brokers: Mapping[str, BrokerWord]) -> dict[int, Summary]:
        """Return what those in reach would say of themselves, in their first version."""
        return {
            number: summary_of(number, brokers[self.names[number]], tables)
            for number, tables in self.tables.items()
        }


def summary_of(number: int, word: BrokerWord, tables: Tables, version: int = 0) -> Summary:
    """Return a broker's word as the rounds have it."""
    capacity = scaled(word.capacity) if word.capacity else None
    egress = scaled(word.egress) if word.egress else None
    return Summary(number, 0, version, capacity, egress, tables, word.drained)


@dataclass(frozen=True, slots=True)
class SharedPart:
    """State which pieces take a part of an input, at `rate` bytes a second, and no others do."""

    filter: Filter
    rate: int
    takers: list[Piece]


def shared_parts(rates: Mapping[Piece, int], filters: Mapping[Piece, Filter]) -> list[SharedPart]:
    """Return an input in parts, by the rates and filters of those who take some of it.

    Each piece's parts come to its rate, or to that of the piece most like it. It has a part of a
    filter that its own covers as far as that fits into its rate, the largest first.
    """
    by_filter: dict[Filter, dict[Piece, int]] = {}
    for piece in sorted(rates):
        by_filter.setdefault(filters[piece], {})[piece] = rates[piece]
    covered = covered_by(tuple(sorted(by_filter, key=encoded)))
    parts: list[SharedPart] = []
    # What is covered comes first: whatever covers a filter covers more of them than that one does.
    for own in sorted(by_filter, key=lambda each: (len(covered[each]), encoded(each))):
        within: list[SharedPart] = []
        below = 0
        for level in _levels(by_filter[own]):
            most = max(by_filter[own][piece] for piece in level)
            left, room = max(0, most - below), _alike_up_to(most) - below
            for part in sorted(parts, key=lambda each: -each.rate):
                is_free = part.filter in covered[own] and all(part is not each for each in within)
                if is_free and part.rate <= room:
                    within.append(part)
                    left, room = max(0, left - part.rate), room - part.rate
            if left or not within:
                within.append(SharedPart(own, left, []))
                parts.append(within[-1])
            for part in within:
                part.takers.extend(level)
            below = max(below, most)
    return parts


def _levels(rates: Mapping[Piece, int]) -> list[list[Piece]]:
    """Group those who ask for the same by how much they take, those who take least first."""
    levels: list[list[Piece]] = []
    least = 0
    for piece, rate in sorted(rates.items(), key=lambda row: (row[1], row[0])):
        if not levels or rate > _alike_up_to(least):
            levels.append([])
            least = rate
        levels[-1].append(piece)
    return [sorted(level) for level in levels]


def _alike_up_to(rate: int) -> int:
    """Return the greatest rate that may be of the same events as this one."""
    return rate + max(rate * ALIKE_PERCENT // 100, ALIKE_LEAST)


def lay(known: Known, geography: Geography, reach: int, hosts: Hosts) -> Laid:
    """Return the network around this broker; its brokers plan, and are known one by the other."""
    overlay = geography.overlay
    names = _region(known, geography)
    numbers = {name: number for number, name in enumerate(names)}
    ends = _Ends(geography, numbers)
    words = [
        known.submissions[piece]
        for piece in sorted(known.submissions)
        if geography.way(piece[0]) is not None
    ]
    chosen = [hosts(word) for word in words]
    chosen = [
        (host if geography.way(host) is not None else word.home, term)
        for word, (host, term) in zip(words, chosen, strict=True)
    ]
    streams, rates = _streams(words, ends)
    placed = tuple(ends.number(host) for host, _ in chosen)
    costs = [sum(word.rates) for word in words]
    everywhere = tuple(range(len(names)))
    pieces = tuple(
        PlannedPiece("", Role.TASK, "", cost, _allowed(word, numbers, everywhere))
        for word, cost in zip(words, costs, strict=True)
    )
    layout = Layout(NOWHERE, {}, pieces, tuple(streams), (), (0,) * len(pieces))
    tree = _tree(known, geography, names, numbers)
    near = [numbers[name] for name in names if overlay.hops[name] <= reach]
    hosted: dict[int, list[Hosted]] = {}
    for number, (host, cost) in enumerate(zip(placed, costs, strict=True)):
        hosted.setdefault(host, []).append(Hosted(number, chosen[number][1], scaled(cost)))
    carried = [
        LaidStream(
            number,
            scaled(rate),
            placed[stream.piece] if stream.piece is not None else stream.origin or 0,
            [*(placed[piece] for piece in stream.consumers), *stream.destinations],
        )
        for number, (stream, rate) in enumerate(zip(streams, rates, strict=True))
    ]
    tables = dict(zip(near, laid_tables(tree, near, hosted, carried, ()), strict=True))
    digests = _digests(known, geography, reach, [*zip(words, chosen, strict=True)])
    own = tuple(word.piece for word in words)
    return Laid(overlay.me, names, numbers, own, layout, tree, tables, digests)


def _region(known: Known, geography: Geography) -> tuple[str, ...]:
    """Return the brokers that plan and are known, each with all on the way to it."""
    overlay = geography.overlay
    region = {overlay.me: None}
    for name in overlay.hops:
        way = geography.way(name) or ()
        if name in known.brokers and len(way) > 1 and way[-2] in region:
            region[name] = None
    return tuple(sorted(region))


class _Ends:
    """Number the brokers where what comes from afar enters, and what goes there leaves."""

    def __init__(self, geography: Geography, numbers: Mapping[str, int]) -> None:
        self._geography = geography
        self._numbers = numbers
        self._by_name: dict[str, int] = {}

    def reached(self, broker: str) -> bool:
        """Tell whether there is a way to a broker."""
        return self._geography.way(broker) is not None

    def number(self, broker: str) -> int:
        """Return the number of the last broker that is known on the way to one."""
        if broker not in self._by_name:
            last = self._geography.overlay.me
            for name in self._geography.way(broker) or ():
                if name not in self._numbers:
                    break
                last = name
            self._by_name[broker] = self._numbers[last]
        return self._by_name[broker]


def _streams(words: list[Submission], ends: _Ends) -> tuple[list[Stream], list[int]]:
    """Return the streams, and of each its rate in bytes a second."""
    numbers = {word.piece: number for number, word in enumerate(words)}
    takers: dict[Input, dict[Piece, int]] = {}
    filters: dict[str, dict[Piece, Filter]] = {}
    for word in words:
        for (origin, type_name), rate in zip(word.inputs, word.rates, strict=True):
            asked = filters.setdefault(type_name, {})
            if word.piece not in asked:
                asked[word.piece] = filter_of(word.filters, type_name)
            if ends.reached(origin):
                takers.setdefault((origin, type_name), {})[word.piece] = rate
    streams: list[Stream] = []
    for place in sorted(takers):
        for part in shared_parts(takers[place], filters[place[1]]):
            consumers = tuple(numbers[piece] for piece in part.takers)
            streams.append(Stream("", part.rate, ends.number(place[0]), None, consumers, ()))
    for number, word in enumerate(words):
        streams.append(Stream("", word.sends, None, number, (), (ends.number(word.home),)))
    return streams, [int(stream.rate) for stream in streams]


def _allowed(
    word: Submission, numbers: Mapping[str, int], everywhere: tuple[int, ...]
) -> tuple[int, ...]:
    refused = {numbers[name] for name in word.not_at if name in numbers and name != word.home}
    return tuple(n for n in everywhere if n not in refused) if refused else everywhere


def _tree(
    known: Known, geography: Geography, names: tuple[str, ...], numbers: Mapping[str, int]
) -> Network:
    """Return the tree, with the most that each direction of a link carries, as its sender says."""
    # Beside each broker but this one is the one before it on the way there.
    parents = [(name, (geography.way(name) or ())[-2:-1]) for name in names]
    links = [(numbers[name], numbers[way[0]]) for name, way in parents if way]
    both = [*links, *[(b, a) for a, b in links]]
    limits = {
        arc: scaled(known.brokers[names[arc[0]]].link)
        for arc in both
        if known.brokers[names[arc[0]]].link
    }
    before = geography.network
    if before is None or (before.names, before.limits) != (names, limits):
        geography.network = before = Network(names, links, limits)  # with all ways to be found anew
    return before


def _digests(
    known: Known, geography: Geography, reach: int, words: list[tuple[Submission, tuple[str, int]]]
) -> dict[str, int]:
    """Return each broker's digest: a sum, so that the order of words does not matter."""
    digests = {
        name: _digest(encoded(_limits(word)))
        for name, word in known.brokers.items()
        if geography.overlay.hops.get(name, reach + 1) <= reach
    }
    for word, (host, _) in words:
        span = geography.span((word.home, host, *(origin for origin, _ in word.inputs)))
        if span is None or span.hops > reach:
            continue
        stated = (word.rates, word.sends, word.not_at, *word.filters)
        content = (word.home, word.key, word.inputs, *stated)
        base = hashlib.blake2b(encoded(content), digest_size=DIGEST_BYTES).digest()
        for name in span.members(reach):
            if name in digests:
                digests[name] += _digest(base + geography.onward(name, host).encode())
    return {name: total % (1 << 8 * DIGEST_BYTES) for name, total in digests.items()}


def _limits(word: BrokerWord) -> tuple[str, int, int, int, bool]:
    return word.broker, word.capacity, word.egress, word.link, word.drained


def _digest(data: bytes) -> int:
    digest = hashlib.blake2b(data, digest_size=DIGEST_BYTES)
    return int.from_bytes(digest.digest(), "big")


def rounds_settings(settings: CoordinatorSettings) -> Settings:
    """Return how the rounds plan from a broker with these settings."""
    return Settings(radius=settings.radius, price=settings.price_percent / 100)
