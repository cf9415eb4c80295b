"""Faults in what a plan costs, and in the moves, trees and searches that find one.

Owns the table for placement. Must not know how faults are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

FLOW = ("tests/planner/test_flow.py",)
EVALUATOR = ("tests/planner/search/test_evaluator.py",)
MOVES = ("tests/planner/search/test_joint_moves.py",)
TABU = ("tests/planner/search/test_tabu.py",)
BRANCHING = ("tests/planner/test_branching.py",)
SEARCH = ("tests/planner/test_search.py",)
BEST = ("tests/planner/test_search_best.py",)
READING = ("tests/planner/test_problem.py",)
TASKS = ("tests/headwater/placement/test_tasks.py", "tests/headwater/placement/test_rates.py")

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
        "planner/document.py",
        """
planner-linked-twice: two links between the same brokers are taken
-         if ends in seen:
+         if ends in seen and link.capacity:

planner-below-zero: a rate below zero is taken
-     if not 0 <= value <= number_max:
+     if not value <= number_max:
""",
        tests=READING,
    ),
    *part(
        "planner/search/evaluator.py",
        """
planner-partials-counted-again: a partial that is there already is paid for again
-         return topology.back.without(topology.back.lanes(header), others)
+         return topology.back.without(topology.back.lanes(header), [])

planner-missed-for-ever: a target that was not reached stays missed
-         self.lost -= laid.missed
+         self.lost -= 0

planner-undone-without-its-trees: what is undone leaves the trees of the change
-             self._add(number, stream)
+             self._add(number, UNLAID._replace(links=stream.links, missed=stream.missed))
""",
        tests=EVALUATOR,
    ),
    *part(
        "planner/search/loads.py",
        """
planner-work-stays: work is not taken from the broker that a piece leaves
-         load = 0.0 if idle else self.loads[number] + cost
+         load = 0.0 if idle else self.loads[number] + max(0.0, cost)

planner-load-left-behind: what is taken up still counts as carried
-             load = loads[number] - rate * count
+             load = loads[number] - rate

planner-taken-by-who-left: a stream still counts among those that take a limit
-             users[number].pop(stream, None)
+             users[number].get(stream)
""",
        tests=EVALUATOR,
    ),
    *part(
        "planner/search/topology.py",
        """
planner-one-end-forgotten: where a stream begins, one of its ends costs nothing
-         return self._joining(self.back, ends[0], ends[1:], ends)
+         return self._joining(self.back, ends[0], ends[2:], ends)

planner-splits-too-few: trees of several ends part in too few ways
-         for mask in range(1, 1 << len(others))
+         for mask in range(1, len(others))
""",
        tests=EVALUATOR,
    ),
    *part(
        "planner/search/trees.py",
        """
planner-egress-of-nobody: what a broker sends is not held against its limit on the way
-             if (after := load[sends] + rate) > room[sends]:
-                 if not over:
-                     continue
+             if (after := load[sends] + rate) > room[sends]:
+                 if not over:
+                     after = 0.0

planner-a-full-link-for-nothing: to go over a link without room costs a hop
-                     on += TOLL * (1.0 + beyond(after, limits[link]) * prices[link])
+                     on += 0.0
""",
        tests=BRANCHING,
    ),
    *part(
        "planner/search/tabu.py",
        """
planner-overloads-for-nothing: to break a broker's limit costs nothing
-                     score += penalty * loads.pressure(host, cost)
+                     score += 0.0

planner-returns-at-once: a piece may go back to where it was before
-             self._until[piece, evaluator.hosts[piece]] = self.steps + tenure
+             self._until[piece, evaluator.hosts[piece]] = self.steps - 1
""",
        tests=TABU,
    ),
    *part(
        "planner/search/moves/ejection.py",
        """
planner-no-room-where-a-piece-leaves: what makes way does not count the room that is left for it
- loads.fits(goal, costs[other] - costs[piece] * (goal == origin))
+ loads.fits(goal, costs[other])

planner-the-dearest-makes-way: of what may leave a full broker, what it costs most goes
-         for _, dearer, other, goal in sorted(options):
+         for _, dearer, other, goal in sorted(options, reverse=True):
""",
        tests=MOVES,
    ),
    *part(
        "planner/search/moves/kinds.py",
        """
planner-together-without-its-hops: only what is next to a piece goes with it
-         for each in group:  # grows while it is walked
+         for each in group[:1]:
""",
        tests=MOVES,
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
planner-one-partial-too-many: what is beside what it is sent to pays for a link
-             self.program.cost[column] += float(rate) * hops
+             self.program.cost[column] += float(rate) * max(1, hops)

planner-the-first-partial-is-free: nothing is sent for the first key of an aggregate
-             for piece in aggregate.partials:
+             for piece in aggregate.partials[1:]:

planner-limits-of-links-by-count: streams fill a link by their number and not by their rates
-                     (used[number], self.rates[name])
+                     (used[number], 1.0)

planner-egress-of-one-link: what a broker sends is bounded on one of its links
-         groups += [(self.outward[number], node.egress) for number, node in nodes]
+         groups += [(self.outward[number][:1], node.egress) for number, node in nodes]
""",
        tests=BEST,
    ),
    *part(
        "experiments/crowding.py",
        """
planner-no-room-beside-the-sender: what a broker sends is wanted elsewhere alone
-         terms += [(sender[node], rest)] if node in sender else []
+         terms += []
""",
        tests=("tests/experiments/test_program_rows.py",),
    ),
    *part(
        "headwater/placement/task_rates.py",
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
