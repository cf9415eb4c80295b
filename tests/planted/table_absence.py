"""Faults in who is away, for how long, what a result may lack, and what is taken of others.

Owns the table for absences. Must not know how faults are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

WAITS = (
    "tests/broker/network/replication/test_waiting_clocks.py",
    "tests/simulation/absence/test_waits.py",
)

TABLE = [
    *part(
        "broker/network/replication/waiting_clocks.py",
        r"""
wait-goes-back: a clock forgets how far it was when a broker comes back
- return max(self._reached(name, now, looking=True)[0], self.passed(name))
+ return self._reached(name, now, looking=True)[0]

own-sources-forgotten: where brokers are passed over nobody waits for the sources here
- least = present if own is None else [*present, own]
+ least = present or [max(away.values())]

nothing-lacking: a result tells nobody that it lacks something
- return {"partial": True, "without": sorted(lacking)} if lacking else {}
+ return {}
""",
        tests=WAITS,
    ),
    *part(
        "broker/network/replication/absence.py",
        r"""
gap-closed-too-early: what was passed over is known only while somebody is away
- if gap.after < end and gap.upto >= begin
+ if gap.after < end and gap.origin in self.by_origin

passed-over-at-once: who is away is passed over before the time to wait is over
- if now - absence.since >= wait_ms
+ if wait_ms

absences-forgotten: a home that recovers waits once more for who is away
- self.by_origin = {name: OriginAbsence(since, by) for name, since, by in state["away"]}
+ self.by_origin = {}
""",
        tests=WAITS,
    ),
    *part(
        "broker/network/replication/absence_watch.py",
        r"""
alarm-before-its-time: a broker that keeps its promise is reported as overdue
- "overdue": absence.back_by <= now,
+ "overdue": True,

back-before-it-answers: a broker counts as back before its events are here
- news += [] if origin in asked else self.find(origin)
+ news += self.find(origin)
""",
        tests=WAITS,
    ),
    *part(
        "broker/engine/runtime/seats.py",
        r"""
late-for-nobody: what a subscription has passed over changes windows that are told
- is None or event.end > passed(clock)
+ is None or event.end > 0
""",
        tests=WAITS,
    ),
    *part(
        "language/taskgraph.py",
        r"""
waits-share-definitions: who waits for a time shares windows with who waits for all
- if wait_ms is not None and isinstance(item, tree.Definition):
+ if wait_ms is not None and isinstance(item, tree.Subscription):
""",
        tests=("tests/language/test_task_graph.py", *WAITS),
    ),
    *part(
        "broker/network/host/upstream.py",
        r"""
events-of-any-number: events that are more or fewer than their positions are taken
- return rows if len(rows) == len(one.positions) else None
+ return rows

gap-not-lost: what an origin has not any more is not counted as lost
- lost = one.after - self.position
+ lost = 0

unread-and-begun: a life begins with an answer that cannot be read
- rows = events_of(one, events)
-         if rows is None:
+ if one.whole:
+             self.begin(one.life, one.after)
+         rows = events_of(one, events)
+         if rows is None:
""",
        tests=("tests/broker/network/host/test_upstream.py",),
    ),
    *part(
        "broker/network/host/upstream.py",
        r"""
taken-unsaid: who asks again is offered again what has come behind what was kept back
- positions = sorted(self.beyond)[:GAPS_MAX]
+ positions = sorted(self.beyond)[:0]

taken-out-of-order: what has come is named in the order in which it came
- positions = sorted(self.beyond)[:GAPS_MAX]
+ positions = list(self.beyond)[:GAPS_MAX]
""",
        tests=("tests/broker/network/host/test_upstream.py",),
    ),
    *part(
        "broker/network/frames/frames.py",
        r"""
taken-in-any-life: events of a new life are not offered where a host had others there before
- if self.life != life:
+ if not self.life:
""",
        tests=("tests/broker/network/host/test_upstream.py",),
    ),
    *part(
        "broker/network/origin/offers.py",
        r"""
taken-offered: an answer holds what the host has said that it has
- if row[0] not in taken and wanted(row[1]):
+ if wanted(row[1]):
""",
        tests=("tests/broker/core/network/test_parts.py",),
    ),
]
