"""One look at a vicinity: whether there is a better plan for it, and what that asks of whom.

Owns the judgement of what is worth a turn, the price of moves, and a broker's own trouble. Must not
know messages or time. Invariant: a proposal lessens (violation, flow) of the members that it
changes, as their tables have it; nothing outside of them changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from planner.rounds.ball import Ball, Value
from planner.rounds.improve import improve
from planner.rounds.outcome import changed
from planner.rounds.settings import Settings
from planner.rounds.tables import HERE, Tables
from planner.rounds.thorough import Thorough
from planner.rounds.tree import Tree
from planner.rounds.units import broken
from planner.rounds.view import Summary, View

PRICE_PARTS = 10**6  # the price's part of a rate, in whole numbers


@dataclass(frozen=True, slots=True)
class Proposal:
    """New tables by broker, the versions that they go by, and moves: piece, from whom, to whom."""

    tables: dict[int, Tables]
    versions: dict[int, int]
    moves: tuple[tuple[int, int, int], ...]


def look(view: View, settings: Settings, random: Random) -> Proposal | None:
    """The best plan found for what the leader runs, where it is worth a turn."""
    ball = Ball(view, prices(view, settings))
    before = ball.value
    improve(ball, settings.effort, random, focus(ball))
    return _proposal(ball, before, settings)


class ThoroughLook:
    """A look at all pieces of a vicinity, in slices; `go_on` says when it is done."""

    def __init__(self, view: View, settings: Settings, random: Random) -> None:
        self._settings = settings
        self._ball = Ball(view, prices(view, settings))
        self._before = self._ball.value
        own = Random(random.getrandbits(64))  # the same, whatever happens between slices
        self._search = Thorough(self._ball, settings.effort, own)

    def go_on(self) -> bool:
        """One slice more; whether that was the last."""
        return self._search.go_on()

    def proposal(self) -> Proposal | None:
        """The best plan found, where it is worth a turn; once the look is done."""
        return _proposal(self._ball, self._before, self._settings)


def _proposal(ball: Ball, before: Value, settings: Settings) -> Proposal | None:
    view, after = ball.view, ball.value
    least = int(settings.gain * before[1])
    if after[0] >= before[0] and before[1] - after[1] <= least:
        return None
    if after[0] > before[0]:
        return None
    tables = changed(ball)
    versions = {one.broker: one.version for one in view.summaries if one.broker in tables}
    return Proposal(
        tables,
        versions,
        tuple(
            (piece, view.brokers[ball.start[piece]], view.brokers[node])
            for piece, node in sorted(ball.at.items())
            if node != ball.start[piece]
        ),
    )


def focus(ball: Ball) -> list[int]:
    """What a leader begins with: its own pieces, as each host looks after its own.

    Where its own limits are broken, also the pieces that its streams come from or go to.
    """
    view, found = ball.view, {piece: None for piece, node in ball.at.items() if node == 0}
    if 0 in ball.overloaded():
        for one in view.summaries[0].tables.passing:
            maker = view.layout.streams[one.stream].piece
            ends = [*ball.consumers(one.stream), *([] if maker is None else [maker])]
            found.update(dict.fromkeys(piece for piece in ends if piece in ball.at))
        for joined in view.summaries[0].tables.joined:
            aggregate = view.layout.aggregates[joined.aggregate]
            ends = [*aggregate.partials, aggregate.header]
            found.update(dict.fromkeys(piece for piece in ends if piece in ball.at))
    return sorted(found)


def prices(view: View, settings: Settings) -> dict[int, int]:
    """What a move of each piece must gain: a part of the rate of its inputs."""
    found: dict[int, int] = {}
    parts = int(settings.price * PRICE_PARTS)
    if parts:
        for stream, ends in view.streams.items():
            price = ends.rate * parts // PRICE_PARTS
            for piece in view.layout.streams[stream].consumers:
                if piece in view.at:
                    found[piece] = found.get(piece, 0) + price
    return found


def troubled(summary: Summary, tree: Tree) -> bool:
    """Whether a broker's own limits, or those of the links that it sends over, are broken."""
    tables = summary.tables
    if summary.drained and tables.hosted:
        return True
    loads: dict[int, int] = {}
    for one in tables.passing:
        for neighbour in one.down:
            loads[neighbour] = loads.get(neighbour, 0) + one.rate
    for joined in tables.joined:
        if joined.toward != HERE:
            load = joined.rate * (joined.own + sum(count for _, count in joined.come))
            loads[joined.toward] = loads.get(joined.toward, 0) + load
    judged = [
        (sum(one.cost for one in tables.hosted), summary.capacity),
        (sum(loads.values()), summary.egress),
    ]
    judged += [
        (load, tree.limits.get((summary.broker, neighbour))) for neighbour, load in loads.items()
    ]
    return any(limit is not None and broken(load, limit) > 0 for load, limit in judged)
