"""Faults in what a plan costs, and in the moves, trees and searches that find one.

Owns the table for placement. Must not know how faults are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

FLOW = ("tests/planner/test_flow.py",)
STATE = ("tests/planner/test_search_state.py",)
SEARCH = ("tests/planner/test_search.py",)
BEST = ("tests/planner/test_search_best.py",)
PARTS = ("tests/planner/test_search_parts.py",)
TRAFFIC = ("tests/planner/test_search_traffic.py",)
READING = ("tests/planner/test_problem.py",)
TASKS = ("tests/planner/tasks/test_tasks.py", "tests/planner/tasks/test_rates.py")

TABLE = [
    *part(
        "planner/layout.py",
        """
planner-a-target-within-the-broker: a stream is sent to the broker that it comes from
-         ends.discard(source)
-         if ends or stream.name in routed:
+         if ends:

planner-a-partial-for-nothing: what a partial sends to its header is paid by nobody
-             if source != header or name in routed:
+             if name in routed:
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
-     if not 0 <= value <= most:
+     if not value <= most:
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
-         self.load[carried] = self.on[:, carried].sum(axis=0)
+         self.load[carried] *= 0.5
""",
        tests=STATE,
    ),
    *part(
        "planner/search/loaded.py",
        """
planner-a-trifle-carried: what has no rate takes room
-         self.real_rates: Vector = np.array(given, dtype=np.float64)
+         self.real_rates: Vector = self.all_rates
""",
        tests=BEST,
    ),
    *part(
        "planner/search/tabu.py",
        """
planner-one-gain-counted-twice: what two pieces gain adds up though it is the same gain
-         if self.exact and self.near[one, other] and np.isfinite(value):
+         if not self.exact and self.near[one, other] and np.isfinite(value):
""",
        tests=PARTS,
    ),
    *part(
        "planner/search/tabu.py",
        """
planner-overloads-for-nothing: to break a broker's limit costs nothing
-         score = change + self.price * self._pressure(hosts) if self.capped else change.copy()
+         score = change.copy()

planner-returns-at-once: a piece may go back to where it was before
-             self.until[place, self.state.hosts[piece]] = self.steps + tenure
+             self.until[place, self.state.hosts[piece]] = self.steps + tenure - tenure - 1
""",
        tests=PARTS,
    ),
    *part(
        "planner/search/mend.py",
        """
planner-mended-by-flow: what limits are broken by counts less than the flow
-             if found < least:
+             if found[1] < least[1]:
""",
        tests=PARTS,
    ),
    *part(
        "planner/search/untangle.py",
        """
planner-nobody-gives-way: none of the streams that are in the way is laid again
-     groups = [(), *((one,) for one in others[:ALONE_MAX]), *combinations(others[:PAIRED_MAX], 2)]
+     groups = [(), *((one,) for one in others[:0])]
""",
        tests=PARTS,
    ),
    *part(
        "planner/search/traffic.py",
        """
planner-missed-for-ever: a target that was not reached stays missed
-         self.lost -= self.missed[number]
+         self.lost -= 0

planner-egress-of-nobody: what a broker sends is not held against its limit
-             if after > out_room[node] or -1 - node in broken:
+             if -1 - node in broken:

planner-a-limit-broken-once: a limit that is broken more is not broken more
-             self.link_excess += now - price * over(before, limit)
+             self.link_excess += 0.0
""",
        tests=TRAFFIC,
    ),
    *part(
        "planner/search/attempts.py",
        '''
planner-relieved-at-any-price: a step that breaks limits more is kept where it is shorter
-         return self.excess + ROUNDING + SPARE * (1.0 + self.excess)
-
-     def kept(self, flow: float) -> bool:
-         """Whether the state is no worse than before, with that flow; else it is put back."""
-         excess, now = self.state.excess(), self.state.flow
-         if excess >= self.excess - ROUNDING and (
-             excess > self.excess + ROUNDING or now > flow or (now == flow and not self.sideways)
+         return float("inf")
+
+     def kept(self, flow: float) -> bool:
+         """Whether the state is no worse than before, with that flow; else it is put back."""
+         excess, now = self.state.excess(), self.state.flow
+         if excess >= self.excess - ROUNDING and (
+             now > flow or (now == flow and not self.sideways)
''',
        tests=TRAFFIC,
    ),
    *part(
        "experiments/cuts.py",
        """
planner-something-always-goes: something goes from a partial's places wherever the header is
-     return terms, -1.0
+     return terms, 0.0
""",
        tests=BEST,
    ),
    *part(
        "planner/program.py",
        """
planner-one-partial-too-many: a partial beside its header pays for a link
-                     program.cost[column] = float(aggregate.rate) * max(0, hops[node])
+                     program.cost[column] = float(aggregate.rate) * max(1, hops[node])

planner-the-first-partial-is-free: nothing is sent for the first key of an aggregate
-             for piece in aggregate.partials:
+             for piece in aggregate.partials[1:]:

planner-limits-of-links-by-count: streams fill a link by their number and not by their rates
-                     (used[number], self.rates[name])
+                     (used[number], 1.0)

planner-no-room-beside-the-sender: what a broker sends is wanted elsewhere alone
-             terms += [(sender[node], -rest)] if node in sender else []
+             terms += []

planner-egress-of-one-link: what a broker sends is bounded on one of its links
-         groups += [(self.outward[number], node.egress) for number, node in nodes]
+         groups += [(self.outward[number][:1], node.egress) for number, node in nodes]
""",
        tests=BEST,
    ),
    *part(
        "planner/tasks.py",
        """
planner-keys-of-one-origin: partial results are counted for all groups at each broker
-         partial_per_s = min(max(1, most), groups) / every_s if every_s else 1
+         partial_per_s = groups / every_s if every_s else 1

planner-home-alone: results are sent to the subscriber's home only
-         return tuple(dict.fromkeys((home, *listening)))
+         return (home,)

planner-work-without-bytes: work is told by events where it is not told at all
-         return bytes_per_s / BYTES_A_UNIT if estimate.work is None else per_s * estimate.work
+         return per_s / BYTES_A_UNIT if estimate.work is None else per_s * estimate.work

planner-the-rest-is-lost: of two inputs with one key, the first one's rate is told
-         together.per_s[key] = together.per_s.get(key, 0) + per_s
+         together.per_s[key] = together.per_s.get(key, per_s)
""",
        tests=TASKS,
    ),
]
