"""Faults in what time alone decides: who is due when, what is promised, how long events last.

Owns the table for due times and promises. Must not know how faults are run. Invariant: as for
fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

PROMISES = ("tests/broker/core/test_promises.py",)
TIMES = ("tests/test_time_alone.py", "tests/broker/core/test_outlasting.py")

TABLE = [
    *part(
        "broker/engine/runtime/seats.py",
        r"""
end-forgotten: what the end decides is not known of where somebody asked what is due
- seat.waits_for_end = False
+ pass
""",
        tests=TIMES,
    ),
    *part(
        "broker/engine/pattern/operators/gathered.py",
        r"""
list-due-at-its-end: a list between uncertain times is due before it can be full
- times.append(end_of(one) + self._plan.slack_ms)
+ times.append(end_of(one))
""",
        tests=TIMES,
    ),
    *part(
        "broker/engine/pattern/times/promises.py",
        r"""
eldest-too-old: an assigned time is waited for from the eldest event on, and never comes
- return by_held if span_ms is None else max(by_held, reported - span_ms)
+ return by_held

promise-too-far: an event may end where nothing was to come any more
- min(watermark - longest_ms, eldest - 1)
+ watermark - longest_ms
""",
        tests=TIMES,
    ),
    *part(
        "broker/engine/pattern/times/promises.py",
        r"""
end-for-a-beginning: where the end of an event is assigned its beginning is waited for
- types_ended(case, layout) if self._place == "an event" else frozenset()
+ frozenset()

beginning-for-an-end: where the beginning of an event is assigned its end is waited for
- 0 if self._place == "an event" else self._foresight
+ 0 if self._place != "end" else self._foresight
""",
        tests=PROMISES,
    ),
    *part(
        "broker/engine/pattern/times/durations.py",
        r"""
start-of-a-reading: a beginning is assigned, and events are promised to be readings
- self.inputs[event_type], sure=sure
+ self.inputs[event_type], sure=False

end-lasts: what is asked for its end alone is promised to last for the limit
- sure = self.sure and event_type in self.lasting
+ sure = self.sure

made-of-readings: what is detected is promised to be made of a reading
- sure=sure and alone
+ sure=False

made-of-what-lasts: what is detected of several is promised to be made of what lasts
- sure=sure and alone
+ sure=sure
""",
        tests=PROMISES,
    ),
    *part(
        "broker/engine/window/agent.py",
        r"""
window-of-readings: a window's event is promised not to begin before the window's readings
- Lasting(shape, duration_max_ms, sure)
+ lasting
""",
        tests=PROMISES,
    ),
    *part(
        "broker/engine/pattern/times/assigned.py",
        r"""
added-end-forgotten: an end that is put later makes an event no longer
- return total(span_ms, later_ms(case.assign))
+ return span_ms

window-of-post: what `post` makes of a window's event is taken for what `pre` assigns
- assigned = case.assign if node.post is None else node.post.assign
+ assigned = case.assign

range-of-both-ends: the event of a `range` is taken to leave out one of the range's ends
- return window.range_ms  # with both ends
+ return window.range_ms - 1
""",
        tests=TIMES,
    ),
    *part(
        "language/times.py",
        r"""
added-in-a-choice: what is added to one of the times that are chosen of makes an event no longer
- return max([int(choice.added_ms) for choice in choices_of(value)], default=0)
+ return 0 if isinstance(value, Call) else int(next(choices_of(value)).added_ms)
""",
        tests=TIMES,
    ),
    *part(
        "broker/engine/pattern/agent/staged_agent.py",
        r"""
group-gone-is-due: a group is due that went at the limit
- self._agenda.set(key, None)
+ pass

group-gone-holds: a group that went at the limit holds what comes back
- self._open_times.drop(key)
+ pass
""",
        tests=("tests/broker/core/test_group_limits.py",),
    ),
    *part(
        "broker/engine/runtime/matcher.py",
        r"""
definition-stays: what is known of a definition stays when it runs no more
- self._agents.makes_no_more(instance.task)
+ pass
""",
        tests=("tests/broker/core/test_removal.py",),
    ),
    *part(
        "broker/engine/runtime/instances.py",
        r"""
change-stays: that a content has others who want it is told when there are none
-                 self.routes[content] = others
-             self.direct.changed(content)
+                 self.routes[content] = others
""",
        tests=("tests/broker/core/test_removal.py",),
    ),
    *part(
        "broker/engine/runtime/matcher.py",
        r"""
makers-of-before: agents that weigh times from the middle of a batch on are not asked for its rest
-                 self.doubt()
-                 self._wiring.direct.settle()
+                 self.doubt()
""",
        tests=("tests/broker/core/test_uncertain_reach.py",),
    ),
    *part(
        "broker/engine/pattern/operators/course.py",
        r"""
anchor-never-late: a run waits for an anchor that can come no more
- starts.append(((element,), min(map(start_of, filled.values())) + self.longer(0)))
+ continue
""",
        tests=TIMES,
    ),
    *part(
        "broker/driver/runner.py",
        r"""
jump-believed: a wall clock that jumps is believed at once, and may jump back
- if steady - self._jumped[1] < self._wait_s:
+ if steady < self._jumped[1]:

jump-in-time: time goes by the wall clock, so that a jump makes sources silent
- return int((self._steady() + self._begin_s) * 1000)
+ return int(self._wall() * 1000)
""",
        tests=("tests/broker/test_process_wiring.py",),
    ),
    *part(
        "broker/core/intake.py",
        r"""
stamped-by-the-steady-clock: a reading without a time has the time of a clock that nobody sets right
- return now + self._ahead_ms
+ return now
""",
        tests=("tests/broker/clock",),
    ),
]
