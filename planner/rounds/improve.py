"""A better plan for a vicinity: descent over moves of pieces and groups, and kicks out of valleys.

Owns which moves are tried and which are kept. Must not know messages, nor how a move's value comes
about. Invariant: the ball ends at the best that was met, never worse than it was found; the same
ball, effort and numbers give the same moves.

The paper moves one task at a time to the best candidate (algorithms 1 and 2). Here a task's
candidates are walked link by link, so that each costs one link's change; and what shares an input
moves together too, since to move one consumer alone saves nothing of the input (as section 5 has
its groups).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from planner.rounds.ball import Ball, Value

SWINGS = 3  # how often a look goes from bearing worse to bearing nothing, from the best each time


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to look: kicks in all, and by how much of the flow a valley may be worse first.

    `steps` are for a thorough look at all pieces of the vicinity, once a quick one finds nothing; 0
    for none. One is a stream on a link, some 0.4 us. There are `steps_for_each` piece and member,
    up to `steps`; `steps_at_once` are taken in a row.
    """

    kicks: int = 10
    kicks_for_each: float = 0.25
    worse: float = 0.08
    steps: int = 3_000_000
    steps_for_each: int = 1_500
    steps_at_once: int = 100_000


def improve(
    ball: Ball, effort: Effort, random: Random, focus: Iterable[int] | None = None
) -> dict[int, int]:
    """Moves pieces to lessen the ball's value; the new member of each that moved for good.

    It begins with those in `focus` (None: all); others follow where these draw them along.
    """
    pieces = sorted(ball.at if focus is None else focus)
    if not pieces or len(ball.parent) < 2:
        return {}
    _descend(ball, pieces)
    best, kept = ball.value, dict(ball.at)
    now, stands = best, kept
    count = effort.kicks + int(effort.kicks_for_each * len(pieces))
    for turn in range(count):
        if turn and turn * SWINGS % count < SWINGS:
            _return(ball, kept)
            now, stands = best, kept
        touched = _kick(ball, pieces, random)
        _descend(ball, _around(ball, touched))
        room = int(best[1] * effort.worse * (1 - turn * SWINGS % count / count))
        if ball.value < best:
            best, kept = ball.value, dict(ball.at)
        if _near(ball.value, now, best, room):
            now, stands = ball.value, dict(ball.at)
        else:
            _return(ball, stands)
    _return(ball, kept)
    return {piece: node for piece, node in sorted(ball.at.items()) if node != ball.start[piece]}


def _near(value: Value, now: Value, best: Value, room: int) -> bool:
    return value <= now or (value[0] <= best[0] and value[1] <= best[1] + room)


def _return(ball: Ball, to: dict[int, int]) -> None:
    for piece, node in to.items():
        if ball.at[piece] != node:
            ball.move(piece, node)


def _descend(ball: Ball, pieces: list[int]) -> None:
    """Moves each piece, and each group, to where it is best, until none is better elsewhere."""
    pending = pieces
    while pending:
        moved = [piece for piece in pending if _settle(ball, (piece,))]
        if not moved:
            for group in _groups(ball, pieces):
                node = ball.at[group[0]]
                if all(ball.at[piece] == node for piece in group) and _settle(ball, group):
                    moved += group  # others of the groups may have stood elsewhere since
        pending = _around(ball, moved) if moved else []


def _settle(ball: Ball, group: tuple[int, ...]) -> bool:
    """Puts what stands together where it is best; whether that is elsewhere."""
    start = ball.at[group[0]]
    allowed = frozenset.intersection(*(ball.allowed[piece] for piece in group))
    best, goal = ball.value, start
    trail = [(start, -1, iter(ball.neighbours[start]))]
    while trail:
        node, before, onward = trail[-1]
        after = next((one for one in onward if one != before), None)
        if after is None:
            trail.pop()
            if before >= 0:
                for piece in group:
                    ball.step(piece, node, before)
            continue
        for piece in group:
            ball.step(piece, node, after)
        if after in allowed and ball.value < best:
            best, goal = ball.value, after
        trail.append((after, node, iter(ball.neighbours[after])))
    if goal == start:
        return False
    for piece in group:
        ball.move(piece, goal)
    return True


def _groups(ball: Ball, pieces: list[int]) -> list[tuple[int, ...]]:
    """What stands together and shares an input, or makes what another takes."""
    found: dict[tuple[int, ...], None] = {}
    streams: dict[int, None] = {}
    for piece in pieces:
        streams.update(dict.fromkeys(ball.consumed(piece)))
    for stream in streams:
        by_node: dict[int, list[int]] = {}
        for piece in ball.consumers(stream):
            by_node.setdefault(ball.at[piece], []).append(piece)
        maker = ball.view.layout.streams[stream].piece
        for node, together in by_node.items():
            if len(together) > 1:
                found[tuple(together)] = None
            if maker is not None and ball.at.get(maker) == node:
                found[maker, *together] = None
    for number in ball.keys_at:
        aggregate = ball.view.layout.aggregates[number]
        by_node = {}
        for piece in (*aggregate.partials, aggregate.header):
            if piece in ball.at:
                by_node.setdefault(ball.at[piece], []).append(piece)
        found.update(dict.fromkeys(tuple(one) for one in by_node.values() if len(one) > 1))
    return list(found)


def _around(ball: Ball, touched: list[int]) -> list[int]:
    """The pieces that a change of some may send elsewhere: those, what they deal with, crowds."""
    streams = ball.view.layout.streams
    found = dict.fromkeys(touched)
    for piece in touched:
        for stream in ball.consumed(piece):
            found.update(dict.fromkeys(ball.consumers(stream)))
            maker = streams[stream].piece
            if maker is not None and maker in ball.at:
                found[maker] = None
    if ball.violation:
        full = set(ball.overloaded())
        found.update(dict.fromkeys(piece for piece, node in ball.at.items() if node in full))
    return sorted(found)


def _kick(ball: Ball, pieces: list[int], random: Random) -> list[int]:
    """Moves a few pieces without asking whether that is better; which they are."""
    crowded = ball.overloaded() if ball.violation else []
    if crowded and random.random() < 0.5:
        node = random.choice(crowded)
        here = [piece for piece in pieces if ball.at[piece] == node]
        if here:
            chosen = random.sample(here, min(len(here), 1 + random.randrange(3)))
            return _scatter(ball, chosen, random)
    kind = random.randrange(4)
    if kind == 0:
        return _scatter(ball, random.sample(pieces, min(len(pieces), 2)), random)
    if kind == 1:
        return _swap(ball, random.choice(pieces), random.choice(sorted(ball.at)))
    if kind == 2:
        return _crowd(ball, random.choice(pieces), random)
    return _gather(ball, random.choice(pieces), random)


def _scatter(ball: Ball, chosen: list[int], random: Random) -> list[int]:
    for piece in chosen:
        if ball.allowed[piece]:
            ball.move(piece, random.choice(sorted(ball.allowed[piece])))
    return chosen


def _swap(ball: Ball, one: int, other: int) -> list[int]:
    a, b = ball.at[one], ball.at[other]
    if b in ball.allowed[one] and a in ball.allowed[other]:
        ball.move(one, b)
        ball.move(other, a)
    return [one, other]


def _crowd(ball: Ball, piece: int, random: Random) -> list[int]:
    """Takes a piece to where it wants to be, whatever runs there, and sends others away."""
    if not ball.allowed[piece]:
        return [piece]
    goals = sorted(ball.allowed[piece])
    flows = []
    for goal in goals:
        ball.move(piece, goal)
        flows.append((ball.flow, goal))
    flows.sort()
    goal = flows[min(len(flows) - 1, random.randrange(3))][1]
    ball.move(piece, goal)
    return [piece, *_make_room(ball, goal, [piece], random)]


def _make_room(ball: Ball, goal: int, kept: list[int], random: Random) -> list[int]:
    """Sends others away from where something came, while limits are broken; which they are."""
    there = [one for one, node in sorted(ball.at.items()) if node == goal and one not in kept]
    random.shuffle(there)
    moved = []
    for one in there:
        if not ball.violation:
            break
        _settle(ball, (one,))
        if ball.at[one] != goal:
            moved.append(one)
    return moved


def _gather(ball: Ball, piece: int, random: Random) -> list[int]:
    """Brings together what consumes an input of a piece, at its source or where one of them is."""
    streams = ball.consumed(piece)
    if not streams:
        return _scatter(ball, [piece], random)
    stream = random.choice(list(streams))
    chosen = ball.consumers(stream)
    goals = sorted({ball.source[stream], *(ball.at[one] for one in chosen)})
    goal = random.choice(goals)
    if random.random() < 0.5:
        goal = random.choice([goal, *ball.neighbours[goal]])
    moved = [one for one in chosen if goal in ball.allowed[one]]
    for one in moved:
        ball.move(one, goal)
    return [*moved, *_make_room(ball, goal, moved, random)] or [piece]
