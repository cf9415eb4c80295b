"""What must hold of a run, checked from the outside.

Owns the checks. Must not know how a scenario came about. Invariant: a check looks at what went in
and what came out, and only the account of events is asked of the core itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from broker.core.agent import WATERMARK_END, WATERMARK_NONE
from broker.core.effects import Emission
from broker.core.intake import Intake, IntakeOptions
from broker.core.matcher import Matcher
from language import Specification
from simulation.clients import Account
from simulation.site import SimulatedBroker


class CheckFailedError(AssertionError):
    """A run did not hold what it must; the text says what."""


def check_conservation(broker: SimulatedBroker, account: Account) -> None:
    """Every event that arrived is in the ledger, once; and no bad payload is missing there."""
    ledger = broker.core.ledger
    ledger.check()
    received = ledger.events.received
    if received != account.sent + account.bad:
        raise CheckFailedError(
            f"{account.sent} events and {account.bad} bad payloads arrived, {received} are counted"
        )
    late = ledger.events.dropped.get("late", 0)
    if late != account.late:
        raise CheckFailedError(f"{account.late} events were told to be late, {late} are counted")
    fed = ledger.events.out + ledger.events.filtered
    if fed != len(account.taken):
        raise CheckFailedError(f"{len(account.taken)} events were let in, {fed} came to tasks")


def check_acknowledged(broker: SimulatedBroker, account: Account) -> None:
    """Every publisher that waits is answered, once."""
    wrong = {
        token: broker.acknowledged.get(token, 0)
        for token in account.tokens
        if broker.acknowledged.get(token, 0) != 1
    }
    if wrong or len(broker.acknowledged) != len(account.tokens):
        raise CheckFailedError(f"tokens with another number of answers than one: {wrong}")


def check_no_result_twice(results: Iterable[tuple[int, Emission]]) -> None:
    """An occurrence is reported once for each subscription and version of it."""
    seen: Counter[tuple[str, str, int, str]] = Counter()
    for _, one in results:
        said = json.loads(one.payload)
        seen[one.subscriber, one.subscription, said["seq"], said["id"]] += 1
    twice = [key for key, count in seen.items() if count > 1]
    if twice:
        raise CheckFailedError(f"reported more than once: {twice[:3]}")


def check_replay(
    specification: Specification,
    results: Iterable[tuple[int, Emission]],
    events: Iterable[Mapping[str, Any]],
) -> int:
    """A run that has come to rest has the results of a replay of what was let in; how many.

    To be asked of subscriptions that were there before the first event and still are.
    """
    wanted = Counter(map(_key, replayed(specification, events)))
    names = set(specification.subscriptions)
    found = Counter(
        _key(json.loads(one.payload))
        for _, one in results
        if (one.subscriber, one.subscription) in names
    )
    if found != wanted:
        missing, surplus = list((wanted - found).elements()), list((found - wanted).elements())
        raise CheckFailedError(
            f"of {wanted.total()} results {len(missing)} are missing {missing[:2]} and"
            f" {len(surplus)} surplus {surplus[:2]}"
        )
    return wanted.total()


def replayed(
    specification: Specification, events: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The results of a specification on events, all on time and in order."""
    intake = Intake(IntakeOptions(lateness_ms=None))
    intake.declare(specification.event_types.values())
    matcher = Matcher()
    for task in specification.graph.tasks.values():
        matcher.install(task)
    decoded = intake.from_mappings(list(events))
    if decoded.rejections:
        raise CheckFailedError(f"an event that was let in is refused now: {decoded.rejections[0]}")
    ordered = sorted(decoded.events, key=lambda event: event.order)
    results = matcher.push(ordered, lambda _: WATERMARK_NONE)
    results += matcher.push([], lambda _: WATERMARK_END)
    return [result.to_dict() for result in results]


def _key(said: Mapping[str, Any]) -> str:
    """All that a result says but for when it was detected."""
    told = {name: value for name, value in said.items() if name != "detected_at"}
    return json.dumps(told, sort_keys=True)
