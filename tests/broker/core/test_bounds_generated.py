"""What is said of the most that a task holds is kept by every construct in every context."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from broker.core.intake import IntakeOptions
from broker.engine.limits import Limits
from broker.engine.pattern.bounds.bounds import Inputs, bounds_of
from headwater.engine import Pipeline
from headwater.replays.reference_tables import tables_beside
from language import check_text
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE, random_case
from tests.oracles.recipes_values import files_of
from tests.oracles.render import text_of
from tests.oracles.traces import LATS, LOCATIONS, LONS, SOURCES, TAGS

RATES = {"A": 2, "B": 3, "C": 1, "D": 1}
SECONDS_FAST, SECONDS_LONG = 12, 130
BEGIN_MS = 1_700_000_000_000
MATCHES_MAX = 3_000  # of a stream that holds or gives more, nothing more is learnt


def stream(seed: int, seconds: int, lateness_ms: int) -> list[dict[str, Any]]:
    """Readings of each type at its rate, evenly, as they arrive; values as in generated traces.

    Of every third seed all times are uncertain.
    """
    draw = random.Random(seed)
    uncertain = {"uncertainty": unsure_ms(seed)} if unsure_ms(seed) else {}
    arrivals = []
    for name, rate in RATES.items():
        at_s = draw.random() / rate
        for number in range(seconds * rate):
            at_ms = BEGIN_MS + int(1000 * (at_s + number / rate))
            event = {"type": name, "id": f"{name}{number}", "timestamp": at_ms}
            event |= {"source": draw.choice(SOURCES), "location": draw.choice(LOCATIONS)}
            event |= {"position": [draw.choice(LATS), draw.choice(LONS)]}
            event |= {"n": draw.randrange(4), "v": draw.choice((0.5, 1.25, -2.0, 3.0))}
            event |= {"tag": draw.choice(TAGS), "flag": draw.random() < 0.5, **uncertain}
            arrivals.append((at_ms + draw.randint(0, lateness_ms), event["id"], event))
    return [event for *_, event in sorted(arrivals, key=lambda one: one[:2])]


def unsure_ms(seed: int) -> int:
    """By how much the times of a seed's stream may be wrong."""
    return random.Random(seed).choice((500, 1000)) if seed % 3 == 2 else 0


def groups_of(events: list[dict[str, Any]], keys: tuple[str, ...]) -> int:
    """How many groups the stream has, at most."""
    return len({tuple(event.get(key) for key in keys) for event in events}) if keys else 1


def hold_to(construct: str, context: str, seed: int, seconds: int, beside: Path) -> str:
    """Run one case beside its bounds; what became of it: limited, unlimited or too many."""
    spec, _ = random_case(seed, construct, context)  # type: ignore[arg-type]
    for name, content in files_of(spec):
        (beside / name).write_text(content, encoding="utf-8")
    text = text_of(spec)
    checked = check_text(text, tables=tables_beside(str(beside / "text.hw"))).demand()
    lateness_ms = random.Random(seed).choice((0, 0, 3_000))
    rates = {name: Fraction(rate) for name, rate in RATES.items()}
    inputs = Inputs(rates, lateness_ms=lateness_ms, uncertainty_ms=unsure_ms(seed))
    bounds = bounds_of(checked.graph, inputs)
    pipeline = Pipeline(checked, IntakeOptions(lateness_ms=lateness_ms))
    seats = list(pipeline.matcher._seats.values())
    events = stream(seed, seconds, lateness_ms)
    results = 0
    for event in events:
        results += len(pipeline.admit(pipeline.intake.from_mappings([event]).events))
        for (task, case, bound), seat in zip(bounds, seats, strict=True):
            most = bound.most(_groups(task, case, events))
            assert bound.limit[0] in Limits.__struct_fields__
            if most is None:
                assert bound.reasons, text
            else:
                assert seat.agent.held() <= most, f"seed {seed}, {construct}, {context}\n{text}"
        if results > MATCHES_MAX or pipeline.matcher.held() > MATCHES_MAX:
            return "too many"
    return "limited" if all(bound.most() is not None for *_, bound in bounds) else "unlimited"


def _groups(task: Any, case: Any, events: list[dict[str, Any]]) -> int:
    """A definition's events may have any of the values that the stream has for a key."""
    if task.needs:
        return len(events)
    return groups_of(events, tuple(case.group_by))


@pytest.mark.parametrize("number", range(len(CONSTRUCTS_WHOLE)), ids=list(CONSTRUCTS_WHOLE))
def test_no_construct_holds_more_than_is_said(number: int, tmp_path: Path) -> None:
    construct = list(CONSTRUCTS_WHOLE)[number]
    for turn in (0, 2):
        context = CONTEXTS_WHOLE[(number + turn) % len(CONTEXTS_WHOLE)]
        hold_to(construct, context, number + turn, SECONDS_FAST, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("context", CONTEXTS_WHOLE)
@pytest.mark.parametrize("construct", CONSTRUCTS_WHOLE)
def test_no_construct_holds_more_than_is_said_in_minutes(
    construct: str, context: str, tmp_path: Path
) -> None:
    """Silent partitions are looked at once a minute, so that it takes some."""
    for seed in range(100, 103):
        hold_to(construct, context, seed, SECONDS_FAST, tmp_path)
    hold_to(construct, context, 103, SECONDS_LONG, tmp_path)


def test_most_of_what_is_generated_has_a_limit_by_its_text(tmp_path: Path) -> None:
    """Else nothing would be compared."""
    found = [
        hold_to(construct, CONTEXTS_WHOLE[seed % len(CONTEXTS_WHOLE)], seed, 1, tmp_path)
        for seed, construct in enumerate(CONSTRUCTS_WHOLE)
    ]
    assert found.count("limited") >= 0.4 * len(found)
