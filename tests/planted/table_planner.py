"""Faults in what a plan costs, and in the moves, trees and searches that find one.

Owns the table for placement. Must not know how faults are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

FLOW = ("tests/planner/test_flow.py",)
STATE = ("tests/planner/test_search_state.py",)
SEARCH = ("tests/planner/test_search.py",)
READING = ("tests/planner/test_problem.py",)

TABLE = [
    *part(
        "planner/layout.py",
        """
planner-a-target-within-the-broker: a stream is sent to the broker that it comes from
-         ends.discard(source)
-         if ends:
+         if ends:

planner-a-partial-beside-its-header: a partial at the header's broker pays for a link
- for piece in aggregate.partials} - {header}):
+ for piece in aggregate.partials}):
""",
        tests=FLOW,
    ),
    *part(
        "planner/network.py",
        """
planner-last-of-the-nearer: the canonical parent is another neighbour than the first
- next((o for o in ends if
+ next((o for o in reversed(ends) if
""",
        tests=FLOW,
    ),
    *part(
        "planner/flow.py",
        """
planner-a-limit-that-is-met: a load as large as its limit breaks it
-     if load <= limit * (1 + ROOM_RELATIVE):
+     if load < limit * (1 + ROOM_RELATIVE) and load != limit:

planner-ways-that-fork: of a route's links out of one broker, only the first is followed
-         for other in onward.get(node, ()):
+         for other in onward.get(node, ())[:1]:

planner-egress-unseen: what a broker sends is not held against its limit
- judged.append(("egress", node.id, total(sent.get(number, ())), node.egress, "sends"))
+ judged.append(("egress", node.id, 0, node.egress, "sends"))
""",
        tests=FLOW,
    ),
    *part(
        "planner/reading.py",
        """
planner-linked-twice: two links between the same brokers are taken
-         if ends in seen:
+         if ends in seen and link.capacity:

planner-below-zero: a rate below zero is taken
-     if math.isnan(value) or not 0 <= value <= NUMBER_MAX:
+     if math.isnan(value) or not value <= NUMBER_MAX:
""",
        tests=READING,
    ),
    *part(
        "planner/search/state.py",
        """
planner-partials-counted-again: a partial that is there already is paid for again
-         found[stay] = 0.0  # there is a partial already
+         found[stay[:0]] = 0.0

planner-work-stays: work is not taken from the broker that a piece leaves
-             self.work[self.hosts[piece]] -= cost
+             self.work[self.hosts[piece]] -= 0.0
""",
        tests=STATE,
    ),
    *part(
        "planner/search/metric.py",
        """
planner-splits-too-few: trees of several ends part in too few ways
-     for mask in range(1, 1 << len(rest)):
+     for mask in range(1, len(rest) + 1):
""",
        tests=STATE,
    ),
    *part(
        "planner/search/loaded.py",
        """
planner-load-left-behind: what is taken up still counts as carried
-         self.load -= self.on[number]
+         self.load -= self.on[number] * 0.5
""",
        tests=STATE,
    ),
]
