"""What must hold of a run of many brokers, checked against one engine.

Owns the checks. Must not know links or faults. Invariant: what was sent and what is in the
outboxes is all that is looked at, and whether somebody was told that an event was late.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from broker.core.effects import Emission
from simulation import checkers, texts
from simulation.account import CheckFailedError
from simulation.network.place import Place
from simulation.network.process import BrokerProcess

Said = dict[str, Any]


def check_all(
    places: Sequence[Place],
    specifications: Mapping[str, str],
    arrived: Sequence[Said],
    *,
    exactly: bool = False,
) -> int:
    """All that must hold at the end; how many results there are. `exactly`: nothing is excused."""
    rows = results_of(places)
    for name, row in rows:
        said = json.loads(row.payload)
        if (said["subscriber"], said["subscription"]) != (row.subscriber, row.subscription):
            raise CheckFailedError(f"a result of another subscription at {name}")
    checkers.check_no_result_twice((0, row) for _, row in rows)
    excused = _nothing if exactly else excused_of(arrived)
    for text in specifications.values():
        specification = texts.checked(text).demand()
        checkers.check_replay(specification, ((0, row) for _, row in rows), arrived, excused)
    for place in places:
        check_kept(place)
        if place.listens:
            check_heard(place, rows)
    return len(rows)


def results_of(places: Iterable[Place]) -> list[tuple[str, Emission]]:
    """All results, with the broker in whose outbox each is."""
    return [(place.name, row) for place in places for row in place.machine.outbox.rows]


def ids_of(places: Iterable[Place]) -> Counter[tuple[str, str, str]]:
    """(subscriber, subscription, id) of all results."""
    rows = [row for _, row in results_of(places)]
    return Counter(
        (row.subscriber, row.subscription, json.loads(row.payload)["id"]) for row in rows
    )


def noted_by_cells(process: BrokerProcess, what: str) -> int:
    """Return how often the cells that run in a process have noted it."""
    cells = process.network.hosted.values()
    return sum(cell.durable.ledger.notes.get(what, 0) for cell in cells)


def check_kept(place: Place) -> None:
    """In the end nothing is kept for hosts, as all have it, and nobody waits for anybody."""
    process = place.process
    assert process is not None
    network = process.core.network
    if network.ledger.notes.get("late_from_afar"):
        raise CheckFailedError(f"at {place.name} events of others came behind a watermark")
    if len(network.own):
        raise CheckFailedError(f"{place.name} still keeps {len(network.own)} events for others")
    if len(network.copies):
        raise CheckFailedError(f"{place.name} still keeps {len(network.copies)} copies of results")
    if process.network.counts["frames_malformed"]:
        raise CheckFailedError(f"{place.name} did not understand what another broker said")
    if asked := process.network.hosting.needs.asked:
        raise CheckFailedError(f"{place.name} still waits for {asked}")
    lost = {name: one.lost for name, one in network.upstream.items() if one.lost}
    if lost:
        raise CheckFailedError(f"{place.name} is told that events are lost: {lost}")


def check_heard(place: Place, rows: Iterable[tuple[str, Emission]]) -> None:
    """The actor was sent every result of other brokers where it listens, and nothing else."""
    wanted = {row.payload for home, row in rows if home != place.name}
    missing, surplus = wanted - place.heard.keys(), place.heard.keys() - wanted
    if missing or surplus:
        raise CheckFailedError(
            f"of {len(wanted)} results for the actor at {place.name} {len(missing)} are missing and"
            f" {len(surplus)} surplus"
        )


def _nothing(_result: Mapping[str, Any]) -> bool:
    return False


def excused_of(arrived: Iterable[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], bool]:
    """Which results may be missing: those of events that last.

    How far such may reach back a broker learns from those that came before.
    """
    points = {one["id"] for one in arrived if "timestamp" in one}

    def excused(result: Mapping[str, Any]) -> bool:
        ids = {one for bound in result["events"].values() for one in bound}
        return not ids <= points

    return excused
