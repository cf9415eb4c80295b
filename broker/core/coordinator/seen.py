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
from broker.network.placement.cell_view import ROWS
from planner.rounds.tables import Amounts, TableLoads, Tables, tables_of
from planner.rounds.units import plain, scaled
from planner.rounds.vicinity import Vicinity
from planner.rounds.view import Summary, View, view_of
from planner.search.evaluator import Evaluator

TASKS_MAX = 1_000  # that are listed; the others are counted
MOVES_MAX = 5_000  # tried for one account: some tenths of a second


def plan(laid: Laid, known: Known, price_percent: int) -> dict[str, Any]:
    """Return the account, as plain data."""
    submissions = _submissions(laid, known)
    view = _view(laid, known, submissions)
    network = None if view is None else Vicinity(view)
    evaluator = None if network is None else Evaluator(network.instance, network.start)
    tasks: list[dict[str, Any]] = []
    moves = 0
    for number, piece in enumerate(laid.pieces[:TASKS_MAX]):
        if piece not in submissions:
            continue  # it has gone since the epoch began
        one = _task(known, piece, submissions[piece])
        if network is not None and evaluator is not None:
            moves += len(network.instance.hosts[number])
            if moves <= MOVES_MAX:
                price = price_percent * one["takes_bytes_per_s"] / 100
                one |= _compared(evaluator, network, laid, number, price)
                if one["parts"]:
                    one["why"] = f"it merges what {len(one['parts'])} brokers fold; {one['why']}"
        tasks.append(one)
    accounts = [] if view is None else _accounts(view)
    brokers = [] if view is None else _brokers(view, laid, known)
    links = [] if view is None else _links(view, laid, known)
    return {
        "flow_bytes_per_s": None if view is None else _rate(sum(one.flow for one in accounts)),
        "limits_broken": _broken(brokers, links),
        "brokers": brokers,
        "links": links,
        "tasks": tasks,
        "tasks_left_out": max(0, len(laid.pieces) - TASKS_MAX),
    }


def violations(laid: Laid, known: Known) -> list[BrokenLimit]:
    """Return the limits that the tasks exceed where they run now: of brokers, then of links."""
    view = _view(laid, known, _submissions(laid, known))
    if view is None:
        return []
    return _broken(_brokers(view, laid, known), _links(view, laid, known))


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


def _view(laid: Laid, known: Known, submissions: dict[Piece, Submission]) -> View | None:
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
    tables = tables_of(standing.layout, standing.tree, hosts, now)
    summaries = {
        number: _summary(number, known.statements[laid.names[number]], own)
        for number, own in enumerate(tables)
    }
    view = view_of(standing.layout, standing.tree, 0, len(laid.names), summaries)
    return None if view is None or len(view.brokers) < len(laid.names) else view


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


def _compared(
    evaluator: Evaluator, network: Vicinity, laid: Laid, number: int, price: float
) -> dict[str, Any]:
    """Return the next best broker for a piece, and in a sentence why it is not there."""
    piece = network.piece_of[number]
    here = _value(evaluator)
    found = []
    for node in network.instance.hosts[piece]:
        if node != evaluator.hosts[piece]:
            change = evaluator.apply([(piece, node)])
            name = laid.names[network.brokers[node]]
            found.append((_value(evaluator), name))
            evaluator.undo(change)
    if not found:
        return {"why": "no other broker takes it up"}
    value, name = min(found)
    more = round(value[1] - here[1])
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


def _value(evaluator: Evaluator) -> tuple[float, float]:
    """Return what limits are broken by, and the flow; what is equal but for rounding is equal."""
    return round(evaluator.excess(), 9), round(evaluator.flow, 3)


def _accounts(view: View) -> list[TableLoads]:
    return [TableLoads(summary.tables) for summary in view.summaries]


def _brokers(view: View, laid: Laid, known: Known) -> list[dict[str, Any]]:
    found = {}
    for number, summary, account in zip(view.brokers, view.summaries, _accounts(view), strict=True):
        name = laid.names[number]
        one = known.statements[name]
        found[name] = {
            "broker": name,
            "tasks": len(summary.tables.hosted),
            "takes_bytes_per_s": _rate(account.work),
            "capacity_bytes_per_s": one.capacity or None,
            "sends_bytes_per_s": _rate(account.flow),
            "egress_bytes_per_s": one.egress or None,
            "drained": one.drained,
        }
    return [found[name] for name in sorted(found)]


def _links(view: View, laid: Laid, known: Known) -> list[dict[str, Any]]:
    """Return what travels over each link, each way."""
    sent = {
        (broker, to): load
        for broker, account in zip(view.brokers, _accounts(view), strict=True)
        for to, load in account.sent.items()
    }
    arcs = [(broker, to) for broker in view.brokers for to in view.tree.neighbours[broker]]
    found = [(laid.names[a], laid.names[b], sent.get((a, b), 0)) for a, b in arcs]
    return [
        {
            "from": whence,
            "to": whither,
            "bytes_per_s": _rate(load),
            "at_most_bytes_per_s": known.statements[whence].link or None,
        }
        for whence, whither, load in sorted(found)
    ]
