"""Faults in what bounds state and work: small stores, groups, the effort of a text, actors.

Owns the table for what is given up at a limit. Must not know how faults are run. Invariant: as for
fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

CHAIN = part(
    "broker/engine/pattern/agent/chain_store.py",
    r"""
chain-oldest-goes: what goes is not the newest of the oldest run but its first
- newest = self._run([start], self.groups[group])[-1]
+ newest = self._run([start], self.groups[group])[0]

chain-newest-run: the newest run is robbed and not the oldest
- start, group = self._starts[0]
+ start, group = self._starts[-1]

chain-uncounted: what is overwritten is not counted
- self._remove(group, newest)
-         self.overwritten += 1
+ self._remove(group, newest)

chain-one-too-many: one event more than there is room for is stored
- while self.size >= self._capacity:
+ while self.size > self._capacity:

chain-strays: what no run can use is stored
- if not self.reached(group, entry):
-             return
+ if entry.place < 0:
+             return

chain-never-ends: runs whose time has passed stay
- self._within_ms < now:
+ self._within_ms < now - 1_000_000:

chain-far: a link's bound is not looked at
- if link.high_ms is not None and gap_ms > link.high_ms:
+ if link.high_ms is not None and gap_ms > link.high_ms + 3:

chain-orphans: what led on from a run whose time has passed stays
- for group in ended:
-             self._prune(group)
+ for group in ended:
+             self.groups.get(group)

chain-not-yet: what came before the watermark to an agent without a store is taken as if in order
- if event.end > state["watermark"]:
+ if event.end > state["watermark"] + 1_000:

chain-early: of a batch what ends last is taken first
- for end, instant in groupby(entries, key=_end_of):
+ for end, instant in groupby(reversed(entries), key=_end_of):
""",
    tests=("tests/broker/core/test_chain_store.py",),
)

GROUPS = part(
    "broker/engine/pattern/agent/staged_agent.py",
    r"""
groups-without-end: no limit of groups holds for patterns that choose in turn
- self._drop(next(iter(self._partitions)))
+ break
""",
    tests=("tests/broker/core/test_group_limits.py",),
)

ACTORS = part(
    "broker/engine/ingest/actors.py",
    r"""
farther-actor: among actors the name decides before the hops
- one = (far, hops, actor)
+ one = (far, 0, actor)

gone-actor-known: who listens no more is chosen still
- actors.pop(name, None)
+ pass

stale-nearest: the nearest is not looked for anew
- self._nearest = None
-         return len(fresh[room:])
+ return len(fresh[room:])

actors-unlimited: there is always room for one actor more
- fresh[:room]
+ fresh[: room + 1]
""",
    tests=("tests/broker/core/test_actors.py",),
)

EFFORT = part(
    "broker/core/effort.py",
    r"""
wide-is-cheap: wide patterns cost no more than narrow ones
- places**2
+ places

attributes-are-free: declaring attributes costs nothing
- return attributes // PARTS + sum(
+ return sum(
""",
    tests=("tests/broker/core/test_effort.py",),
)

BUDGET = part(
    "broker/engine/runtime/budget.py",
    r"""
derived-brings-as-much: an event of a definition brings as many candidates as any other
- self.each = EACH_DERIVED if derived else EACH_EVENT
+ self.each = EACH_EVENT
""",
    tests=("tests/broker/engine/test_wild_generated.py",),
)

WINDOWS = part(
    "broker/engine/window/panes.py",
    r"""
merged-anew: behind a restart the panes of the last window are merged and charged once more
- self._merged_of(self._closed)
+ pass

merged-free: what windows merge is not charged
- budget.spend(price * len(merged))
+ pass

merged-panes-free: what comes to windows is not charged
- budget.spend(price * sum([len(groups) for _, groups in panes]))
+ pass
""",
    tests=("tests/broker/engine/test_wild_generated.py",),
)

ORDERS = part(
    "broker/engine/window/constituents.py",
    r"""
orders-free: to put a window's events in order by what they are made of is not charged
- self.budget.spend(int(one_costs * len(tied)))
+ pass

orders-all-alike: an event of a window costs no more than one that was sent
- PRIMITIVES if tied[0].primitive else DETECTED
+ PRIMITIVES
""",
    tests=("tests/broker/core/test_window_ids.py",),
)

OUTCOMES = part(
    "broker/engine/window/code.py",
    r"""
orders-of-nobody: what a window is made of is put in order for nothing
- "    ids.budget = budget"
+ "    pass"
""",
    tests=("tests/broker/engine/test_wild_generated.py",),
)

TABLE = (*CHAIN, *GROUPS, *ACTORS, *EFFORT, *BUDGET, *WINDOWS, *ORDERS, *OUTCOMES)
