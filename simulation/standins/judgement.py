"""The checks of a run in which a home was lost.

Owns them. Must not know how the home was lost. Invariant: a result counts twice only where the
stand-in could not know that the home had given it out; nothing is missing, and nothing surplus.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from broker.core.effects import Emission
from simulation import checkers, texts
from simulation.account import CheckFailedError
from simulation.network import checks
from simulation.network.cells import check_cells
from simulation.network.place import Place
from simulation.standins.loss import HomeLoss

Key = tuple[str, str, str]


def check_installed(places: Sequence[Place], specifications: Mapping[str, str]) -> None:
    """Check that each subscription is at one home."""
    homes = Counter(
        installed.key
        for place in places
        if place.process is not None
        for installed in place.process.core.core.subscriptions
    )
    wanted = [
        key
        for text in specifications.values()
        for key in texts.checked(text).demand().subscriptions
    ]
    if homes != Counter(wanted):
        raise CheckFailedError(f"{len(wanted)} subscriptions are installed as {homes}")


def check_results(
    loss: HomeLoss,
    places: Sequence[Place],
    specifications: Mapping[str, str],
    arrived: Sequence[dict[str, Any]],
) -> tuple[int, int]:
    """Check all results against one engine; return how many there are, and came twice."""
    rows = [row for _, row in checks.results_of(places)] + list(loss.outbox.rows)
    counts = Counter(map(_key, rows))
    twice = [key for key, count in counts.items() if count > 1]
    if surely := [key for key in twice if key[2] in loss.known]:
        raise CheckFailedError(f"given out twice, although that was known: {surely[:3]}")
    if any(count > 2 for count in counts.values()):
        raise CheckFailedError("given out three times")
    each = {_key(row): (0, row) for row in rows}
    excused = checks.excused_of(arrived)
    for text in specifications.values():
        specification = texts.checked(text).demand()
        checkers.check_replay(specification, each.values(), arrived, excused)
    for place in places:
        checks.check_kept(place)
        check_cells(place, list(places))
    return len(counts), len(twice)


def _key(row: Emission) -> Key:
    return row.subscriber, row.subscription, json.loads(row.payload)["id"]
