"""The standing of subscriptions: which are suspended, and how often each has begun anew.

Owns what a home and a host make of the rows in which they say it (`broker.network.placement`). Must
not know frames or cells. Invariant: a home counts its new beginnings, so that a row from before one
changes nothing after it; once a host has followed, both have the same rows.

A home learns of what its host has suspended, writes it down, and says it to whatever host comes
next: so the work that was too much is not done again there. A host learns of new beginnings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.core import returned
from broker.core.catalogue import TOO_MUCH_WORK, Catalogue, Installed
from broker.network.placement.suspension import Rows

if TYPE_CHECKING:
    from broker.core.effects import Notes, Publication
    from broker.core.shared_tasks import SharedTasks
    from broker.engine.ledger import Ledger
    from broker.engine.runtime.matcher import Matcher


def suspend(sub: Installed, exceeded: str, ledger: Ledger, notes: Notes, now: int) -> Publication:
    """Mark a subscription as suspended; what its subscriber is told."""
    sub.suspended = exceeded
    ledger.note(TOO_MUCH_WORK)
    words = {"subscriber": sub.subscriber, "name": sub.name, "exceeded": exceeded}
    notes.tell("warning", TOO_MUCH_WORK, **words)
    return returned.suspended(sub, now)


def mark(
    rows: Rows, catalogue: Catalogue, ledger: Ledger, notes: Notes, now: int
) -> list[Publication]:
    """Mark subscriptions as suspended that a host tells of; what their subscribers are told."""
    return [
        suspend(catalogue.subscriptions[row.key], row.exceeded, ledger, notes, now) for row in rows
    ]


def follow(
    rows: Rows, catalogue: Catalogue, matcher: Matcher, shared: SharedTasks, now: int
) -> None:
    """Have tasks that run here begin anew, or be suspended, as their home's `rows` say.

    What is suspended here alone stays so: the home has yet to hear of it.
    """
    for row in rows:
        sub = catalogue.subscriptions.get(row.key)
        if sub is None:
            continue
        if row.resumed != sub.resumed:
            shared.resume(sub, now)
            sub.resumed, sub.suspended = row.resumed, ""
        if row.exceeded:
            if sub.task not in matcher.suspensions.why:
                matcher.suspensions.suspend(sub.task, row.exceeded)
            sub.suspended = row.exceeded
