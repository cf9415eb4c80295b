"""One broker's view of its network: brokers, links, and what goes over each of its own links.

Owns the shape of `GET /v1/network`. Must not know sockets or frames. Invariant: events of a link by
type add up to those that the link was given; an operator is written in the words of the language.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from broker.core.exchange.host import Host
from broker.core.network.network_broker import NetworkBroker
from broker.network.operators.phrases import in_words
from broker.network.overlay.kinds import KindTraffic, table_of
from broker.network.placement.cell_view import is_cell
from broker.network.routing.advertisement.messages import LOCAL
from broker.network.routing.advertisement.operator import Operator

OPERATORS_MAX = 500  # of a link; nobody reads a page with more
KEPT_BACK = ("kept_back", "kept_back_sent", "kept_back_let_go")

Entry = tuple[Operator, tuple[str, ...]]


def network_view(
    broker: NetworkBroker, links: Mapping[str, Mapping[str, Any]], now_ms: int
) -> dict[str, Any]:
    """Return the view of `broker`; `links` is what is told of each of its own links.

    `position` counts the events and promises of this broker as an origin.
    """
    topology = broker.topology
    return {
        "broker": broker.me,
        "now": now_ms,
        "brokers": [
            {"name": name, "reachable": name not in topology.unreachable} for name in topology.known
        ],
        "links": [
            {
                "a": edge.low,
                "b": edge.high,
                "cost": edge.cost,
                "tree": edge in topology.tree.edges,
            }
            for edge in topology.edges()
        ],
        "neighbours": {name: _neighbour(broker, name, links[name]) for name in links},
        "own": _own(broker),
        "kept_back": {name: broker.counts[name] for name in KEPT_BACK},
        "unbounded": _unbounded(broker),
        "correlates": broker.correlates,
        "too_far_ms": broker.hosting.needs.far(),
    }


def _unbounded(broker: NetworkBroker) -> list[str]:
    """Return the types here of which no event waits, as nothing bounds how long they last."""
    own = broker.durable.network
    stated = own.promises.stated(own.sources.types())
    return [name for name, times in stated.items() if None in times.values()]


def _neighbour(broker: NetworkBroker, name: str, link: Mapping[str, Any]) -> dict[str, Any]:
    traffic = broker.traffic
    view: dict[str, Any] = {
        **link,
        "sent": traffic.by_type("sent", name),
        "received": traffic.by_type("received", name),
        "kinds": table_of([broker.sessions.outlet.sent.get(name, KindTraffic())]),
        "waits_for_partners": _waiting(broker, name),
    }
    if name in broker.router.neighbours:
        view["hosts"] = _hosts(broker, name)
        joins = broker.partners.joined(name)
        is_sure = broker.partners.is_sure(name) and broker.leads.is_sure(name, joins.silent)
        view["unsure"] = bool(joins.types) and broker.correlates and not is_sure
        view["wants"] = _operators(broker.router.operators(name))
        view["asked"] = _operators(broker.router.asked(name))
    return view


def _waiting(broker: NetworkBroker, toward: str) -> list[dict[str, Any]]:
    """Count the events that are kept back from `toward`, by type and the partners they wait for."""
    counts = Counter(
        (event.held.event.event_type, event.types)
        for _, claim in broker.ways.toward(toward)
        for event in claim.back.values()
    )
    return [
        {"type": event_type, "partners": _others(partners, event_type), "events": count}
        for (event_type, partners), count in sorted(counts.items())
    ]


def _others(types: Sequence[str], own: str) -> list[str]:
    """Return the types that an event of type `own` waits for: its own where there is no other."""
    return [name for name in types if name != own] or [own]


def _hosts(broker: NetworkBroker, toward: str) -> list[str]:
    """Return the brokers, that way, at which tasks need events that come from here or beyond."""
    hosts = {host for _, claim in broker.ways.toward(toward) for host in claim.hosts}
    return sorted({host.partition("/")[0] if is_cell(host) else host for host in hosts})


def _operators(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    return [
        {"id": operator.id, "wants": in_words(operator), "covered_by": list(covered_by)}
        for operator, covered_by in entries[:OPERATORS_MAX]
    ]


def _own(broker: NetworkBroker) -> list[dict[str, Any]]:
    """Return the operators of tasks here, each with the subscriptions it is for, and their home."""
    rows = _wanted_by(broker.hosting, broker.me)
    home_of = broker.durable.network.successions.home_of
    for cell in broker.hosted.values():
        rows += _wanted_by(cell.hosting, home_of(cell.which.cell))
    return rows[:OPERATORS_MAX]


def _wanted_by(hosting: Host, home: str) -> list[dict[str, Any]]:
    users: dict[str, list[str]] = {}
    for subscription in hosting.durable.network.catalogue.subscriptions.values():
        for task in (*subscription.definitions, subscription.task):
            users.setdefault(task, []).append("/".join(subscription.key))
    operators = hosting.router.operators(LOCAL)[:OPERATORS_MAX]
    rows = []
    for (operator, _), row in zip(operators, _operators(operators), strict=True):
        tasks = hosting.needs.tasks_of(operator.id)
        names = dict.fromkeys(user for task in tasks for user in users.get(task, ()))
        rows.append({**row, "for": list(names), "home": home})
    return rows
