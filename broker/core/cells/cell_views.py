"""How a broker sees its cells, put together of what its home's memory and its own cells say.

Owns the putting together. Must not know frames. Invariant: each cell stands there once, in the
order in which they were submitted, then those of other homes in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from broker.core.cells.cell import Cell
from broker.core.networked.networked import NetworkedBroker
from broker.network.host.needs import Needs
from broker.network.neighbours.ways import Ways
from broker.network.overlay.topology import Topology
from broker.network.placement.book import Kept
from broker.network.placement.cell_view import CellState, CellView, home_of, is_cell
from broker.network.replication.absence_watch import away
from broker.network.replication.waiting_clocks import WATERMARK_NONE
from broker.network.routing.advertisement.messages import LOCAL
from broker.network.routing.advertisement.operator import Operator


def views(
    core: NetworkedBroker, running: Mapping[str, Cell], leaves_to: Callable[[str], str | None]
) -> tuple[CellView, ...]:
    """All that this broker knows of cells; `leaves_to`: where one goes once its state is saved."""
    latest: dict[str, Cell] = {}
    for cell in running.values():
        known = latest.get(cell.which.cell)
        if known is None or known.which.term < cell.which.term:
            latest[cell.which.cell] = cell
    found = [
        _of_home(core, one, latest.pop(one.name, None), leaves_to(one.name))
        for one in core.book.cells.values()
    ]
    return (*found, *[_of_another(cell, core.options.name) for cell in latest.values()])


def _of_home(
    core: NetworkedBroker, one: Kept, cell: Cell | None, leaves_to: str | None
) -> CellView:
    state: CellState = "active" if one.active else "starting"
    moving_to = leaves_to or (one.coming.broker if one.coming is not None else "")
    if moving_to:
        state = "moving"
    subscriptions = core.catalogue.subscriptions
    installed = [subscriptions[key] for key in one.keys]
    tasks = [name for each in installed for name in (*each.definitions, each.task)]
    return CellView(
        cell=one.name,
        home=core.options.name,
        host=one.serving.broker,
        term=one.serving.number,
        state=state,
        subscriptions=tuple(one.keys),
        tasks=tuple(dict.fromkeys(tasks)),
        moving_to=moving_to,
        snapshot_bytes=len(one.snapshot),
        reason="" if leaves_to else one.reason,  # that is of the time before
        life=0 if cell is None else cell.life,
        counts=None if cell is None else cell.counted,
        asked=() if cell is None else _asked(cell),
        faults=0 if cell is None else cell.faults,
    )


def _of_another(cell: Cell, me: str) -> CellView:
    core = cell.durable
    return CellView(
        cell=cell.which.cell,
        home=home_of(cell.which.cell),
        host=me,
        term=cell.which.term,
        state="active" if cell.complete else "starting",
        subscriptions=tuple(core.catalogue.subscriptions),
        tasks=tuple(core.network.tasks()),
        snapshot_bytes=cell.reports.saver.size_bytes,
        life=cell.life,
        counts=cell.counted,
        asked=_asked(cell),
        faults=cell.faults,
    )


def _asked(cell: Cell) -> tuple[Operator, ...]:
    return tuple([operator for operator, _ in cell.router.operators(LOCAL)])


def knows(core: NetworkedBroker, topology: Topology, broker: str) -> bool:
    """Tell whether another broker is known, be it by what is kept for it or waited for alone."""
    brokers = (topology.known, core.own.hosts, core.upstream)
    is_other = broker != topology.me and not is_cell(broker)
    return is_other and any(broker in names for names in brokers)


def said_of(one: CellView) -> dict[str, Any]:
    """A view as plain data, for people."""
    said: dict[str, Any] = {
        "cell": one.cell,
        "home": one.home,
        "host": one.host,
        "term": one.term,
        "state": one.state,
        "subscriptions": [list(key) for key in one.subscriptions],
        "tasks": len(one.tasks),
        "snapshot_bytes": one.snapshot_bytes,
    }
    if one.moving_to:
        said["moving_to"] = one.moving_to
    if one.faults:
        said["faults"] = one.faults
    if one.reason:
        said["reason"] = one.reason
    if one.counts is not None:
        said["came"] = {
            f"{origin} {name}": load.size_bytes
            for (origin, name), load in one.counts.inputs.items()
        }
        said["results"] = one.counts.results.events
        said["saved_bytes"] = one.counts.saved.size_bytes
    return said


def network_status(  # noqa: PLR0917  # the parts of a broker that have a state to show
    core: NetworkedBroker,
    topology: Topology,
    ways: Ways,
    needs: Needs,
    cells: Sequence[CellView],
    running: Mapping[str, Cell],
) -> dict[str, Any]:
    """The tree, the ways to origins, and who waits for whom, as plain data."""
    own = core.own
    origins = {
        name: {
            "position": upstream.position,
            "lost": upstream.lost,
            "reachable": name in ways.via,
            "answered": name not in needs.asked,
            "watermarks": core.watermarks_of(name),
        }
        for name, upstream in core.upstream.items()
    }
    return {
        "tree": topology.tree.neighbours,
        "known": [name for name in topology.known if name != topology.me],
        "unreachable": dict(topology.unreachable),
        "position": own.position,
        "retained": len(own),
        "hosts": {name: interest.position for name, interest in own.hosts.items()},
        "origins": origins,
        "actors": {broker: names for broker, _, names in core.delivery.actors.state()},
        "times": core.promises.stated(core.sources.types()),
        "copies": len(core.copies),
        "roaming": len(core.roaming),
        "waits": core.clocks.origins_behind(core.wanted()),
        "away": away(core, core.now),
        "inactive": {name: list(waits) for (_, name), waits in needs.waits.items()},
        "promised": promised(core),
        "cells": [said_of(cell) for cell in cells],
        "run_here": {name: status_of(cell) for name, cell in running.items()},
    }


def promised(core: NetworkedBroker) -> dict[str, dict[str, int]]:
    """Return, by task (`subscriber/name`) and origin, the least promise for a type it needs (ms).

    Origins that have promised nothing yet are left out, and tasks that run elsewhere.
    """
    tasks = core.tasks()
    by_origin = {origin: core.watermarks_of(origin) for origin in core.upstream}
    rows: dict[str, dict[str, int]] = {}
    for key, subscription in core.catalogue.subscriptions.items():
        if subscription.task not in tasks:
            continue
        types = core.wanted_by(key, tasks)
        least = {
            origin: min((mark for name, mark in marks.items() if name in types), default=None)
            for origin, marks in by_origin.items()
        }
        rows["/".join(key)] = {
            origin: mark
            for origin, mark in least.items()
            if mark is not None and mark > WATERMARK_NONE
        }
    return rows


def status_of(cell: Cell) -> dict[str, Any]:
    """The state of a cell that runs here, for people."""
    network, installed = cell.durable.network, cell.durable.catalogue.subscriptions
    return {
        "active": cell.complete,
        "origins": {name: source.position for name, source in network.upstream.items()},
        "waits": network.clocks.origins_behind(network.wanted()),
        "results_waiting": len(cell.reports.results),
        "snapshot_bytes": cell.reports.saver.size_bytes,
        "held": cell.durable.held(),
        "faults": cell.faults,
        "promised": promised(network),
        "suspended": {sub.name: sub.suspended for sub in installed.values()},
        **cell.inputs.status(),
    }
