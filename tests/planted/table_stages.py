"""Faults in stages: contexts, lists, repetitions, silence, what is left out and what is reported.

Owns the table for patterns that need more than joins. Must not know how faults are run. Invariant:
as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

STAGES = (
    "tests/test_engine_edges.py",
    "tests/test_engine_streams.py",
    "tests/test_engine.py",
)

CHAINS = (*STAGES, "tests/broker/engine/test_sequence.py")

BASE = part(
    "broker/engine/pattern/stage/base.py",
    r"""
inbox-unsorted: what was passed on out of order is taken so
- sort_in_order(self.items, tied=self._budget.tie)
+ pass

inbox-one-lost: the first that waits for a later watermark is lost
- self.items = items[count:]
+ self.items = items[count + 1 :]

inbox-limit-too-far: what a stage still holds back is not waited for
- min(watermark, self.stage.hold())
+ watermark

waiting-state-lost: after a restore what waited between stages is gone
- self.items, self.limit, beneath = state
+ _, self.limit, beneath = state
""",
    tests=STAGES,
    only="chronicle or first or list or without or nth or consuming or edges",
)

ASKED = part(
    "broker/engine/pattern/stage/asked.py",
    r"""
floor-without-kept: what is kept may begin before the floor
- if at < len(self._starts) and self._starts[at] < floor:
+ if at < len(self._starts) and self._starts[at] < above:
""",
    tests=STAGES,
    only="chronicle or first or list or without or nth or consuming or edges",
)

VIEWS = part(
    "broker/engine/pattern/stage/asked.py",
    r"""
view-forgets-the-last: what begins just then is not seen by who asks much
- at = bisect_right(self._starts, until) - 1
+ at = bisect_right(self._starts, until - 1) - 1

view-with-what-waits: what waits between stages is not seen by who asks much
- return min(floor, self._starts[at]) if at < len(self._starts) else floor
+ return floor
""",
    tests=("tests/broker/core/test_staged_views.py",),
)

JOINT = part(
    "broker/engine/pattern/operators/joint.py",
    r"""
next-touches: an event that begins as the left one ends stands between
- if event.start > low:
+ if event.start >= low:

next-to-the-end: an event that ends as the right one begins stands between
- at = bisect_left(self._site.named_ends, high)
+ at = 1 + bisect_left(self._site.named_ends, high)

nth-from-nought: the k-th is counted from 0
- self._site.budget.spend(looked)
-         return number
+ self._site.budget.spend(looked)
+         return number - 1

nth-forgotten: a right one that a later left one counts is gone
- oldest = min(oldest, floor)
+ oldest = max(oldest, floor)

instants-by-side: under `recent` the left ones of all instants go first
- runs.setdefault(end_of(item), ([], []))
+ runs.setdefault(end_of(items[0]), ([], []))
""",
    tests=STAGES,
    only="next or nth or times or list or without or edges",
)

CHRONICLE = part(
    "broker/engine/pattern/operators/chronicle.py",
    r"""
newest-partner: `chronicle` takes the newest candidate
- for at, other in enumerate(others):
+ for at, other in reversed(list(enumerate(others))):

spent-in-one-role: an event that is spent on one side is taken on the other
- items[:] = [item for item in items if not self._is_spent(item)]
+ items[:] = list(items)

spent-comes-again: an occurrence with a spent event is taken
- if self.spent and self._is_spent(item):
+ if side == RIGHT and self._is_spent(item):

starts-before-it-completes: an event on both sides is a candidate before it completes
- in_order(taken, -1, self.site.budget)
+ in_order(taken, 1, self.site.budget)

spent-forgotten: a snapshot forgets what is spent
- self.spent = {identity(member): member for member in facts[0]}
+ self.spent = {}

chronicle-expires-early: a candidate at the edge of the reach goes
- end_of(items[0]) < oldest:
-                 del items[: bisect_left(items, oldest, key=end_of)]
+ end_of(items[0]) <= oldest:
+                 del items[: bisect_left(items, oldest + 1, key=end_of)]
""",
    tests=CHAINS,
    only="chronicle or edges or operator",
)

COURSE = part(
    "broker/engine/pattern/operators/course.py",
    r"""
run-end-unspent: what ends as the run ends may begin the next
- any(member.end <= self._spent for
+ any(member.end < self._spent for

starts-before-it-advances: an event that fits two elements begins and does not advance
- in_order(taken, self._plan.sign, self.site.budget, course.is_spent)
+ in_order(taken, 1, self.site.budget, course.is_spent)

latest-is-first: under `latest` a newer event does not take the place of the last
- elif latest and element == step - 1:
+ elif latest and element == step - 2:

latest-unfit: under `latest` what does not fit takes the place of the last
- elif tests[element](before, item, group, further[element - 1]):
+ else:

latest-too-late: under `latest` what comes after the time replaces what was in time
- if plan.measures and self._is_late(step, item):
+ if False:

over-too-early: a run is dropped while its next element may still come
- if min([ahead(one).floor(WATERMARK_NONE) for one in elements]) > start:
+ if min([ahead(one).floor(WATERMARK_NONE) for one in elements]) >= start:

dropped-spends: a run that is dropped spends what it had
- del entries[: self._start + 1]
+ del entries[: self._at]

next-run-hidden: a dropped run's successor may end before what was promised
- return min(hold, end_of(item) - 1)
+ return hold

never-due: time alone drops no run
- return next_of(times, watermark)
+ return None

endless-in-time: a run whose time may be over lets go of what the next begins with
- asks = any(link.within_ms is not None or not asks_order_alone(link) for link in links)
+ asks = any(not asks_order_alone(link) for link in links)

run-forgotten: a snapshot forgets the run
- [filled, self._start, self._at] if filled else None
+ None

spent-mark-lost: a snapshot forgets up to where all is spent
- self._limit, self._spent, entries, run, rights = state
+ self._limit, _, entries, run, rights = state
""",
    tests=CHAINS,
    only="first or latest or edges or operator",
)

SEQUENCE = (
    part(
        "broker/engine/pattern/fused/sequence.py",
        r"""
sequence-over-early: a run is dropped while an event that lasts may still come
- longest_ms = self.foresight.longest_ms(leaf.event_type)
+ longest_ms = 0

sequence-starts-before-it-advances: an event that fits two elements begins and does not advance
- self.overtakes = sign < 0 and
+ self.overtakes = sign > 1 and

sequence-composite-spent: what a run has spent comes again in a later match of those beneath
- candidates = [each for each in candidates if not self._course.is_spent(each[1])]
+ pass

sequence-uncounted: `nth` in a run counts nothing
- self.counts = course is not None and course.asks
+ self.counts = False

sequence-pair-unordered: of left sides that end together the last made stands last
- self._put_in_order(pairs[link].items[LEFT])
+ pass

sequence-spent-unknown: an event that fills two positions is spent in one of them alone
- alone=not plan.shared)
+ alone=True)

sequence-pair-early: a candidate at the edge of the reach goes
- else watermark + 1 - keep
+ else watermark + 9 - keep
""",
        tests=CHAINS,
        only="operator or edges or limit",
    )
    + part(
        "broker/engine/pattern/fused/tree.py",
        r"""
tree-out-of-order: what is found beneath comes before the events that ended earlier
- merged = in_order(sides, plan.sign, plan.budget)
+ merged = [(side, item) for side, items in enumerate(sides) for item in items]

tree-beneath-waits: a run that waits for time stands beneath another operator
- if chain is None or (nested and not chain.timeless):
+ if chain is None:

tree-beneath-unsaved: a snapshot forgets what operators beneath hold
- self._top.beneath = dict(zip(operands_of, self._parts, strict=True))
+ self._top.beneath = {}
""",
        tests=CHAINS,
        only="other or operator or edges",
    )
    + part(
        "broker/engine/pattern/fused/members.py",
        r"""
sequence-member-early: a member goes that may still be in a list
- candidates.drop(oldest)
+ candidates.drop(oldest + 9)
""",
        tests=CHAINS,
        only="operator or edges or limit",
    )
    + part(
        "broker/engine/pattern/agent/staged_agent.py",
        r"""
sequence-expires-ahead: a restored group forgets by a time that it has not come to
- elif not without_stages:  # it forgets when it would have: what is held shows
-             self._note(key, partition)
+ elif not without_stages:
+             self._settle(key, partition)
""",
        tests=CHAINS,
        only="operator or edges or limit",
    )
)

JOINED = (
    part(
        "broker/engine/pattern/fused/fusion.py",
        r"""
latest-with-nth: an older candidate goes though the k-th after it may come
- or asks_further(joint)
+ or joint.next

asked-not-packed: a snapshot leaves out what `nth` and `without` look among
- items = [] if asked is None else asked.items
+ items: list[Any] = []

asked-too-soon-gone: a right one goes that a left one still counts
- asked.expire(min(oldest, others[0]) if others else oldest, watermark)
+ asked.expire(watermark, watermark)

next-of-composites: what shuts off an atom shuts off what began before
- alone = not operand.next or isinstance(operand.right, Leaf)
+ alone = True
""",
        tests=CHAINS,
        only="operator or joined or edges",
    )
    + part(
        "broker/engine/pattern/agent/staged_plan.py",
        r"""
named-left-out: an event that stands between two in a partition of one operator is not looked at
- site.name([event for place, event in entries if place >= places])
+ site.name([])
""",
        tests=CHAINS,
        only="operator or edges",
    )
    + part(
        "broker/engine/pattern/layout/prospects.py",
        r"""
without-never-completed: a p that something must not fall into completes nothing
- return [] if at is above.left else None
+ return None
""",
        tests=CHAINS,
        only="operator or edges",
    )
)

NEGATION = part(
    "broker/engine/pattern/operators/negation.py",
    r"""
without-begin-left-out: what begins with p does not count
- falls = start <= start_of(q) and
+ falls = start < start_of(q) and

without-end-left-out: what ends with p does not count
- end_of(q) <= end_of(p)
+ end_of(q) < end_of(p)

without-t-begin: what begins with p counts in `without[T]`
- falls = start < start_of(q) <= start
+ falls = start <= start_of(q) <= start

without-t-end: what begins exactly T later does not count
- start_of(q) <= start + plan.window_ms
+ start_of(q) < start + plan.window_ms

own-event-counts: an event of p itself counts against it
- if self._plan.shared and not strangers(p, q):
+ if self._plan.shared and strangers(p, q):

others-dropped: what may still fall into a later p is dropped
- dead = bisect_left(self._starts, oldest)
+ dead = bisect_right(self._starts, oldest)

others-near-cut: a q that begins with p is not looked at
- low = bisect_left(self._starts, start_of(p) - plan.slack_ms)
+ low = bisect_right(self._starts, start_of(p) - plan.slack_ms)

sifted-all: a p goes on whatever falls into it
- for p in lefts if not ((qs := near(p)) and verdict(p, qs))]
+ for p in lefts]

open-not-held: what is open is not held back from those above
- return min([self.inboxes[0].stage.hold(), *(end_of(p) - 1 for p in self._open)])
+ return self.inboxes[0].stage.hold()
""",
    tests=CHAINS,
    only="without or ending or edges",
)

REPEATS = part(
    "broker/engine/pattern/operators/repeats.py",
    r"""
touching-breaks: a P that begins as the last ends breaks the row
- return start_of(item) >= end_of(self._row[-1]) and
+ return start_of(item) > end_of(self._row[-1]) and

rows-disjoint: rows never share a P
- if self._plan.disjoint:
+ if True:

rows-overlap: rows share a P where they must not
- if self._plan.disjoint:
+ if not self._plan.disjoint:

gap-low-left-out: a gap of exactly a ends the run
- (low is None or gap >= low)
+ (low is None or gap > low)

gap-high-left-out: a gap of exactly b ends the run
- (high is None or gap <= high)
+ (high is None or gap < high)

run-closed-early: a run is over while its next P may still come
- self.inboxes[0].floor() > end_of(self._row[-1]) + high
+ self.inboxes[0].floor() >= end_of(self._row[-1]) + high

lone-lost: what breaks a run begins none
- self._close(made)
-             self._row.append(item)
+ self._close(made)
+             elif self._row or not made:
+                 self._row.append(item)
""",
    tests=STAGES,
    only="times or run or edges",
)

GATHERED = part(
    "broker/engine/pattern/operators/gathered.py",
    r"""
empty-list-passes: `+` with none gives an occurrence
- if not wanted.optional:
+ if wanted.optional and members is None:

list-closed-early: a list is closed at its chain's end though members may still come
- return inbox.limit >= end_of(one) + self._plan.slack_ms
-         if any(
+ return inbox.limit >= end_of(one) + self._plan.slack_ms
+         if inbox.limit >= end_of(one) or any(

candidates-dropped: a candidate of a list is dropped too early
- candidates.drop(oldest - plan.keep_ms)
+ candidates.drop(oldest + 1 - plan.keep_ms // 2)

touching-unasked: a reading that touches the element before its list is in it
- inner = bisect_right(ends, after, low)
+ inner = low

lasting-as-reading: what lasts is in a list though it begins too early
- or not plan.plain or self.lasting:
+ or not plan.plain:

open-beside-newer: a list that is open waits for one that was opened after it
- self._ready_at = min([self._ready_at, *map(self._may_be_ready, still)])
+ self._ready_at = min(map(self._may_be_ready, still), default=self._ready_at)

span-without-list: a list at the end does not count for the interval
- end = max(end, end_of(fitting[-1]))
+ end = max([end])
""",
    tests=(*STAGES, "tests/broker/core/test_staged_lists.py"),
    only="list or edges",
)

SILENCE = part(
    "broker/engine/pattern/operators/silence.py",
    r"""
silence-ends-late: a P exactly T later does not break the silence
- self._instants = [
-                 u for u in self._instants if not (u < end and start <= u
+ self._instants = [
+                 u for u in self._instants if not (u < end and start < u

own-end-breaks: the P from whose end silence counts breaks it
- not (u < end and
+ not (u <= end and

silence-told-early: a silence is told while a P may still break it
- if u + self._for_ms < floor]
+ if u + self._for_ms <= floor]

silence-twice: two P that end together give two intervals
- if end != self._last:
+ if end != end_of:

beginning-twice: the beginning gives an interval where a P ends as well
- return [] if met or once else
+ return [] if met else

beginning-lost: the beginning gives no interval
- once = any(end == u for _, end in self._early)
+ once = True
""",
    tests=STAGES,
    only="absent or edges",
)

WHOLE = part(
    "broker/engine/pattern/uncertainty/whole.py",
    r"""
list-spread-pairs: only neighbours in a list are near each other
- for b in positions[at + 1 :]
+ for b in positions[at + 1 : at + 2]

list-bound-low: a low bound beside a list leaves its end out
- parts.append(f"{gap} >= {constants
+ parts.append(f"{gap} > {constants

list-bound-high: a high bound beside a list leaves its end out
- parts.append(f"{gap} <= {constants
+ parts.append(f"{gap} < {constants

list-within: `within` leaves a list's last member out
- - min({start}, o[1]) <= {limit}"
+ - min({start}, o[1]) < {limit}"

element-as-member: an event of the chain is a member of its list too
- return [f"{constants.helper('strangers', strangers)}(o, m)"]
+ return []
""",
    tests=STAGES,
    only="list or run or times or spread or edges",
)

REACH = part(
    "broker/engine/pattern/operators/joint.py",
    r"""
reach-of-starts-short: what an event to come that lasts may reach is gone
- from_start = partner.begins() - self._reach_ms(start_ms)
+ from_start = limit + 1 - self._reach_ms(start_ms)

reach-of-ends-short: what the last event in time may reach is gone
- limit + 1 - self._reach_ms(end_ms)
+ limit + 2 - self._reach_ms(end_ms)

latest-too-soon: under `recent` an older one is gone that precedes what is to come
- dead = bisect_left(store.ends, before) - 1
+ dead = len(store.ends) - 1
""",
    tests=(*STAGES, "tests/broker/core/test_staged_memory.py"),
    only="recent or relation or equals or during or memory or lasts or uncertain or edges",
)

CONSUMPTION = part(
    "broker/engine/pattern/agent/staged_partition.py",
    r"""
taken-stays: what is consumed stays a candidate
- self.root.forget(gone)
+ pass

taken-stays-found: what was found with a consumed event is reported
- return without(self.waiting.found, gone)
+ return self.waiting.found

spent-by-types: what is spent by one operator counts as spent by all
- return len(set(types)) == len(types) and all(
+ return bool(types) and all(

log-too-short: what stages hold is gone when all is found again
- self.forget(min(eldest_of(self.waiting), self.root.origin()))
+ self.forget(max(eldest_of(self.waiting), self.root.origin()))
""",
    tests=("tests/broker/core/test_staged_consumption.py", *STAGES),
    only="consum or forgets or spent or edges",
)

PICK = part(
    "broker/engine/pattern/operators/pick.py",
    r"""
kth-before: the one before the k-th is taken
- if self._number == self._k:
+ if self._number == self._k - 1:

every-kth: every k-th is taken
- if self._number == self._k:
+ if self._number % self._k == 0:

kth-state-lost: a snapshot forgets how many came
- (self._number,) = facts
+ self._number = 0

distinct-edge: an equal one exactly T before does not count
- if end_of(item) - before > self._window_ms:
+ if end_of(item) - before >= self._window_ms:

distinct-for-good: an equal one counts for ever
- self._latest[key] = max(before, start_of(item))
+ self._latest[key] = max(before, limit)

distinct-first: an equal one counts from the first on only
- self._latest[key] = max(before, start_of(item))
+ self._latest[key] = before if before > WATERMARK_NONE else start_of(item)
""",
    tests=STAGES,
    only="nth or distinct or edges",
)

CHOICE = part(
    "broker/engine/pattern/selection/choice.py",
    r"""
one-of-each: `one` reports each occurrence
- if id(last) in waiting.answered:
+ if id(one) in waiting.answered:

consumed-by-what-is-not-reported: with `one`, what is not reported consumes
- if manner.report == "one" and not _answers(waiting, first):
-             continue
+ if manner.report == "one" and not _answers(waiting, first):
+             waiting.found = refind(_consumed(manner, first))
+             continue

at-most-edge: an earlier one exactly T before still counts
- end - waiting.reported[0] >= per_ms:
+ end - waiting.reported[0] > per_ms:

at-most-one-more: one more than N are reported
- if len(waiting.reported) >= count:
+ if len(waiting.reported) > count:

suppressed-counts: what was left out counts against those after it
-         return False
-     waiting.reported.append(end)
+         waiting.reported.append(end)
+         return False
+     waiting.reported.append(end)

found-not-held: a detected event comes after its time was given out
- default=WATERMARK_END + 1) - 1
+ default=WATERMARK_END)

answered-forgotten: `one` forgets an event while what it completes waits
- if key not in waited_for and (completion
+ if (completion
""",
    tests=STAGES,
    only="one or collect or at-most or consuming or last or first-of or edges",
)

COMPLETION = part(
    "broker/engine/pattern/times/completion.py",
    r"""
first-completes: an occurrence is completed by its first event
- last = max(ends
+ last = min(ends

nothing-lingers: an event completes nothing after its own end
- return self._limits()[0] if self.lingers else 0
+ return 0
""",
    tests=("tests/broker/core/test_completion.py",),
)

SILENT = part(
    "broker/engine/pattern/times/timing.py",
    r"""
silence-for-ever: a bound says nothing of when a silence begins
- return joint.bound.high_ms
+ return None
""",
    tests=("tests/broker/core/test_completion.py",),
)

COLLECTING = part(
    "broker/engine/pattern/selection/collecting.py",
    r"""
collected-repeats: a collected list holds an event as often as it was bound
- distinct = {identity(member): member for member in flat(column)}
+ distinct = dict(enumerate(flat(column)))

group-split: a group is reported while one of it waits for its choice
- if key not in open_still and (
+ if (

at-most-as-it-comes: `at most` counts what is whole first
- keys = _unpreceded(groups, keys, undecided, limit)
+ keys = sorted(keys)
""",
    tests=("tests/broker/core/test_completion.py", *STAGES),
    only="completion or collect or at-most or worked",
)

ENDING = part(
    "broker/engine/pattern/selection/ending.py",
    r"""
until-included: a result that ends as its subscription ends is reported
- if end_of(one[0]) < until]
+ if end_of(one[0]) <= until]

for-from-the-end: `for` counts from the newest event
- until = min(until, begin + for_ms)
+ until = min(until, max([end_of(one[0]) for one in found], default=begin) + for_ms)

begun-at-once: `for` counts from what came first, though something earlier may come
- sure = self.floor + for_ms
+ pass
""",
    tests=("tests/test_engine_ending.py", *STAGES),
    only="ending or edges",
)

AGAIN = part(
    "broker/engine/pattern/agent/staged_plan.py",
    r"""
consumed-not-kept: what is consumed no longer counts for `without`
- or place in silent or place >= places
+ or place >= places

consumed-not-next: what is consumed no longer counts for `next`
- or place in silent or place >= places
+ or place in silent
""",
    tests=STAGES,
    only="ending or absent or consuming or without or next or definition or edges",
)

OPEN_TIMES = part(
    "broker/engine/pattern/agent/staged_partition.py",
    r"""
open-work-not-held: a detected event comes after its time was given out
- self.holds[key] = min(partition.root.hold(), hold(partition.waiting))
+ self.holds[key] = hold(partition.waiting)

found-not-waited-for: a detected event comes at the watermark that was given out
- self.holds[key] = min(partition.root.hold(), hold(partition.waiting))
+ self.holds[key] = partition.root.hold()
""",
    tests=STAGES,
    only="ending or absent or consuming or without or next or definition or edges",
)

STAGED = part(
    "broker/engine/pattern/agent/staged_agent.py",
    r"""
begin-of-all: a partition's beginning is that of the task
- begin is None else min(begin, event.start)
+ begin is None else begin
""",
    tests=STAGES,
    only="ending or absent or consuming or without or next or definition or edges",
)

LISTS = part(
    "broker/engine/window/aggregates.py",
    r"""
last-of-list: `Last` of a list is its first
- values[-1])
+ values[0])

sum-never-null: a sum beyond all floats is compared as if it were a number
- _sum, nullable=True
+ _sum, nullable=False
""",
    tests=("tests/broker/core/test_great_numbers.py", *STAGES),
    only="list or edges or great",
)

NONE = part(
    "language/functions.py",
    r"""
sum-of-none: `Sum` over none is null
- "the sum; 0 of none", over_none=0, merges
+ "the sum; 0 of none", merges
""",
    tests=STAGES,
    only="list or edges",
)

TABLE = [
    *(
        BASE
        + ASKED
        + VIEWS
        + JOINT
        + CHRONICLE
        + COURSE
        + SEQUENCE
        + JOINED
        + NEGATION
        + REPEATS
        + GATHERED
        + SILENCE
    ),
    *(
        WHOLE
        + PICK
        + CHOICE
        + COMPLETION
        + SILENT
        + COLLECTING
        + ENDING
        + AGAIN
        + STAGED
        + OPEN_TIMES
        + LISTS
        + NONE
    ),
    *(REACH + CONSUMPTION),
]
