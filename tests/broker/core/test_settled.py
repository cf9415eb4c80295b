"""What a broker promises to be settled is, whatever it detects and whenever it ends."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable

import pytest

from broker.core.effects import Emission
from broker.core.messages import EventsReceived, Message, Payload, Settling, SpecificationSubmitted
from tests.broker.core.generated_runs import WINDOWS_CHOSEN, Case, Pair, Site, drawn
from tests.oracles import spec as s
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE

CONSTRUCTS = [*CONSTRUCTS_WHOLE, WINDOWS_CHOSEN]
SEEDS_LONG = 12


class Promising(Site):
    """Holds the broker to its promises."""

    def __init__(self, case: Case) -> None:
        self.promised: dict[tuple[str, str], int] = {}
        self.draw = random.Random(f"promises of {case.name}")
        self.counts: Counter[str] = Counter()
        super().__init__(case)

    def tell(self, message: Message, now: int) -> None:
        super().tell(message, now)
        if self.draw.random() < 0.5:
            due = self.broker.core.frontiers.is_due(now)
            before = dict(self.broker.core.frontiers.reached)
            super().tell(Settling(), now)
            after = self.broker.core.frontiers.reached
            assert due or before == after, "it promised more than it said it would"
            assert all(after[key] >= one for key, one in before.items()), "it took a promise back"
            self.promised = dict(after)

    def end(self, draw: random.Random) -> None:
        promised = dict(self.broker.core.frontiers.reached)
        super().end(draw)
        assert self.broker.core.frontiers.reached == promised, "a promise ended with its process"

    def _emitted(self, results: tuple[Emission, ...]) -> None:
        for one in results:
            if one.offset >= len(self.results):
                until_ms = self.promised.get((one.subscriber, one.subscription))
                self.counts["results"] += 1
                if until_ms is not None:
                    self.counts["promised"] += 1
                    assert json.loads(one.payload)["end"] > until_ms, "it was said to be settled"
        super()._emitted(results)


def hold_to_promises(case: Case) -> Counter[str]:
    """A run with ends; how many results came, and how many of them behind a promise."""
    draw = random.Random(f"ends of {case.name}")
    pair = Pair(case)
    site = Promising(case)
    pair.whole = pair.ended = site
    pair._draw.random = lambda: 1.0  # type: ignore[method-assign]  # it ends here, not there
    for now, message in case.messages:
        pair._wait(now)
        pair._tell(message, now)
        if draw.random() < 0.2:
            site.save()
            site.end(draw)
    pair._wait(case.messages[-1][0] + 3_600_000)
    return site.counts


@pytest.mark.parametrize("context", CONTEXTS_WHOLE)
def test_no_result_comes_behind_a_promise(context: s.Context) -> None:
    counts: Counter[str] = Counter()
    for number, construct in enumerate(CONSTRUCTS):
        if CONTEXTS_WHOLE[number % len(CONTEXTS_WHOLE)] == context:
            counts += hold_to_promises(drawn(0, construct, context))
    assert counts["results"] > 20
    assert counts["promised"] > counts["results"] / 10


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("context", CONTEXTS_WHOLE)
@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_no_result_comes_behind_a_promise_in_many_more_runs(
    construct: str, context: s.Context, record_property: Callable[[str, object], None]
) -> None:
    counts: Counter[str] = Counter()
    for seed in range(1, SEEDS_LONG):
        counts += hold_to_promises(drawn(seed, construct, context))
    what = "runs of a broker that is held to its promises"
    record_property("generated", [what, construct, context, SEEDS_LONG - 1, counts["results"]])


def asked_or_not(case: Case) -> int:
    """A run in which one of two is asked what it would promise; how many results came."""
    pair = Pair(case)
    draw = random.Random(f"questions of {case.name}")
    ask = pair.ended.tell

    def asked(message: Message, now: int) -> None:
        if draw.random() < 0.5:
            pair.ended.broker.core.frontiers.is_due(draw.randint(pair.ended.broker.now, now))
        ask(message, now)

    pair.ended.tell = asked  # type: ignore[method-assign]
    pair._draw.random = lambda: 1.0  # type: ignore[method-assign]  # nobody ends
    pair.run()
    assert pair.ended.results == pair.whole.results
    return len(pair.whole.results)


def test_asking_what_would_be_promised_changes_nothing() -> None:
    count = 0
    for number, construct in enumerate(CONSTRUCTS):
        count += asked_or_not(drawn(0, construct, CONTEXTS_WHOLE[number % len(CONTEXTS_WHOLE)]))
    assert count > 50


TEXT = "event A(n: int) event B(n: int) subscription S from x to y detect A as a assign n = a.n"


def reading(kind: str, source: str, at: int) -> EventsReceived:
    data = json.dumps({"id": f"{source}{at}", "timestamp": at}).encode()
    return EventsReceived((Payload(kind, source, data),))


def test_a_new_subscription_is_promised_apart_and_a_cancelled_one_no_more() -> None:
    site = Site(drawn(0, CONSTRUCTS[0], CONTEXTS_WHOLE[0]))
    now = site.broker.now
    for text in (
        TEXT,
        TEXT.replace("subscription S", "subscription T").replace("detect A", "detect B"),
    ):
        site.tell(SpecificationSubmitted("x", "1", text, "here"), now)
    site.tell(reading("A", "s1", now), now)
    site.tell(Settling(), now)
    assert list(site.broker.core.frontiers.reached) == [("x", "S")]
    assert now - 60_000 < site.broker.core.frontiers.reached["x", "S"] < now
    assert site.broker.core.frontiers.waits_for(("x", "T")) == "B, which nobody sends"
    assert site.broker.core.frontiers.waits_for(("x", "S")) == "A of source s1"
