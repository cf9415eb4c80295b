"""From what is known of all submissions to the network that the rounds plan.

Owns the numbering of brokers, pieces and streams. Must not know who tells what. Invariant: the same
statements on the same tree give the same network at every broker, number by number; rates change
none of these.

A submission is one piece. What an origin sends of one type is one stream where all take as much of
it. Where one takes clearly less than another, its part is taken to lie within the other's: there
are then several streams, each of what the next one takes besides, and nothing that both want
travels twice. Results go from the host to the home, which alone tells others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.known import Known
from broker.core.coordinator.statement import Input, Piece, Statement, Submission
from broker.network.overlay.tree import Tree as Overlay
from planner.layout import lay_out
from planner.network import Network
from planner.problem import Content, Node, Problem, Task
from planner.rounds.settings import Settings
from planner.rounds.tables import Amounts, Standing
from planner.rounds.units import scaled

ALIKE_PERCENT = 25  # rates that differ by less are of the same events, measured at other times
ALIKE_LEAST = 64  # bytes a second: of less nobody cares


@dataclass(frozen=True, slots=True)
class Laid:
    """The network that is planned.

    `levels` are, by input, the pieces that take alike much of it, those who take least first; in
    the order of the streams. `pieces` in order; of each its numbers of inputs.
    """

    names: tuple[str, ...]
    pieces: tuple[Piece, ...]
    levels: dict[Input, tuple[tuple[Piece, ...], ...]]
    standing: Standing

    @property
    def numbers(self) -> dict[str, int]:
        """The brokers' numbers."""
        return {name: number for number, name in enumerate(self.names)}


def levels_of(rates: Mapping[Input, Mapping[Piece, int]]) -> dict[Input, list[list[Piece]]]:
    """Group the takers of each input by how much they take, those who take least first."""
    found: dict[Input, list[list[Piece]]] = {}
    for one in sorted(rates):
        some = sorted(rates[one].items(), key=lambda row: (row[1], row[0]))
        levels: list[list[Piece]] = []
        least = 0
        for piece, rate in some:
            if not levels or rate > least + max(least * ALIKE_PERCENT // 100, ALIKE_LEAST):
                levels.append([])
                least = rate
            levels[-1].append(piece)
        found[one] = [sorted(level) for level in levels]
    return found


def stated(known: Known) -> dict[Input, dict[Piece, int]]:
    """The rates of all inputs as the statements have them."""
    found: dict[Input, dict[Piece, int]] = {}
    for home in sorted(known.statements):
        for one in known.statements[home].submissions:
            for place, rate in zip(one.inputs, one.rates, strict=True):
                found.setdefault(place, {})[home, one.key] = rate
    return found


def rated(known: Known) -> dict[Input, dict[Piece, int]]:
    """The same as they are by now."""
    found: dict[Input, dict[Piece, int]] = {}
    for home in sorted(known.statements):
        for one in known.statements[home].submissions:
            rates, _ = known.rates(home, one)
            for place, rate in zip(one.inputs, rates, strict=True):
                found.setdefault(place, {})[home, one.key] = rate
    return found


def lay(known: Known, overlay: Overlay) -> Laid:
    """The network; of what is said by brokers out of the tree nothing stands in it."""
    names = tuple(sorted(name for name in known.statements if name in overlay.hops))
    numbers = {name: number for number, name in enumerate(names)}
    pieces = tuple(
        (home, key)
        for home in names
        for key in sorted(one.key for one in known.statements[home].submissions)
    )
    entries = _entries(names, overlay)
    rates = {
        place: {piece: rate for piece, rate in some.items() if piece[0] in numbers}
        for place, some in stated(known).items()
        if place[0] in entries
    }
    levels = {
        place: tuple(tuple(level) for level in some)
        for place, some in levels_of({p: some for p, some in rates.items() if some}).items()
    }
    problem = _problem(known, names, pieces, levels, entries)
    edges = [(edge.low, edge.high) for edge in overlay.edges]
    links = [(numbers[a], numbers[b]) for a, b in edges if a in numbers and b in numbers]
    layout = lay_out(problem)
    tree = Network(names, links, _limits(known.statements, names, links))
    homes = {(home, one.key): one.host for home in names for one in _of(known, home)}
    hosts = tuple(numbers.get(homes[piece], numbers[piece[0]]) for piece in pieces)
    at_home = tuple(numbers[home] for home, _ in pieces)
    laid = Laid(names, pieces, levels, Standing(layout, tree, hosts, at_home, Amounts(layout)))
    _state(laid, known)
    return laid


def _limits(
    statements: Mapping[str, Statement], names: tuple[str, ...], links: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], int]:
    """Return the most that each direction of a link carries, as its sender says."""
    both = [*links, *[(b, a) for a, b in links]]
    limits = {arc: statements[names[arc[0]]].link for arc in both}
    return {arc: scaled(limit) for arc, limit in limits.items() if limit}


def _of(known: Known, home: str) -> tuple[Submission, ...]:
    return known.statements[home].submissions


def _entries(names: tuple[str, ...], overlay: Overlay) -> dict[str, str]:
    """Map origins to where what they send comes in: there, or at the first broker that plans."""
    beside: dict[str, list[str]] = {}
    for edge in overlay.edges:
        beside.setdefault(edge.low, []).append(edge.high)
        beside.setdefault(edge.high, []).append(edge.low)
    found = {name: name for name in names}
    reached = list(names)
    for name in reached:
        for other in sorted(beside.get(name, ())):
            if other not in found:
                found[other] = found[name]
                reached.append(other)
    return found


def _problem(
    known: Known,
    names: tuple[str, ...],
    pieces: tuple[Piece, ...],
    levels: Mapping[Input, tuple[tuple[Piece, ...], ...]],
    entries: Mapping[str, str],
) -> Problem:
    """As the planner has it; what is sent at which rate is told by `Amounts`, not here."""
    inputs: dict[Piece, list[str]] = {piece: [] for piece in pieces}
    contents = []
    for number, ((origin, _), some) in enumerate(levels.items()):
        for level in range(len(some)):
            name = f"{number}.{level}"
            contents.append(Content(name, {entries[origin]: 0}))
            for piece in (one for above in some[level:] for one in above):
                inputs[piece].append(name)
    tasks = []
    for home in names:
        for one in sorted(_of(known, home), key=lambda each: each.key):
            away = [name for name in names if name == home or name not in one.not_at]
            hosts = tuple(away) if one.not_at else None
            task = Task(
                f"{home} {one.key}",
                tuple(inputs[home, one.key]),
                0,
                destinations=(home,),
                hosts=hosts,
            )
            tasks.append(task)
    nodes = tuple(
        Node(name, known.statements[name].capacity or None, known.statements[name].egress or None)
        for name in names
    )
    return Problem(nodes, (), tuple(contents), tuple(tasks))


def _state(laid: Laid, known: Known) -> None:
    """Have the amounts be those of the statements."""
    sends = {
        (home, one.key): (sum(one.rates), one.sends)
        for home in laid.names
        for one in _of(known, home)
    }
    rates, costs = _amounts(laid, stated(known), sends)
    laid.standing.amounts.rates[:] = rates
    laid.standing.amounts.costs[:] = costs


def rounds_settings(settings: CoordinatorSettings) -> Settings:
    """Return how the rounds plan from a broker with these settings."""
    return Settings(radius=settings.radius, price=settings.price_percent / 100)


def amounts(laid: Laid, known: Known) -> tuple[dict[int, int], dict[int, int]]:
    """(rates of streams, costs of pieces) as they are by now, in whole units."""
    sends: dict[Piece, tuple[int, int]] = {}
    for home in laid.names:
        for one in _of(known, home):
            rates, sent = known.rates(home, one)
            sends[home, one.key] = sum(rates), sent
    found = _amounts(laid, rated(known), sends)
    return dict(enumerate(found[0])), dict(enumerate(found[1]))


def _amounts(
    laid: Laid,
    rates: Mapping[Input, Mapping[Piece, int]],
    sends: Mapping[Piece, tuple[int, int]],
) -> tuple[list[int], list[int]]:
    """By stream, and by piece: in the order of `_problem`.

    A level's stream is what its most demanding piece takes more than those before.
    """
    streams: list[int] = []
    for place, some in laid.levels.items():
        below = 0
        for level in some:
            most = max(rates.get(place, {}).get(piece, 0) for piece in level)
            streams.append(scaled(max(0, most - below)))
            below = max(below, most)
    streams += [scaled(sends[piece][1]) for piece in laid.pieces]
    return streams, [scaled(sends[piece][0]) for piece in laid.pieces]
