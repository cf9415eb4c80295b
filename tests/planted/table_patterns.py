"""Faults in how patterns are laid out, joined, chosen, consumed and told.

Owns the table for the agents of patterns. Must not know how faults are run. Invariant: as for
fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import EVERYTHING, MATCHING, part

RELATION_TESTS = part(
    "broker/engine/pattern/uncertainty/relations.py",
    r"""
then-same-instant: two readings of one instant follow each other
- or ({le} == {rs} and touching)
+ or ({le} == {rs})

before-touches: what touches counts as before
- asks=("{le} < {rs}",)
+ asks=("{le} <= {rs}",)

overlaps-ends-together: `finishes` counts as `overlaps`
- {rs} < {le} < {re}
+ {rs} < {le} <= {re}

during-begins-together: `starts` counts as `during`
- asks=("{rs} < {ls}"
+ asks=("{rs} <= {ls}"

parallel-end-left-out: intervals that share only an end are not parallel
- asks=("{ls} <= {re}"
+ asks=("{ls} < {re}"

concat-begin-left-out: `concat` needs a later begin
- asks=("{ls} <= {rs}"
+ asks=("{ls} < {rs}"
""",
    tests=MATCHING,
)

JOIN = part(
    "broker/engine/pattern/operators/join.py",
    r"""
bound-low-left-out: a bound's low end does not count
- {gap} >= {self
+ {gap} > {self

bound-high-left-out: a bound's high end does not count
- {gap} <= {self
+ {gap} < {self

gap-below-nothing: events that share time have a gap below 0
- f"max(0, {later} - {earlier})"
+ f"({later} - {earlier})"

within-end-left-out: exactly T is not within T
- {s.start} <= {limit}
+ {s.start} < {limit}

too-old-too-early: a partner at the far end of the reach is not looked at
- {other.end} < too_old
+ {other.end} <= too_old

later-partners-cut: a right event that was there first is missed at exactly T
- latest = f"{self._left.start} + {name}
+ latest = f"{self._left.start} + {name} - 1

anchor-begin-left-out: within T from A: what begins as A ends is left out
- {a}.end <= {x}.start
+ {a}.end < {x}.start

anchor-end-left-out: within T from A: what ends at T is left out
- {x}.end <= {a}.end + {limit}
+ {x}.end < {a}.end + {limit}

twice-in-one: one event fills two places of an occurrence
- if leaves[a].event_type != leaves[b].event_type:
+ if leaves[a].name != leaves[b].name:

recent-tie-turned: under `recent` the ids of one instant decide the wrong way
- order_of({old}) > order_of({new})
+ order_of({old}) < order_of({new})

touching-partners-missed: partners that end as the new one begins are missed
- i = bisect_right(ends, {side.start}
+ i = bisect_left(ends, {side.start}

touching-followers-missed: followers that end as the left one ends are missed
- i = bisect_left(ends, {self._left.end}
+ i = bisect_right(ends, {self._left.end}

anchor-of-nothing: `within T from A` holds where A is on the other side of `or`
- continue  # `within T from A` fails where A stands for nothing
+ pass
""",
    tests=MATCHING,
)

REACH = part(
    "broker/engine/pattern/times/timing.py",
    r"""
reach-without-span: what a long partner still needs is dropped
- total(start_ms + slack_ms(start_ms), timing.span_ms(partner))
+ start_ms + slack_ms(start_ms)

reach-within-zero: what a composite partner still needs is dropped
- ends.append(0 if isinstance(partner, Leaf) else within_ms)
+ ends.append(0)

followers-have-a-reach: a follower of an event still to come is dropped at the watermark
- return left, (0, None)
+ return left, (-1, None)
""",
    tests=MATCHING,
)

OCCURRENCE = part(
    "broker/engine/event/occurrence.py",
    r"""
touch-either: a reading never touches an interval
- before) and has_reading
+ before) or has_reading

ids-by-place: ids are listed by place and not in order
- ranked = sorted(range(len(given)), key=given.__getitem__)
+ ranked = list(range(len(given)))
""",
    tests=MATCHING,
)

WEIGHED_SEARCH = part(
    "broker/engine/pattern/operators/join.py",
    r"""
weighed-partners-nominal: what perhaps comes before is looked for by nominal times
- f" + slack({limit})"
+ ""

weighed-reach-nominal: what is perhaps near enough is looked for by nominal times
- f" - reach_slack({limit})"
+ ""
""",
    tests=("tests/test_engine_streams.py",),
    only="uncertain",
)

WEIGHED_STORES = part(
    "broker/engine/pattern/fused/fusion.py",
    r"""
weighed-right-unkept: where times are uncertain what follows is not kept
- joint.operator in FOLLOWS and self._doubt is None
+ joint.operator in FOLLOWS
""",
    tests=("tests/test_engine_streams.py",),
    only="uncertain",
)

DOOR = part(
    "broker/engine/pattern/uncertainty/matching.py",
    r"""
within-alone-left-out: a single event that lasts exactly T is not within T
- e.end - e.start <= {constants
+ e.end - e.start < {constants

key-of-false: 0, false and the empty text are no keys
- := {code}) is not None"
+ := {code})"
""",
    tests=MATCHING,
)

STEPS = part(
    "broker/engine/pattern/fused/fusion.py",
    r"""
expired-too-early: a candidate goes one millisecond before it may
- {store}.expire(watermark + 1 - {keep})
+ {store}.expire(watermark + 2 - {keep})

latest-with-a-bound: older candidates go though a bound may choose them
- joint.conjuncts or joint.anchors or joint.bound
+ joint.conjuncts or joint.anchors

latest-with-conditions: older candidates go though a `where` may choose them
- joint.conjuncts or joint.anchors or joint.bound
+ joint.anchors or joint.bound

consumed-still-held: what binds a consumed event goes on looking for partners
- if not holds_any(item, gone)]
+ if True]

pair-unsorted: two occurrences of one step go on unsorted
- if len({made}) > 1:
+ if len({made}) > 2:
""",
    tests=MATCHING,
)

STORE = part(
    "broker/engine/pattern/stage/store.py",
    r"""
expire-takes-the-edge: a candidate at the very edge of the reach goes
- dead = bisect_left(ends, before)
+ dead = bisect_right(ends, before)

latest-goes-too: the latest candidate goes as well
- bisect_left(self.ends, before) - 1
+ bisect_left(self.ends, before)

newest-dropped: past the limit the newest go instead of the oldest
-         del self.ends[:count]
-         del self.items[:count]
+         del self.ends[-count:]
+         del self.items[-count:]
""",
    tests=EVERYTHING,
)

DECIDED = part(
    "broker/engine/pattern/selection/collecting.py",
    r"""
last-at-the-end-lost: what closes at the watermark is lost
- selection.closes_at(one) <= limit
+ selection.closes_at(one) < limit
""",
    tests=MATCHING,
)

SELECTION = part(
    "broker/engine/pattern/selection/selection.py",
    r"""
last-is-first: `last` takes the earliest
- rank > known[0] if latest
+ rank < known[0] if latest

others-before-only: what stands behind `last` need not agree
- if place < low or place >= high]
+ if place < low]

closes-without-span: a choice is final though a long event may still come
- + gap_ms + (span_ms or 0)
+ + gap_ms

closes-too-soon-within: a choice is final before T has passed
- _least_start(events, others) + within_ms)
+ _least_start(events, others) + within_ms // 2)
""",
    tests=MATCHING,
)

OUTCOME = part(
    "broker/engine/runtime/outcome.py",
    r"""
end-of-the-last-place: a detected event ends with its last place
- end = max([e.end for e in bound])
+ end = bound[-1].end

uncertainty-of-the-first: the greatest ε is lost
- max([e.uncertainty for e in bound])
+ bound[0].uncertainty

assigned-null: an assigned null time wipes out the span's
- if t_{name} is not None: {target}
+ {target}

id-by-start: two events of one id give results of one id
- bound.append((name, [(member.id, member.end)]))
+ bound.append((name, [(member.id, member.start)]))

constituents-own-id: a detected event is ordered by its own id
- made.constituents = occurrence.ids
+ made.constituents = (occurrence.id,)

point-is-inverted: detected points are dropped
- if start > end: return None
+ if start >= end: return None
""",
    tests=MATCHING,
)

ASSIGNED = part(
    "broker/engine/pattern/times/assigned.py",
    r"""
lag-not-seen: an assigned `end` comes after the watermark has passed it
- for item in case.assign if item.name in ENDS for each
+ for item in case.assign if item.name == "timestamp" for each

lag-of-whole: an assigned time that is not the last is taken for the end of the occurrence
- return "last event" if last else "an event"
+ return "last event"
""",
    tests=MATCHING,
)

AGENT = part(
    "broker/engine/pattern/agent/staged_agent.py",
    r"""
ready-one-too-many: events are taken before the watermark has passed
- (since, WATERMARK_END) if plan.at_once else (None, self._watermark)
+ (since, WATERMARK_END) if plan.at_once else (None, self._watermark + 1)

key-null-is-a-group: events without a key make a group
-             if key is None:
-                 continue
-             partition = self._partition(key)
+             partition = self._partition(key)
""",
    tests=EVERYTHING,
)

PATIENCE = ("tests/broker/core/test_patience.py",)

GROUPS = (
    part(
        "broker/engine/pattern/agent/staged_agent.py",
        r"""
overflow-not-counted: what the limit takes is not counted
- self.dropped_overflow += shed + part
+ self.dropped_overflow += part
""",
        tests=EVERYTHING,
    )
    + part(
        "broker/engine/pattern/agent/patience.py",
        r"""
apart-as-it-came: of events of one end that begin apart the one that came first goes first
- return sorted(run, key=_start)
+ return run
""",
        tests=("tests/broker/core/test_pending.py",),
    )
    + part(
        "broker/engine/pattern/layout/prospects.py",
        r"""
empty-list-waited-for: a list that may be empty must have one
- if not one.optional]
+ ]

left-never-later: what comes late completes nothing on the left
- if self._in_order:
+ if True:

within-too-narrow: what fills its time is not looked at
- if e.end - n > {0}:
+ if e.end - n >= {0}:
""",
        tests=PATIENCE,
    )
    + part(
        "broker/engine/pattern/agent/patience.py",
        r"""
forgotten-too-soon: what may still be completed is forgotten
- since = watermark - self._prospect.forgets_ms
+ since = watermark - self._prospect.forgets_ms // 2

reach-of-nothing: a group of a snapshot is taken for a new one
- return [WATERMARK_END] * len(self._prospect.reach())
+ return self._prospect.reach()
""",
        tests=PATIENCE,
    )
)

SEARCHED = part(
    "broker/engine/pattern/agent/search.py",
    r"""
searched-same-instant: a reading of the same instant advances a run
- before = reading.end
+ before = reading.end - 1

searched-spent-again: what a run has spent begins another
- if made and self._search.spends:
+ if False:

searched-lasting: what lasts is looked for as if it were a reading
- or event.start != event.end:
+ or False:

searched-empty-list: a list that may be empty must have one
- if not listed.optional:
-             yield
+ if True:
+             yield

searched-needed: where a list that may be empty is empty nothing is found
- for listed in lists if not listed.optional)]
+ for listed in lists)]

searched-early: a list has what lies before the element that it follows
- bisect_right({ends}, e{listed.after}.end)"
+ bisect_left({ends}, 0)"

searched-between: an element may lie before the one that it follows
- if number:
-             yield
+ if False:
+             yield

searched-free: more is found at once than may be without being charged
- (1 / len(elements))) - 1
+ (1 / len(elements))) + 1_000
""",
    tests=(*PATIENCE, "tests/broker/engine/test_search.py"),
)

UNPACKED = part(
    "broker/engine/pattern/agent/staged_partition.py",
    r"""
log-forgotten: after a restore nothing is gone through again
- [(at, shelf.get(n)) for at, n in log]
+ []

found-forgotten: what was found but not final is lost in a snapshot
- waiting.found = found
+ waiting.found = []
""",
    tests=EVERYTHING,
)

OPERATORS = part(
    "broker/engine/pattern/agent/staged_plan.py",
    r"""
swept-with-log: an event that may still be in time is not gone through again
- partition.forget(watermark + 1 - reach_ms)
+ partition.forget(watermark + 1 - reach_ms + reach_ms // 4)

groups-share-state: a group's key is lost in its results
- self.fused.open(partition.group, partition.site)
+ self.fused.open((), partition.site)
""",
    tests=EVERYTHING,
)

PATTERN = part(
    "broker/engine/pattern/layout/pattern.py",
    r"""
within-inner-alone: a `within` around a `within` does not count
- within_ms = least(above.within_ms, node.within_ms)
+ within_ms = node.within_ms

anchor-not-below: `within T from A` is not tested
- for name, within_ms in above.anchors]
+ for name, within_ms in above.anchors[:0]]

or-side-not-optional: the last side of `or` is taken to be there
- self.optional.update(range(joint.low, joint.high))
+ self.optional.update(range(joint.low, joint.high - 1))
""",
    tests=MATCHING,
)


ATTACH = part(
    "broker/engine/pattern/layout/attach.py",
    r"""
conjunct-at-the-top: a `where` is tested after the choice and not before
- holder = self._lowest(operand, bound, whole=whole)
+ holder = operand

beside-or-untested: a `where` beside the empty side of `or` is not tested
- if holder is not asked and bound & (self._optional
+ if holder is asked and bound & (self._optional

aggregate-of-each: an aggregate is tested of each member of a list
- whole = has_aggregate(part) and bool(bound & self._listed)
+ whole = False
""",
    tests=MATCHING,
)

SCOPES = part(
    "broker/engine/pattern/layout/scopes.py",
    r"""
empty-place-read: an attribute of the empty side of `or` is read
- return f"(None if {event} is None else {code})", True
-         return code, nullable
+ return code, nullable
+         return code, nullable
""",
    tests=MATCHING,
)

TABLE = [
    *(
        RELATION_TESTS
        + JOIN
        + WEIGHED_SEARCH
        + WEIGHED_STORES
        + REACH
        + OCCURRENCE
        + DOOR
        + STEPS
        + STORE
    ),
    *(
        DECIDED
        + SELECTION
        + OUTCOME
        + ASSIGNED
        + AGENT
        + GROUPS
        + SEARCHED
        + UNPACKED
        + OPERATORS
        + PATTERN
        + ATTACH
        + SCOPES
    ),
]
