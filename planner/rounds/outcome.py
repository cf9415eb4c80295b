"""The tables that a changed ball asks of its members.

Owns the way back from a ball to tables. Must not know how the change was found. Invariant: the
tables of an unchanged ball are those that it was made of; terms grow for pieces that moved alone.
"""

from __future__ import annotations

from itertools import pairwise

from planner.rounds.ball import Ball
from planner.rounds.tables import HERE, Hosted, Joined, Passing, Tables
from planner.rounds.view import View


def changed(ball: Ball) -> dict[int, Tables]:
    """By broker, the new tables of each member for which anything is different."""
    view = ball.view
    count = len(view.brokers)
    hosted: list[list[Hosted]] = [[] for _ in range(count)]
    for summary in view.summaries:
        for one in summary.tables.hosted:
            node = ball.at[one.piece]
            moved = node != ball.start[one.piece]
            hosted[node].append(Hosted(one.piece, one.term + 1, one.cost) if moved else one)
    passing: list[list[Passing]] = [[] for _ in range(count)]
    for stream in sorted(view.streams):
        _passing(ball, stream, passing)
    joined: list[list[Joined]] = [[] for _ in range(count)]
    for number in sorted(view.joints):
        _joined(ball, number, joined)
    found = {}
    for node, summary in enumerate(view.summaries):
        pieces = tuple(sorted(hosted[node], key=lambda one: one.piece))
        tables = Tables(pieces, tuple(passing[node]), tuple(joined[node]))
        if tables != summary.tables:
            found[summary.broker] = tables
    return found


def _ways(view: View, source: int, ends: dict[int, int]) -> dict[int, int]:
    """Of each member between the source and the ends: the member before it, HERE at the source."""
    found = {source: HERE}
    parent = view.parent
    for end in ends:
        for node in _line(parent, end, source):
            if node in found:
                continue
            found[node] = _before(parent, node, source)
    return found


def _line(parent: list[int], a: int, b: int) -> list[int]:
    """The members from `a` to `b`."""
    above_a, above_b = _above(parent, a), _above(parent, b)
    met = set(above_b)
    top = next(node for node in above_a if node in met)
    up = above_a[: above_a.index(top) + 1]
    return up + above_b[: above_b.index(top)][::-1]


def _above(parent: list[int], node: int) -> list[int]:
    found = [node]
    while parent[found[-1]] >= 0:
        found.append(parent[found[-1]])
    return found


def _before(parent: list[int], node: int, source: int) -> int:
    return _line(parent, node, source)[1]


def _passing(ball: Ball, stream: int, passing: list[list[Passing]]) -> None:
    view, ends = ball.view, ball.view.streams[stream]
    known = view.layout.streams[stream]
    at: dict[int, int] = {}
    out: dict[int, list[int]] = {}
    for node, broker in ends.out:
        at[node] = 1
        out.setdefault(node, []).append(broker)
    for piece in known.consumers:
        if piece in ball.at:
            at[ball.at[piece]] = 1
    numbers = view.numbers
    for broker in known.destinations:
        if broker in numbers:
            at[numbers[broker]] = 1
    source = ball.source[stream]
    before = _ways(view, source, at)
    down: dict[int, list[int]] = {node: list(out.get(node, ())) for node in before}
    for node, above in before.items():
        if above != HERE:
            down[above].append(view.brokers[node])
    for node, above in before.items():
        up = ends.whence if above == HERE else view.brokers[above]
        passing[node].append(Passing(stream, ends.rate, up, tuple(sorted(down[node]))))


def _joined(ball: Ball, number: int, joined: list[list[Joined]]) -> None:
    view, joint = ball.view, ball.view.joints[number]
    header, keys = ball.header[number], ball.keys_at[number]
    come: dict[int, dict[int, int]] = {header: {}}
    for node, broker, count in joint.come:
        come.setdefault(node, {})[broker] = count
    units = {node: 1 for node, count in enumerate(keys) if count}
    for node, _, count in joint.come:
        units[node] = units.get(node, 0) + count
    for node, count in units.items():
        line = _line(view.parent, node, header)
        for one, onward in pairwise(line):
            come.setdefault(one, {})
            broker = view.brokers[one]
            met = come.setdefault(onward, {})
            met[broker] = met.get(broker, 0) + count
    for node, counts in come.items():
        toward = joint.beyond
        if node != header:
            toward = view.brokers[_before(view.parent, node, header)]
        entries = tuple(sorted(counts.items()))
        joined[node].append(Joined(number, joint.rate, toward, entries, keys[node] > 0))
