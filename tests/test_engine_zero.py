"""`within 0 s` is one instant and `spread 0 m` one place, held to the reference.

The generated specifications of all constructs, with every time and distance of theirs set to zero,
over their events in coarse steps of time, so that many are at one instant.
"""

import random
from collections import Counter
from dataclasses import fields, is_dataclass, replace

import pytest

import headwater
from language import check_text
from tests.oracles import spec as s
from tests.oracles.compare import compare
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE, random_case
from tests.oracles.matcher import run
from tests.oracles.render import text_of

CONSTRUCTS = [name for name in CONSTRUCTS_WHOLE if name != "tables"]  # it needs files
TIMES = ("timestamp", "start", "end")


def zeroed(part):
    """The same with nothing between."""
    if isinstance(part, s.Within):
        return replace(part, ms=0)
    if isinstance(part, s.Spread):
        return replace(part, metres=0.0)
    if is_dataclass(part):
        return replace(part, **{f.name: zeroed(getattr(part, f.name)) for f in fields(part)})
    return tuple(map(zeroed, part)) if isinstance(part, tuple) else part


def in_steps(events, step_ms):
    return [
        {key: value // step_ms * step_ms if key in TIMES else value for key, value in one.items()}
        for one in events
    ]


def agree(seeds):
    """How many cases agreed, and how many of them had results."""
    counts = Counter()
    for seed in seeds:
        for number, construct in enumerate(CONSTRUCTS):
            context = CONTEXTS_WHOLE[(seed + number) % len(CONTEXTS_WHOLE)]
            drawn, events = random_case(seed, construct, context)
            spec = zeroed(drawn)
            text = text_of(spec)
            if spec == drawn or not check_text(text).ok:
                continue
            events = in_steps(events, random.Random(seed).choice((1_000, 2_000, 5_000)))
            wanted = run(spec, events)
            engine = headwater.Engine(text, lateness_ms=None)
            engine.push(events)
            assert compare(spec, wanted, engine.finish()) == [], f"{construct}/{context}/{seed}"
            counts += Counter(cases=1, results=bool(wanted))
    return counts


def test_nothing_between_is_one_instant_and_one_place():
    counts = agree(range(3))
    assert counts["results"] > counts["cases"] * 0.3 > 10


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", range(3, 63, 20))
def test_nothing_between_is_one_instant_and_one_place_in_many_more_cases(first):
    counts = agree(range(first, first + 20))
    assert counts["results"] > counts["cases"] * 0.3
