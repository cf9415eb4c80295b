"""What must hold of a run, checked from the outside.

Owns the checks. Must not know how a scenario came about. Invariant: a check looks at what went in
and what came out, and only the account of events is asked of the core itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from broker.core.effects import Emission
from broker.core.intake import Intake, IntakeOptions
from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.limits import Limits
from broker.engine.runtime.budget import UNLIMITED
from broker.engine.runtime.matcher import Matcher
from language import Specification
from simulation import texts
from simulation.account import Account, CheckFailedError
from simulation.site import SimulatedBroker
from simulation.visitors import Visit


def check_conservation(broker: SimulatedBroker, account: Account) -> None:
    """Every event that arrived is in the ledger, once, and for the reason that the account has."""
    ledger = broker.core.ledger
    ledger.check()
    events = ledger.events
    if events.received != account.received:
        raise CheckFailedError(f"{account.received} arrived, {events.received} are counted")
    wrong = {
        reason: (account.dropped[reason], events.dropped.get(reason, 0))
        for reason in sorted({*account.dropped, *events.dropped})
        if account.dropped[reason] != events.dropped.get(reason, 0)
    }
    if wrong:
        raise CheckFailedError(f"dropped by reason, (account, ledger): {wrong}")
    fed = events.out + events.filtered
    if fed != len(account.taken):
        raise CheckFailedError(f"{len(account.taken)} events were let in, {fed} came to tasks")
    if ledger.results != len(broker.results):
        raise CheckFailedError(f"{ledger.results} results counted, {len(broker.results)} given")


def check_told(broker: SimulatedBroker, account: Account) -> None:
    """Each payload that was refused is told of once, with its reason."""
    told = Counter(
        json.loads(one.payload)["reason"] for _, one in broker.published if one.topic == "rejected"
    )
    if told != account.refusals:
        raise CheckFailedError(f"refused: {dict(account.refusals)}, told: {dict(told)}")


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
    excused: Callable[[Mapping[str, Any]], bool] = lambda _: False,
) -> int:
    """A run that has come to rest has the results of a replay of what was let in; how many.

    To be asked of subscriptions that were there before the first event and still are. `excused`
    tells of a result whether it may be missing.
    """
    wanted = Counter(map(_key, replayed(specification, events)))
    names = set(specification.subscriptions)
    found = Counter(
        _key(json.loads(one.payload))
        for _, one in results
        if (one.subscriber, one.subscription) in names
    )
    missing, surplus = list((wanted - found).elements()), list((found - wanted).elements())
    missing = [one for one in missing if not excused(json.loads(one))]
    if missing or surplus:
        raise CheckFailedError(
            f"of {wanted.total()} results {len(missing)} are missing {missing[:2]} and"
            f" {len(surplus)} surplus {surplus[:2]}"
        )
    return wanted.total()


def check_visit(visit: Visit, results: Iterable[tuple[int, Emission]], account: Account) -> int:
    """Who comes and goes gets all of what arrived meanwhile, and nothing that never was; how many.

    To be asked of subscriptions of which each result depends on its own events alone.
    """
    specification = texts.checked(texts.text_of([visit.name], visit.client, visit.seq)).demand()
    last = visit.to_step if visit.to_step is not None else account.step + 1
    meanwhile = [
        event for key, event in account.taken.items() if visit.from_step < account.steps[key] < last
    ]
    least = {_key(one) for one in replayed(specification, meanwhile)}
    most = {_key(one) for one in replayed(specification, account.taken.values())}
    found = set()
    for at, one in results:
        said = json.loads(one.payload)
        if (one.subscriber, one.subscription, said["seq"]) == (visit.client, visit.name, visit.seq):
            found.add(_key(said))
            if visit.gone_at is not None and at > visit.gone_at:
                raise CheckFailedError(f"{visit.client} is gone and gets {said}")
    if not least <= found <= most:
        raise CheckFailedError(
            f"{visit}: missing {sorted(least - found)[:2]}, surplus {sorted(found - most)[:2]}"
        )
    return len(found)


def replayed(
    specification: Specification, events: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The results of a specification on events, all on time and in order."""
    intake = Intake(IntakeOptions(lateness_ms=None))
    intake.declare(one for one in specification.event_types.values() if not one.defined)
    # All comes in one step here, which no budget is for.
    matcher = Matcher(Limits(step_candidates_max=UNLIMITED, step_bytes_max=UNLIMITED))
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
