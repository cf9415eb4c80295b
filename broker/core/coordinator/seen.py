"""Which task runs where, why there, and what it would cost at the next best broker, for people.

Owns this account. Must not know who asks. Invariant: the flow that it tells is what the brokers in
this one's view send, every stream counted once on each link, by the rates of now; asking changes
nothing.
"""

from __future__ import annotations

from typing import Any

from broker.core.coordinator.known import Known
from broker.core.coordinator.laying import Laid
from broker.core.coordinator.statement import Submission
from broker.core.coordinator.violations import BrokenLimit
from broker.network.placement.cell_view import ROWS
from planner.rounds.tables import TableLoads
from planner.rounds.units import plain
from planner.rounds.vicinity import Vicinity
from planner.rounds.view import View, view_of
from planner.search.evaluator import Evaluator

TASKS_MAX = 1_000  # that are listed; the others are counted
MOVES_MAX = 5_000  # tried for one account: some tenths of a second


def plan(laid: Laid, known: Known, price_percent: int) -> dict[str, Any]:
    """Return the account, as plain data; `laid` has all tasks where they run."""
    view = _view(laid, known)
    network = None if view is None else Vicinity(view)
    evaluator = None if network is None else Evaluator(network.instance, network.start)
    tasks: list[dict[str, Any]] = []
    moves = 0
    for number, piece in enumerate(laid.pieces[:TASKS_MAX]):
        row = _task(known.submissions[piece])
        if network is not None and evaluator is not None and number in network.piece_of:
            moves += len(network.instance.hosts[network.piece_of[number]])
            if moves <= MOVES_MAX:
                price = price_percent * row["takes_bytes_per_s"] / 100
                row |= _compared(evaluator, network, laid, number, price)
                if row["parts"]:
                    row["why"] = f"it merges what {len(row['parts'])} brokers fold; {row['why']}"
        elif network is not None:
            row["why"] = f"{row['host']} is not in view of this broker; ask {row['home']}"
        tasks.append(row)
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
    view = _view(laid, known)
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


def _view(laid: Laid, known: Known) -> View | None:
    """Return the brokers in view with what runs there; None where that does not go together."""
    summaries = laid.summaries(known.brokers)
    me = laid.numbers[laid.me]
    return view_of(laid.layout, laid.tree, me, len(laid.names), summaries) if summaries else None


def _rate(units: int) -> int:
    return round(plain(units))


def _task(word: Submission) -> dict[str, Any]:
    inputs = [
        {"origin": origin, "type": name, "bytes_per_s": rate}
        for (origin, name), rate in zip(word.inputs, word.rates, strict=True)
    ]
    return {
        "key": word.key,
        "subscriptions": word.name,
        "home": word.home,
        "host": word.host,
        "inputs": inputs,
        "takes_bytes_per_s": sum(word.rates),
        "sends_bytes_per_s": word.sends,
        "not_at": list(word.not_at),
        "parts": sorted({origin for origin, name in word.inputs if name.startswith(ROWS)}),
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
    if not laid.layout.pieces[number].cost:
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
        one = known.brokers[name]
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
            "at_most_bytes_per_s": known.brokers[whence].link or None,
        }
        for whence, whither, load in sorted(found)
    ]
