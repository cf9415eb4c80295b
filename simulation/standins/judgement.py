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
    rows = [row for row in rows if row.payload and not row.is_silent]
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


def check_read(
    loss: HomeLoss,
    places: Sequence[Place],
    specifications: Mapping[str, str],
    arrived: Sequence[dict[str, Any]],
) -> int:
    """Check what a reader of all logs has in the end; return what it had of the heir's copy.

    It goes on at the heir where it was at the home. What it had read there comes again only if the
    copy had no word of it: where the home gave it out without its stand-in.
    """
    inherited, heir = loss.inherited, loss.heir
    lost, is_lost = loss.outbox.rows, loss.kind in {"destroyed", "emptied"}
    if inherited is None or heir is None or not loss.place.has_reader:
        return 0
    upto = loss.read
    passed = {
        run.own + number
        for run in inherited.runs
        for number in range(run.count)
        if run.theirs + number < upto
    }
    rows = list(lost[:upto])
    if not is_lost:  # it is read again where the heir's copy ends
        log = loss.place.machine.outbox.rows
        rows += [*log[:upto], *log[max(upto, inherited.end) :]]
    for place in places:
        if place is not loss.place or is_lost:
            kept = place.machine.outbox.rows
            rows += [row for row in kept if not (place is heir and row.offset in passed)]
    rows = [row for row in rows if row.payload]
    alone = (lost if is_lost else loss.place.machine.outbox.rows)[inherited.end :]
    excused = {_key(row) for row in alone if row.payload}
    counts = Counter(map(_key, rows))
    if twice := [key for key, count in counts.items() if count > 1 and key not in excused]:
        raise CheckFailedError(f"read twice: {twice[:3]}")
    if loss.read < inherited.first and is_lost:
        return 0  # told as a gap
    each = {_key(row): (0, row) for row in rows}
    excused_at = checks.excused_of(arrived)
    for text in specifications.values():
        checkers.check_replay(texts.checked(text).demand(), each.values(), arrived, excused_at)
    return sum(run.count for run in inherited.runs) - len(passed)


def check_never_two(loss: HomeLoss, adopted: Sequence[tuple[str, str]]) -> None:
    """Check that a home with a lease gave out nothing any more once it was taken over."""
    taken_at = None if loss.heir is None else loss.heir.taken_at
    for released_at, row in loss.place.released_at:
        is_late = (
            taken_at is not None
            and released_at >= taken_at
            and bool(row.payload)
            and not row.is_silent
        )
        if is_late and (row.subscriber, row.subscription) in adopted:
            raise CheckFailedError(f"{_key(row)} was given out at {released_at}, by two homes")


def _key(row: Emission) -> Key:
    return row.subscriber, row.subscription, json.loads(row.payload)["id"]
