"""Faults in what time alone decides: who is due when, what is promised, how long events last.

Owns the table for due times and promises. Must not know how faults are run. Invariant: as for
fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

TIMES = ("tests/test_time_alone.py", "tests/broker/core/test_outlasting.py")

TABLE = [
    *part(
        "broker/core/seats.py",
        r"""
end-forgotten: what the end decides is not known of where somebody asked what is due
- seat.waits_for_end = False
+ pass
""",
        tests=TIMES,
    ),
    *part(
        "broker/core/stages/gathered.py",
        r"""
list-due-at-its-end: a list between uncertain times is due before it can be full
- times.append(end_of(one) + self._plan.slack_ms)
+ times.append(end_of(one))
""",
        tests=TIMES,
    ),
    *part(
        "broker/core/promises.py",
        r"""
eldest-too-old: an assigned time is waited for from the eldest event on, and never comes
- return by_held if span_ms is None else max(by_held, reported - span_ms)
+ return by_held

promise-too-far: an event may end where nothing was to come any more
- min(watermark - self._foresight.longest_of_all_ms(), eldest - 1)
+ watermark - self._foresight.longest_of_all_ms()
""",
        tests=TIMES,
    ),
    *part(
        "broker/core/outlasting.py",
        r"""
added-end-forgotten: an end that is put later makes an event no longer
- span_ms + _later_ms(assigned)
+ span_ms

window-starts-with-it: what began before its window does not make the window's event longer
- return window.every_ms + longest_ms
+ return window.every_ms
""",
        tests=TIMES,
    ),
    *part(
        "broker/core/stages/ends.py",
        r"""
anchor-never-late: a run waits for an anchor that can come no more
- yield (element,), start + longer(plan, 0)
+ yield from ()
""",
        tests=TIMES,
    ),
]
