"""A view of a stage answers as a look through all that it keeps, and asking much costs little.

Owns the comparison on generated streams, in which the looks are written plainly, and a count of
what Python runs, in place of time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import headwater
from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE
from broker.engine.event.occurrence import start_of
from broker.engine.pattern.agent.staged_agent import StagedAgent
from broker.engine.pattern.operators.silence import Awaiting
from broker.engine.pattern.stage.base import Inbox, Over
from tests.counting import calls_of
from tests.oracles.generate import CONTEXTS_WHOLE, random_case
from tests.oracles.render import text_of
from tests.streams import Events, end_of, lasted

TYPES = "event A() event B() event C()\nsubscription S from a to b "
CONSTRUCTS = (
    "without",
    "absent",
    "list",
    "times",
    "mixed-whole",
    "run",
    "uncertain-without",
    "during",
)


def stages(engine: headwater.Engine) -> Iterator[Over]:
    """All stages over others, of all partitions."""
    for seat in engine._pipeline.matcher._seats.values():
        if isinstance(seat.agent, StagedAgent):
            partitions = seat.agent._partitions.values()  # some wait, or do without stages
            left: list[Any] = [getattr(one, "root", None) for one in partitions]
            while left:
                stage = left.pop()
                if isinstance(stage, Over):
                    yield stage
                    left += [inbox.stage for inbox in stage.inboxes]


def starts_of(items: list[Any], above: int) -> list[int]:
    return [start for start in map(start_of, items) if start > above]


def floor(one: Any, above: int) -> int:
    """Look through all that is kept, each time anew."""
    if isinstance(one, Inbox):
        return min([floor(one.stage, above), *starts_of(one.items, above)])
    if not isinstance(one, Over) or isinstance(one, Awaiting):
        return int(one.view().floor(above))
    if one.watermark >= WATERMARK_END:
        return WATERMARK_END
    span_ms = None if one.span is None else one.span.likely_ms(one.site.durations)
    if span_ms is not None:
        above = max(above, min(one.watermark, one.hold()) - span_ms)
    kept = [start for items in one.bound() for start in starts_of(items, above)]
    least = min([*kept, *(floor(inbox, above) for inbox in one.feeding())])
    return least if span_ms is None else max(least, above + 1)


def clear_at(one: Any, above: int, until: int) -> int:
    """Look through all that is kept, each time anew."""
    if isinstance(one, Inbox):
        if any(start <= until for start in starts_of(one.items, above)):
            return WATERMARK_END
        return clear_at(one.stage, above, until)
    if not isinstance(one, Over) or isinstance(one, Awaiting):
        return int(one.view().clear_at(above, until))
    if one.watermark >= WATERMARK_END:
        return one.watermark
    clear = max([clear_at(inbox, above, until) for inbox in one.feeding()])
    kept = [start for items in one.bound() for start in starts_of(items, above) if start <= until]
    span_ms = None if one.span is None else one.span.likely_ms(one.site.durations)
    if span_ms is None:
        return WATERMARK_END if kept else clear
    if kept:
        past = max(kept) + span_ms
        clear = max(clear, past) if past <= one.hold() else WATERMARK_END
    return min(clear, until + span_ms) if until + span_ms <= one.hold() else clear


def compare(one: Over | Inbox, times: list[int]) -> int:
    view = one.view()
    for above in (WATERMARK_NONE, *times):
        assert view.floor(above) == floor(one, above)
        for until in times:
            assert view.clear_at(above, until) == clear_at(one, above, until)
    return len(times)


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_a_view_answers_as_what_it_is_of(construct: str) -> None:
    asked = 0
    for seed, context in enumerate(CONTEXTS_WHOLE):
        spec, events = random_case(seed, construct, context)
        if not events:
            continue
        engine = headwater.Engine(text_of(spec), longest_ms=max(map(lasted, events)))
        ends = sorted({end_of(one) for one in events})
        draw = random.Random(seed)
        for event in sorted(events, key=end_of):
            engine.push([event])
            near = [end_of(event) + ms for ms in (-5_000, -1_000, -1, 0, 1, 3_000)]
            times = sorted({*draw.sample(ends, min(4, len(ends))), *near})
            for stage in stages(engine):
                asked += compare(stage, times)
                asked += sum(compare(inbox, times) for inbox in stage.inboxes)
    assert asked > 100


def ran(detect: str, count: int) -> int:
    """How much Python calls with the last of so many events, all of which are kept."""
    engine = headwater.Engine(TYPES + detect, longest_ms=0)
    events: Events = [
        {"type": "AB"[at % 2], "id": f"{at}", "timestamp": at * 50_000 // count}
        for at in range(count)
    ]
    for event in events[:-1]:
        engine.push([event])
    return calls_of(lambda: engine.push(events[-1:]))


def test_what_is_open_and_what_is_kept_do_not_multiply() -> None:
    detect = "detect A without[60 s] (B then C within 60 s)"
    few, many = ran(detect, 50), ran(detect, 200)
    assert many < 5 * few
