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
from broker.engine.runtime.budget import UNLIMITED, in_one_go
from broker.engine.runtime.matcher import Matcher
from language import Specification
from simulation import texts
from simulation.account import ArrivalAccount, CheckFailedError
from simulation.site import SimulatedBroker
from simulation.visitors import Visit


def check_conservation(broker: SimulatedBroker, account: ArrivalAccount) -> None:
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


def check_told(broker: SimulatedBroker, account: ArrivalAccount) -> None:
    """Each payload that was refused is told of once, with its reason."""
    reasons = Counter(
        json.loads(publication.payload)["reason"]
        for _, publication in broker.published
        if publication.topic == "rejected"
    )
    if reasons != account.refusals:
        raise CheckFailedError(f"refused: {dict(account.refusals)}, told: {dict(reasons)}")


def check_acknowledged(broker: SimulatedBroker, account: ArrivalAccount) -> None:
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
    for _, result in results:
        document = json.loads(result.payload)
        seen[result.subscriber, result.subscription, document["seq"], document["id"]] += 1
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
    counted = Counter(
        _key(json.loads(result.payload))
        for _, result in results
        if (result.subscriber, result.subscription) in names
    )
    missing, surplus = list((wanted - counted).elements()), list((counted - wanted).elements())
    missing = [key for key in missing if not excused(json.loads(key))]
    if missing or surplus:
        raise CheckFailedError(
            f"of {wanted.total()} results {len(missing)} are missing {missing[:2]} and"
            f" {len(surplus)} surplus {surplus[:2]}"
        )
    return wanted.total()


def check_visit(
    visit: Visit, results: Iterable[tuple[int, Emission]], account: ArrivalAccount
) -> int:
    """Check that who comes and goes gets all that arrived meanwhile, and nothing else; count it.

    To be asked of subscriptions of which each result depends on its own events alone.
    """
    specification = texts.checked(texts.text_of([visit.name], visit.client, visit.seq)).demand()
    last = visit.to_step if visit.to_step is not None else account.step + 1
    meanwhile = [
        event for key, event in account.taken.items() if visit.from_step < account.steps[key] < last
    ]
    lower = {_key(result) for result in replayed(specification, meanwhile)}
    upper = {_key(result) for result in replayed(specification, account.taken.values())}
    got = set()
    for time_ms, result in results:
        document = json.loads(result.payload)
        if (result.subscriber, result.subscription, document["seq"]) == (
            visit.client,
            visit.name,
            visit.seq,
        ):
            got.add(_key(document))
            if visit.gone_at is not None and time_ms > visit.gone_at:
                raise CheckFailedError(f"{visit.client} is gone and gets {document}")
    if not lower <= got <= upper:
        raise CheckFailedError(
            f"{visit}: missing {sorted(lower - got)[:2]}, surplus {sorted(got - upper)[:2]}"
        )
    return len(got)


def replayed(
    specification: Specification, events: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The results of a specification on events, all on time and in order."""
    intake = Intake(IntakeOptions(lateness_ms=None))
    intake.declare(
        event_type for event_type in specification.event_types.values() if not event_type.defined
    )
    # All comes in one step here, which no budget is for.
    matcher = Matcher(Limits(step_candidates_max=UNLIMITED, step_bytes_max=UNLIMITED))
    for task in specification.graph.tasks.values():
        matcher.install(task)
    decoded = intake.from_mappings(list(events))
    if decoded.rejections:
        raise CheckFailedError(f"an event that was let in is refused now: {decoded.rejections[0]}")
    ordered = sorted(decoded.events, key=lambda event: event.order)
    results = in_one_go(matcher.push(ordered, lambda _: WATERMARK_NONE))
    results += in_one_go(matcher.push([], lambda _: WATERMARK_END))
    return [result.to_dict() for result in results]


def _key(said: Mapping[str, Any]) -> str:
    """All that a result says but for when it was detected."""
    lasting = {name: value for name, value in said.items() if name != "detected_at"}
    return json.dumps(lasting, sort_keys=True)
