"""Which task runs where, why there, and what it would cost at the next best broker, for people.

Owns this account. Must not know who asks. Invariant: the flow that it tells is that of the network
as this broker knows it, every stream counted once on each link, by the rates of now; asking changes
nothing.
"""

from __future__ import annotations

from typing import Any

from broker.core.coordinator.known import Known
from broker.core.coordinator.laying import Laid, amounts
from broker.core.coordinator.statement import Piece, Statement, Submission
from broker.core.coordinator.violations import BrokenLimit
from broker.core.network.cell_view import ROWS
from planner.rounds.ball import Ball
from planner.rounds.tables import Amounts, Standing, Tables
from planner.rounds.units import plain, scaled
from planner.rounds.view import Summary, view_of

TASKS_MAX = 1_000  # that are listed; the others are counted
MOVES_MAX = 5_000  # tried for one account: some tenths of a second


def plan(laid: Laid, known: Known, price_percent: int) -> dict[str, Any]:
    """The account, as plain data."""
    submissions = _submissions(laid, known)
    ball = _ball(laid, known, submissions)
    tasks: list[dict[str, Any]] = []
    moves = 0
    for number, piece in enumerate(laid.pieces[:TASKS_MAX]):
        if piece not in submissions:
            continue  # it has gone since the epoch began
        one = _task(known, piece, submissions[piece])
        if ball is not None:
            moves += len(ball.allowed[number])
            if moves <= MOVES_MAX:
                one |= _compared(ball, laid, number, price_percent * one["takes_bytes_per_s"] / 100)
                if one["parts"]:
                    one["why"] = f"it merges what {len(one['parts'])} brokers fold; {one['why']}"
        tasks.append(one)
    brokers = [] if ball is None else _brokers(ball, laid, known)
    links = [] if ball is None else _links(ball, laid, known)
    return {
        "flow_bytes_per_s": None if ball is None else _rate(ball.flow),
        "limits_broken": _broken(brokers, links),
        "brokers": brokers,
        "links": links,
        "tasks": tasks,
        "tasks_left_out": max(0, len(laid.pieces) - TASKS_MAX),
    }


def violations(laid: Laid, known: Known) -> list[BrokenLimit]:
    """Return the limits that the tasks exceed where they run now: of brokers, then of links."""
    ball = _ball(laid, known, _submissions(laid, known))
    if ball is None:
        return []
    return _broken(_brokers(ball, laid, known), _links(ball, laid, known))


def _broken(brokers: list[dict[str, Any]], links: list[dict[str, Any]]) -> list[BrokenLimit]:
    loads: list[tuple[str, str, int, int | None]] = []
    for row in brokers:
        for limit, load in (
            ("capacity_bytes_per_s", row["takes_bytes_per_s"]),
            ("egress_bytes_per_s", row["sends_bytes_per_s"]),
        ):
            loads.append((row["broker"], limit, load, row[limit]))
    for row in links:
        limit = f"link_bytes_per_s ({row['to']})"
        loads.append((row["from"], limit, row["bytes_per_s"], row["at_most_bytes_per_s"]))
    return [
        {"broker": broker, "limit": limit, "bytes_per_s": load, "at_most_bytes_per_s": allowed}
        for broker, limit, load, allowed in loads
        if allowed is not None and load > allowed
    ]


def _submissions(laid: Laid, known: Known) -> dict[Piece, Submission]:
    return {
        (home, one.key): one
        for home in laid.names
        if home in known.statements
        for one in known.statements[home].submissions
    }


def _ball(laid: Laid, known: Known, submissions: dict[Piece, Submission]) -> Ball | None:
    """All brokers with what runs there; None while what is known does not go together."""
    there = all(name in known.statements for name in laid.names)
    if not there or any(piece not in submissions for piece in laid.pieces):
        return None
    numbers, standing = laid.numbers, laid.standing
    hosts = tuple(
        numbers.get(known.of(piece[0], submissions[piece])[0], host)
        for piece, host in zip(laid.pieces, standing.hosts, strict=True)
    )
    now = Amounts(standing.layout)
    rates, costs = amounts(laid, known)
    now.rates[:], now.costs[:] = list(rates.values()), list(costs.values())
    tables = Standing(standing.layout, standing.tree, hosts, now).tables()
    summaries = {
        number: _summary(number, known.statements[laid.names[number]], own)
        for number, own in enumerate(tables)
    }
    view = view_of(standing.layout, standing.tree, 0, len(laid.names), summaries)
    return None if view is None or len(view.brokers) < len(laid.names) else Ball(view)


def _summary(number: int, one: Statement, tables: Tables) -> Summary:
    capacity = scaled(one.capacity) if one.capacity else None
    egress = scaled(one.egress) if one.egress else None
    return Summary(number, 0, 0, capacity, egress, tables, one.drained)


def _rate(units: int) -> int:
    return round(plain(units))


def _task(known: Known, piece: Piece, one: Submission) -> dict[str, Any]:
    host, rates, sends = known.of(piece[0], one)
    inputs = [
        {"origin": origin, "type": name, "bytes_per_s": rate}
        for (origin, name), rate in zip(one.inputs, rates, strict=True)
    ]
    return {
        "key": one.key,
        "subscriptions": one.name,
        "home": piece[0],
        "host": host,
        "inputs": inputs,
        "takes_bytes_per_s": sum(rates),
        "sends_bytes_per_s": sends,
        "not_at": list(one.not_at),
        "parts": sorted({origin for origin, name in one.inputs if name.startswith(ROWS)}),
        "next": None,
        "why": "",
    }


def _compared(ball: Ball, laid: Laid, piece: int, price: float) -> dict[str, Any]:
    """The next best broker for a piece, and in a sentence why it is not there."""
    start, here = ball.at[piece], ball.value
    found = []
    for node in sorted(ball.allowed[piece], key=lambda one: laid.names[ball.view.brokers[one]]):
        if node != start:
            ball.move(piece, node)
            found.append((ball.value, node))
            ball.move(piece, start)
    if not found:
        return {"why": "no other broker takes it up"}
    value, node = min(found, key=lambda row: row[0])
    name = laid.names[ball.view.brokers[node]]
    more = _rate(value[1] - here[1])
    told = {"broker": name, "more_bytes_per_s": more, "breaks_limits": value[0] > here[0]}
    if not laid.standing.layout.problem.tasks[piece].inputs:
        why = "no rate of what it takes is known: it is new here, or nothing comes"
    elif value[0] < here[0]:
        why = f"limits are broken, and {name} would break them less"
    elif value[0] > here[0]:
        why = f"at {name}, the next best, limits would be broken"
    elif more >= 0:
        why = f"at {name}, the next best, {more:,} bytes/s more would travel"
    elif -more <= price:
        why = f"{name} would save {-more:,} bytes/s, which is less than moving costs"
    else:
        why = f"{name} would save {-more:,} bytes/s; nobody has looked at that yet"
    return {"next": told, "why": why}


def _brokers(ball: Ball, laid: Laid, known: Known) -> list[dict[str, Any]]:
    found = {}
    for node, number in enumerate(ball.view.brokers):
        name = laid.names[number]
        one = known.statements[name]
        found[name] = {
            "broker": name,
            "tasks": sum(at == node for at in ball.at.values()),
            "takes_bytes_per_s": _rate(sum(h.cost for h in _hosted(ball, node))),
            "capacity_bytes_per_s": one.capacity or None,
            "sends_bytes_per_s": _rate(ball.sent[node]),
            "egress_bytes_per_s": one.egress or None,
            "drained": one.drained,
        }
    return [found[name] for name in sorted(found)]


def _hosted(ball: Ball, node: int) -> tuple[Any, ...]:
    return ball.view.summaries[node].tables.hosted


def _links(ball: Ball, laid: Laid, known: Known) -> list[dict[str, Any]]:
    """Return what travels over each link, each way."""
    found = []
    for node, parent in enumerate(ball.parent):
        if parent >= 0:
            child, above = (laid.names[ball.view.brokers[one]] for one in (node, parent))
            found.append((child, above, ball.up[node]))
            found.append((above, child, ball.down[node]))
    return [
        {
            "from": whence,
            "to": whither,
            "bytes_per_s": _rate(load),
            "at_most_bytes_per_s": known.statements[whence].link or None,
        }
        for whence, whither, load in sorted(found)
    ]
