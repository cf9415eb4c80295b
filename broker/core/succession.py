"""What a submitted text changes, and what of the running tasks goes on in it.

Owns the choice of the tasks whose state a changed text keeps. Must not know how a state is carried
over (`broker.engine.runtime.succession`), nor install anything. Invariant: a task is said to go on
only where nothing of what it should hold can have been missed.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from broker.core.preview import TaskWords, row_of
from broker.engine.runtime.succession import Heir, heirs_of
from language import EventType, Specification

if TYPE_CHECKING:
    from broker.core.catalogue import Catalogue, Installed
    from broker.core.preview import SubscriptionPreview
    from broker.engine.limits import Limits
    from broker.engine.runtime.matcher import Matcher


class TextChange(Struct):
    """What a specification changes: subscriptions to come, those that go for them."""

    specification: Specification
    coming: list[Installed]
    leaving: list[Installed]
    types: list[EventType]
    declared: str
    heirs: dict[str, Heir] = {}  # tasks that go on from the state of those that they replace

    def begins(self, coming: Installed) -> list[str]:
        """Return the tasks of a subscription that begin anew, be it but for some operands."""
        keys = (*coming.definitions, coming.task)
        return [key for key in keys if key not in coming.kept or self.has_parts(key)]

    def has_parts(self, key: str) -> bool:
        """Return True for a task of which only some operands go on."""
        return key in self.heirs and bool(self.heirs[key].parts)


def look_for_heirs(
    change: TextChange,
    catalogue: Catalogue,
    matcher: Matcher,
    elsewhere: Container[tuple[str, str]],
    limits: Limits,
) -> None:
    """Find the tasks that go on: those that stay, and those that take over from others.

    The subscriptions of `elsewhere` run at other brokers.
    """
    if not change.leaving:
        return
    running, suspended = matcher.tasks(), matcher.suspensions.why
    tasks = change.specification.graph.tasks
    coming = {subscription.key: subscription for subscription in change.coming}
    # A task of subscriptions that wait for other brokers may have missed what it should hold.
    complete = {
        key
        for subscription in catalogue.subscriptions.values()
        if subscription.state == "active" and subscription.key not in elsewhere
        for key in (*subscription.definitions, subscription.task)
        if key in running and key not in suspended
    }
    for before in change.leaving:
        after = coming[before.key]
        keys = (*before.definitions, before.task)
        wanted = (*after.definitions, after.task)
        old = [running[key] for key in keys if key in complete]
        # A store for chains holds events, and of operands nothing.
        with_parts = not limits.chain_events_max
        heirs = heirs_of(old, [tasks[key] for key in wanted], with_parts=with_parts)
        change.heirs |= {key: heir for key, heir in heirs.items() if key not in running}
        after.kept = tuple([key for key in wanted if key in complete or key in change.heirs])
        begins = change.begins(after)
        if after.task not in begins and change.specification.subscriptions[after.key].for_ms:
            after.ends = before.ends  # it goes on from its beginning
        if before.state == "active" and not begins:
            after.state = "active"  # it needs nothing of others that it has not had so far


def rows_of(change: TextChange) -> tuple[SubscriptionPreview, ...]:
    """Return what becomes of the subscriptions that are replaced."""
    graph = change.specification.graph
    replaced = {before.key for before in change.leaving}
    rows = []
    for coming in change.coming:
        if coming.key in replaced:
            row = row_of(coming, change.begins(coming), graph, "changed")
            keys = [key for key in (*coming.definitions, coming.task) if change.has_parts(key)]
            parts = [TaskWords(graph.tasks[key].name, change.heirs[key].parts) for key in keys]
            rows.append(replace(row, parts=tuple(parts)))
    return tuple(rows)
