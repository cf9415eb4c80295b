"""Faults in what goes on under a changed text.

Owns the table. Must not know how faults are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

CHANGED = (
    "tests/broker/core/test_succession.py",
    "tests/broker/core/test_operand_states.py",
    "tests/broker/core/test_preview.py",
)

TASKS = part(
    "broker/engine/runtime/succession.py",
    r"""
change-takes-all: what users hold goes on though it was detected otherwise
- if _assigns_alike(before, task):
+ if True:

change-forgets-places: a place that is assigned now counts as an attribute more
- return same and not any(item.name in COMMON for item in added)
+ return same

change-combines-nulls: what `post` combines goes on without what was not kept
- return node.post is None and len(lacking)
+ return len(lacking)

change-renames-nothing: what was detected before bears the old text's name
- [[classes.get(name, name), fields] for name, fields in state.get("events", ())]
+ [[name, fields] for name, fields in state.get("events", ())]
""",
    tests=CHANGED,
)

PARTS = part(
    "broker/engine/pattern/agent/operand_states.py",
    r"""
change-holds-too-long: a side goes on of which too little was kept
- return _within(end_ms, end_before_ms) and _within(start_ms, start_before_ms)
+ return True

change-holds-nothing: of an operand that is the same nothing is held for another
- stores.append(states[id(earlier)][1][side] if held else [])
+ stores.append([])

change-takes-others: an operand goes on from one that asks something else
- for each in fields(operand) if each.name not in PLACED
+ for each in fields(operand) if each.name not in (*PLACED, "conjuncts")
""",
    tests=CHANGED,
)

WINDOWS = part(
    "broker/engine/window/partials.py",
    r"""
change-counts-half: an aggregate more is made of the events since
- return [data[0], data[1], kept, *([lacking] if lacking else [])]
+ return [data[0], data[1], kept]

change-half-in-whole: what was asked for too late is not null in what is merged
- uncertainty, maybe, lacking = self.uncertainty, self.maybe, self.lacking
+ uncertainty, maybe, lacking = self.uncertainty, self.maybe, ()

change-half-on-disk: over a restart a null becomes half a value
- return [*plain, list(self.lacking)] if self.lacking else plain
+ return plain
""",
    tests=CHANGED,
)

DECLARED = part(
    "broker/engine/runtime/agents.py",
    r"""
types-by-the-first: what is held is packed with the attributes of the first text
- if before is None or not attributes.items() <= before.items():
+ if before is None:
""",
    tests=CHANGED,
)

RECORDS = part(
    "broker/core/recovery/durable_told.py",
    r"""
change-of-before-goes-on: a text that an earlier version replaced keeps what it did not keep then
- keeps_state: bool = False
+ keeps_state: bool = True

joined-of-before-apart: who came to a definition under an earlier version gets less than it got
- apart: bool = False  # of an earlier version, where who came later shared what ran
+ apart: bool = True

resumed-of-before-apart: what was resumed for all is resumed for one
- apart: bool = False  # of an earlier version, where a definition began anew for all
+ apart: bool = True
""",
    tests=(
        "tests/broker/core/test_durable.py",
        "tests/broker/core/test_records_of_sharing.py",
    ),
)

SHARED = (
    "tests/broker/core/test_shared_tasks.py",
    "tests/broker/engine/test_later_subscriptions.py",
)

LIKE = part(
    "broker/engine/runtime/likeness.py",
    r"""
shared-whatever-held: a definition is shared with what began before
- return _essence(earlier.state()) == _essence(later.state())
+ return True

shared-other-groups: what is held of groups is not compared
- if _group(earlier, key, classes) != _group(later, key, classes):
+ if False:

shared-otherwise-fed: instances are one that other instances feed
- if other in suspended or matcher.running[other].needs != instance.needs:
+ if other in suspended:

merged-unwired: who needs an instance that goes is fed by nobody
- matcher.rewire(name, needs)
+ pass
""",
    tests=SHARED,
)

INSTANCES = part(
    "broker/core/shared_tasks.py",
    r"""
instance-by-key: a restart wires instances by the keys of their tasks
- elif name != key or needs != instance.task.needs:
+ elif name != key:

instance-stays: nobody looks whether two hold the same
- elif beside.due <= now:
+ elif beside.due < 0:

instance-unmarked: who used an instance that went is not told of the other
- self._renamed(name, other)
+ pass

instances-uncounted: a definition that runs beside itself counts once
- if more and len(self._catalogue.definitions) + more > self._most:
+ if False:
""",
    tests=SHARED,
)

TABLE = [*TASKS, *PARTS, *WINDOWS, *DECLARED, *RECORDS, *LIKE, *INSTANCES]
