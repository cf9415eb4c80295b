"""Faults in windows: which events fall into them, what is kept, merged and let go.

Owns the table for windowed definitions. Must not know how faults are run. Invariant: as for
fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import CORE, EVERYTHING, part

GRID = part(
    "broker/engine/window/assigners.py",
    r"""
closes-one-late: a window closes a moment after its last instant
- (self.reach is None)) * self.every) - 1
+ (self.reach is None)) * self.every)

pane-edge: an event at a window's beginning falls into the pane before it
- (offset >= self.cut)
+ (offset > self.cut)

last-window-lost: the second pane of a T is missing in its last window
- period + whole + second
+ period + whole
""",
    tests=EVERYTHING,
)

OUTCOME = part(
    "broker/engine/window/emit.py",
    r"""
always-a-span: a window's event reaches over its events, as that of a session
- spans = window is not None and window.runs
+ spans = True

outside-is-kept: what is assigned outside of the window is told of
- event.start < opens or event.end >= closes
+ event.end >= 2 * closes

ids-of-each-other: events of windows that close together get each other's ids
- messages = [message for _, message in unnamed]
+ messages = [message for _, message in reversed(unnamed)]

unsure-at-its-edge: what only its window says is as uncertain as its events
- if says_events(item.value, before)
+ if item.value
""",
    tests=EVERYTHING,
)

PANES = part(
    "broker/engine/window/panes.py",
    r"""
counted-twice-by-panes: what was taken in is taken in again
- pane.pending[leaf] = {}
+ pass

pane-kept: a pane goes on after its last window
- [1] <= window:
+ [1] < window:

older-not-due: a pane before all others does not change what is due
- if self._ascending[0] == number:
+ if len(self._ascending) == 1:

in-order-as-it-begins: a batch is taken for ordered that begins after what is pending
- self._newest[leaf] <= ends[0] and ends == sorted(ends)
+ self._newest[leaf] <= ends[0]

in-order-by-itself: a batch in order is taken for ordered behind what is pending
- self._newest[leaf] <= ends[0] and ends == sorted(ends)
+ ends == sorted(ends)

runs-are-not-counted: of a run that comes too late one event is counted
- self.pass_over(number, stop - begin)
+ self.pass_over(number)

limit-one-more: one group more than allowed is opened
- if self._open >= self._limits.groups_max:
-                 self.drops[GROUPS_OVERFLOW] += events_count
+ if self._open > self._limits.groups_max:
+                 self.drops[GROUPS_OVERFLOW] += events_count

restored-open: after a restore panes that are kept do not count
- self._open = sum([len(pane.groups) for pane in panes]) + len(self._apart)
+ self._open = len(self._apart)
""",
    tests=EVERYTHING,
)

DAYS = part(
    "broker/engine/window/assigners.py",
    r"""
days-of-24-hours: a day ends 24 hours after it began
- return pane, self.begins_at(pane), self.begins_at(pane + 1)
+ return pane, self.begins_at(pane), self.begins_at(pane) + DAY_MS

midnight-in-the-day-before: the instant of midnight belongs to the day that ends
- while self.start(day + 1) <= time_ms:
+ while self.start(day + 1) < time_ms:
""",
    tests=CORE,
)

WAIT = part(
    "broker/engine/window/buffer.py",
    r"""
stray-after-the-line: events that came out of order are taken after the others
- ready.sort(key=_end_of)
+ pass

ties-as-they-came: events of one end are taken as they came
- ready.sort(key=_order_of)
+ pass

leaf-once: an event of two operands comes to the first alone
- if leaf not in leaves:
+ if not leaves:
""",
    tests=CORE,
)

SLIDE = part(
    "broker/engine/window/ranges.py",
    r"""
far-edge-left-out: an event exactly R before the newest is let go
- self._come(entry, end - self._range_ms)
+ self._come(entry, end - self._range_ms + 1)

swept-otherwise: windows that were looked at at other times never become one
- self._groups = dict(rows)  # each is reported by itself
+ pass

swept-too-far: a silent group loses what the next event may reach back to
- self._leave(watermark + 1 - self._range_ms)
+ self._leave(watermark + 2 - self._range_ms)

not-inside-again: events inside are not counted after a restore
- group.add(entry, self._adds)
-                 self._inside += 1
+ group.add(entry, self._adds)
+                 self._inside += 0

step-skipped: of windows that move by ticks one is left out
- self._at = self._at + 1 if groups else None
+ self._at = self._at + 2 if groups else None
""",
    tests=CORE,
)

GROUP = part(
    "broker/engine/window/ranges.py",
    r"""
alike-goes-for-good: when what counted has gone, none of its kind counts
- if alike:
-                     self._count(leaf, alike[0], adds)
+ if alike:
+                     pass

newest-counts: of events with equal keys the newest counts
- self._count(leaf, alike[0], adds)
+ self._count(leaf, alike[-1], adds)

null-is-alike: events without a key are one of a kind
- if key is None:
-                 self._count(leaf, event, adds)
+ if key_of is None:
+                 self._count(leaf, event, adds)
""",
    tests=CORE,
)

RUNS = part(
    "broker/engine/window/sessions.py",
    r"""
gap-excluded: an event exactly G after a session's end opens the next
- event.start - run.end <= self._gap_ms
+ event.start - run.end < self._gap_ms

max-from-its-end: M is measured from the session's end
- event.end - run.start <= self._join_max_ms
+ event.end - run.end <= self._join_max_ms

start-stays: an event that began before its session leaves the session's beginning
- run.start = event.start
-                 self._limit(run)
+ self._limit(run)

first-stays-first: a session to which an event came is still taken to end before all others
- self._by_end.move_to_end(key)
+ pass

never-too-long: a session that has its greatest length is closed by its gap alone
- heappush(limits, (run.start + self._trigger.max_ms, run.number))
+ pass

closes-too-early: a session closes though a long event may still join
- self._gap_ms + longest_ms
+ self._gap_ms

seen-forgotten: `distinct` in a run forgets what a snapshot held
- run.seen = [{key_of(plain) for plain in keys} for keys in seen]
+ run.seen = [set() for keys in seen]
""",
    tests=CORE,
)

IDS = part(
    "broker/engine/window/constituents.py",
    r"""
first-id-alone: of a window's constituents the first alone is listed
- self.in_order())), IDS_MAX)
+ self.in_order())), 1)

first-as-it-came: the first id of a window is that of the event that came first
- return events[ends.index(least)]
+ return events[0]

first-of-those-that-tie: of events that end first the one that came first counts
- return min(tied, key=_order)
+ return tied[0]

oldest-member-left-out: the oldest event inside is none of those that are told
- self._gone : self._gone + IDS_MAX]
+ self._gone + 1 : self._gone + IDS_MAX]
""",
    tests=CORE,
)

MERGE = part(
    "broker/engine/window/panes.py",
    r"""
oldest-goes-too: the oldest pane of a window goes
- self._panes[self._first][0] < first:
+ self._panes[self._first][0] <= first:

newer-kept: the newer panes count twice
- self._newer, {}
+ self._newer, self._newer

ahead-alone: a pane is not merged with those that follow it
- _together(groups, self._mergers.get(self._ahead + 1, {}))
+ groups

left-without-middle: the older half is not merged with the newer
- _together(self._mergers[self._left], self._middle)
+ self._mergers[self._left]
""",
    tests=EVERYTHING,
)

AGGREGATES = part(
    "broker/engine/window/aggregates.py",
    r"""
unsorted-bag: values that came later are not sorted in
- values.sort()
+ pass

tally-of-others: a merged count leaves out its own
- made.n = self.n + sum(
+ made.n = sum(
""",
    tests=EVERYTHING,
)

MOVING = part(
    "broker/engine/window/aggregates.py",
    r"""
ranks-of-before: ranks are those before the last change
- self.count -= 1
-         self._upto = None
+ self.count -= 1

block-end-forgotten: a block's last value stays as it was
- insort(block, value)
-         self.lasts[at] = block[-1]
+ insort(block, value)

least-of-equals: with one of two least values the other goes
- kept[-1] > value:
+ kept[-1] >= value:

last-is-the-newest: Last is the value that came last, not the last in order
- place = bisect_left(events, event.order, key=_order)
+ place = len(events)
""",
    tests=EVERYTHING,
)

EXACT = part(
    "broker/engine/window/exact.py",
    r"""
rank-of-n: quantiles go by n and not by n - 1
- (count - 1) * over
+ count * over

loose-not-told: what is loose is not in the mean
- self.settle()
-         return ratio(self.total, self.unit * self.n) if self.n else None
+ return ratio(self.total, self.unit * self.n) if self.n else None

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

PARTIALS = part(
    "broker/engine/window/partials.py",
    r"""
bound-too-near: a pane forgets events that tie with the last it keeps
- if low > self.bound:
+ if low >= self.bound:

begins-with-the-first: a run of events begins where the first of them does
- start = min(map(_start, events))
+ start = events[0].start

as-sure-as-the-last: a run of events is as uncertain as the last of them
- *map(_uncertainty, events))
+ events[-1].uncertainty)

instants-of-the-first: events are taken for points in time as the first of them is
- if len(events) == 1:
+ if events:
""",
    tests=EVERYTHING,
)

SHAPE = part(
    "broker/engine/window/code.py",
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
    "broker/engine/window/code.py",
    r"""
first-end-of-a-window: a window's event happens when the window has ended, and not in it
- uncertainty = closes - 1, closes - 1, 0
+ uncertainty = closes, closes, 0

pending-of-the-pane-before: events go into the pane of those before them
- "if not low <= end < high:",
+ "if not high:",

null-key-is-a-group: events without a key make a group
- lines.append(f"if {part} is None: continue")
+ lines.append(f"if {part} is None: pass")

span-begins-at-end: `start` is the end in a window's assignments
- "start": "start", "end": "end"}
+ "start": "end", "end": "end"}
""",
    tests=EVERYTHING,
)

TICK = part(
    "broker/engine/window/agent.py",
    r"""
tick-after-next: what ends just before a tick waits for the next
- instant = max(end, self._watermark + 1)
+ instant = max(end + 1, self._watermark + 1)

tick-promises-too-much: what waits for a tick is not counted on
- return min([out, *(end - 1 for end in self._least.values())])
+ return out
""",
    tests=CORE,
)

TABLE = [
    *(*GRID, *OUTCOME, *PANES, *DAYS, *WAIT, *SLIDE, *GROUP, *RUNS, *IDS, *TICK),
    *(*MERGE, *PARTIALS, *AGGREGATES, *MOVING, *EXACT, *SHAPE, *CODE),
]
