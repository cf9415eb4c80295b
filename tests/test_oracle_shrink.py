"""A case is made smaller as far as it still shows what is looked for."""

from typing import Any

from tests.oracles import spec as s
from tests.oracles.generate import random_case
from tests.oracles.matcher import run
from tests.oracles.shrink import shrunk


def test_a_case_with_a_result_shrinks_to_the_events_of_one() -> None:
    def shows(spec: s.Spec, events: list[dict[str, Any]]) -> bool:
        return any(result["subscription"] == "S1" for result in run(spec, events))

    smaller = 0
    for seed in range(30):
        spec, events = random_case(seed, "within", "recent")
        if not shows(spec, events):
            continue
        less, left = shrunk(spec, events, shows)
        result, *_ = run(less, left)
        assert len(left) == sum(map(len, result["primitives"].values()))
        (subscription,) = less.subscriptions
        assert subscription.case.assign == ()
        assert not isinstance(subscription.case.pattern, s.Suffixed)
        smaller += len(left) < len(events)
    assert smaller >= 10


def test_what_shows_nothing_is_left_as_it_is() -> None:
    spec, events = random_case(1, "then", "unrestricted")
    assert shrunk(spec, events, lambda *_: False) == (spec, events)
