"""The first of rows that agree, against its definition and in whatever parts rows come."""

import random

from server.detection.course import WaitingEvents, waiting_of
from server.detection.firsts import KEY, Firsts


def row(number, end_ms, by):
    return {"id": f"r{number:03}", "start": end_ms - 5, "end": end_ms, KEY: by}


def expected(rows, within_ms):
    """Those of which no kept one with their key ended at most `within_ms` before, in order."""
    kept = []
    for one in sorted(rows, key=lambda row: (row["end"], row["start"], row["id"])):
        if not any(
            before[KEY] == one[KEY] and one["end"] - before["end"] <= within_ms for before in kept
        ):
            kept.append(one)
    return [one["id"] for one in kept]


def run(parts, within_ms):
    """What comes out of (rows, watermark) one after the other, with all state in bytes between."""
    state, held, found = None, None, []
    for rows, watermark_ms in parts:
        course, waiting = Firsts(within_ms).course(), waiting_of(held)
        waiting.events += rows
        changed, out = course.run(("1",), state, waiting, watermark_ms)
        state, held = changed or state, waiting.pack()
        assert all(one["end"] > watermark_ms for one in waiting.events)
        assert waiting.timer_ms == min((one["end"] for one in waiting.events), default=None)
        assert all(KEY not in one for one in out)
        found += [one["id"] for one in out]
    return found


def test_the_firsts_are_those_of_the_definition_however_rows_come():
    for seed in range(300):
        draw = random.Random(seed)
        rows = [row(n, draw.randrange(100), draw.choice("ab")) for n in range(draw.randrange(30))]
        within_ms = draw.choice((1, 5, 20, 200))
        parts, left = [], sorted(rows, key=lambda one: one["end"] + draw.randrange(20))
        while left:
            some, left = left[: (cut := draw.randrange(1, 12))], left[cut:]
            # What may still come ends after the watermark.
            parts.append((some, min((one["end"] for one in left), default=1000) - 1))
        assert run(parts, within_ms) == expected(rows, within_ms), seed


def test_a_row_that_the_watermark_has_passed_is_late_from_the_first_run_on():
    early, late = row(1, 10, "a"), row(2, 20, "b")
    assert run([([late], 5), ([early], 30)], 100) == ["r001", "r002"]
    assert run([([early], 30), ([late], 40)], 100) == ["r001"]


def test_what_is_past_is_forgotten():
    course, waiting = Firsts(10).course(), WaitingEvents()
    waiting.events = [row(n, n * 100, f"key {n}") for n in range(200)]
    state, found = course.run(("1",), None, waiting, 10**6)
    assert len(found) == 200
    assert len(state) < 60
