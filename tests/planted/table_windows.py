"""Faults in windows: which events fall into them, what is kept, merged and let go.

Owns the table for windowed definitions. Must not know how faults are run. Invariant: as for
fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import EVERYTHING, part

PANES = part(
    "broker/core/window_panes.py",
    r"""
closes-one-late: a window closes a moment after its last instant
- * self.every_ms - 1
+ * self.every_ms

pane-edge: an event at a window's beginning falls into the pane before it
- (rest >= {cut})
+ (rest > {cut})

last-window-lost: the second pane of a T is missing in its last window
- period + whole + second
+ period + whole

pane-kept: a pane goes on after its last window
- [1] <= window:
+ [1] < window:

limit-one-more: one group more than allowed is opened
- if self._open >= self._limits.groups_max
+ if self._open > self._limits.groups_max

restored-open: after a restore panes that are kept do not count
- self._open = len(partials)
+ self._open = 0
""",
    tests=EVERYTHING,
)

SLIDE = part(
    "broker/core/window_slide.py",
    r"""
far-edge-left-out: an event exactly R before the newest is let go
- inside[0][0].end < end:
+ inside[0][0].end <= end:

swept-too-far: a silent group loses what the next event may reach back to
- least = self._watermark + 1 - self._range_ms
+ least = self._watermark + 2 - self._range_ms

maybe-stays: a window stays uncertain when its uncertain event is gone
- self.maybes -= 1
+ self.maybes -= 0

not-held-again: events that wait are not counted after a restore
- self._waiting.setdefault(event.end, []).append((event, tuple(leaves)))
-             self._held += 1
+ self._waiting.setdefault(event.end, []).append((event, tuple(leaves)))
""",
    tests=EVERYTHING,
)

MERGE = part(
    "broker/core/window_merge.py",
    r"""
oldest-goes-too: the oldest pane of a window goes
- self._older[-1][0] < first:
+ self._older[-1][0] <= first:

running-kept: the panes of the younger stack count twice
- self._running = {}
-
-
- def _merge
+
+
+ def _merge

turned-with-old: panes that are over are turned with the others
- if pane >= first:
+ if pane >= first - 1:
""",
    tests=EVERYTHING,
)

AGGREGATES = part(
    "broker/core/aggregates.py",
    r"""
least-of-equals: with one of two least values the other goes
- candidates[-1] > value:
+ candidates[-1] >= value:

rank-of-n: quantiles go by n and not by n - 1
- (len(self.values) - 1) * over
+ len(self.values) * over

unsorted-bag: values that came later are not sorted in
- self.values += values
-         self.ascending = False
+ self.values += values

tally-of-others: a merged count leaves out its own
- made.n = self.n + sum(
+ made.n = sum(
""",
    tests=EVERYTHING,
)

EXACT = part(
    "broker/core/exact.py",
    r"""
squares-in-wrong-unit: merged squares are in another unit
- part.squares * factor * factor
+ part.squares * factor

rest-forgotten: what a rounded sum leaves is forgotten
- rest.append(-part)
+ break

root-rounded-twice: a square root forgets that something was cut off
- | cut, 1 << (shift + 1))
+ | 0, 1 << (shift + 1))

sample-deviation: the deviation is that of a sample
- self.n * self.unit)
+ (self.n - 1 or 1) * self.unit)
""",
    tests=EVERYTHING,
)

SHAPE = part(
    "broker/core/window_shape.py",
    r"""
any-operand-will-do: a group stands with an event of any operand
- all(counts[leaf] for leaf in self._asked)
+ any(counts[leaf] for leaf in self._asked)

all-outer-always: operands that may be missing are asked for
- if not operands[leaf].outer)
+ if operands[leaf].outer)
""",
    tests=EVERYTHING,
)

CODE = part(
    "broker/core/window_code.py",
    r"""
null-key-is-a-group: events without a key make a group
- lines.append(f"if {part} is None: continue")
+ lines.append(f"if {part} is None: pass")

span-begins-at-end: `start` is the end in a window's assignments
- "start": "start", "end": "end"}
+ "start": "end", "end": "end"}
""",
    tests=EVERYTHING,
)

TABLE = [*PANES, *SLIDE, *MERGE, *AGGREGATES, *EXACT, *SHAPE, *CODE]
