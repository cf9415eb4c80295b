"""Faults at the door and on the way to tasks: intake, clocks, repeats, filterer, conditions.

Owns the table for what decides whether and where an event goes. Must not know how faults are run.
Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import CORE, EVERYTHING, part

REPEATS = part(
    "broker/engine/ingest/repeats.py",
    r"""
same-id-is-a-repeat: an event with the id of another and another end is ignored
- first = held.get(event.end)
+ first = held.get(next(iter(held)))

tie-is-new: a repeat of the newest event is let in
- events[0].end > before):
+ events[0].end >= before):

memory-short: the memory does not reach back to the watermark
- if run.newest > watermark]
+ if run.newest > watermark + 2]

run-short: of a batch in no order too many are forgotten
- [end > watermark for end in self.ends]
+ [end > watermark + 1 for end in self.ends]

tied-in-a-batch: two of a batch that end together are both new
- return len(known) == count
+ return len(known) >= count - 1

ids-met-in-part: of those of one id only some are looked for
- by_id.keys().isdisjoint(ids)
+ by_id.keys().isdisjoint(ids[1:])

id-twice-in-a-batch: two of a batch that have one id and end are both new
- if len(by_id) == count:
+ if len(by_id) >= count - 1:

memory-cleared-early: a batch goes before the watermark has passed its last event
- batches[0][0] <= watermark:
+ batches[0][0] <= watermark + 257:

fold-by-batches: what came in order is looked through batch by batch
- self._add(_Run(newest, ends, events))
+ self._runs.append(_Run(newest, ends, events))

fold-forgets: what came in order is forgotten when an event comes that does not
- self._ends.update(ends)
+ self._ends.update(ends[1:])

newest-forgotten: past the limit the newest are forgotten and not the oldest
- events[len(events) - self._events_max // 2 :]
+ events[: self._events_max // 2]

conflict-unseen: a repeat that says something else is taken for the same
- event.attribute_values(),
+ (),
""",
    tests=EVERYTHING,
)

CLOCKS = part(
    "broker/engine/ingest/clocks.py",
    r"""
watermark-one-ahead: an event that is just in time ends at the watermark
- return self._newest - self._lateness_ms - 1
+ return self._newest - self._lateness_ms
""",
    tests=EVERYTHING,
)

SOURCE_CLOCKS = part(
    "broker/engine/ingest/source_clocks.py",
    r"""
edge-is-late: an event exactly as late as allowed is refused
- if end < newest - lateness_ms or end <= given
+ if end <= newest - lateness_ms or end <= given

given-forgotten: an event behind a watermark that was given out is let in
- and min(ends) <= passed:
+ and min(ends) <= passed - lateness_ms:

order-of-the-last-two: where two end together, they pass for apart
- first > passed and all(map(lt,
+ first > passed and all(map(le,

clock-goes-back: an older event takes the clock back
- newest = max(newest, end)
+ newest = end

type-ahead-of-source: a type's watermark is at what its slowest source may still send
- reached = clock - self._lateness_ms - 1
+ reached = clock - self._lateness_ms

watermark-goes-back: a watermark that was given out is taken back
- if reached <= given:
+ if reached == given:

idle-one-late: a source is idle a moment after its timeout
- now - one.at >= self._idle_ms
+ now - one.at > self._idle_ms

idle-clock-from-timeout: an idle source's clock starts at its timeout
- return one.newest + silent_ms
+ return one.newest + silent_ms - idle_ms

withdrawn-still-counts: a withdrawn source is still waited for
- if one.gone:
+ if one.gone and not one.heard:

passed-for-good: a silent source that speaks again is not waited for
- self._push(one, name)
-             one.passed.clear()
+ pass
+             one.passed.clear()

furthest-ahead: of the sources that ended the slowest counts and not the foremost
- before[0] + now - before[1] < clock
+ before[0] + now - before[1] > clock

stated-forgotten: an advertised source is forgotten for being idle
- if not self._sources[name].stated:
+ if self._sources[name].heard:
""",
    tests=EVERYTHING,
)

INTAKE = part(
    "broker/core/intake.py",
    r"""
late-uncounted: late events are missing in the account
- account.drop(reasons.LATE, len(split.late))
+ account.drop(reasons.LATE, len(repeats))

conflicts-counted-twice: a conflicting repeat is counted as a repeat too
- len(repeats) - conflicting)
+ len(repeats))

point-as-span: a reading that is told again has a start and an end
- if event.start == event.end:
-         return {"timestamp"
+ if event.start is event.timestamp:
+         return {"timestamp"
""",
    tests=EVERYTHING,
)

NORMALISE = part(
    "broker/engine/ingest/normalise.py",
    r"""
advertised-wins: an advertised location stands above the event's own
- if event.location is None:
+ if known.location is not None:

future-edge-refused: an event exactly as far ahead as allowed is refused
- if event.end > latest:
-             ahead
+ if event.end >= latest:
+             ahead

point-as-interval-refused: start and end may not be equal
- if event.start > event.end:
+ if event.start >= event.end:

duration-unbounded: an event may last as long as it likes
- if lasted_ms > most_ms:
+ if lasted_ms < -most_ms:

order-of-attributes-in-id: the order of the declaration shows in ids
- for name in sorted(attributes)
+ for name in attributes

null-in-id: an attribute that is null counts in the id
- if (value := getattr(event, slot)) is not None
+ if (value := getattr(event, slot)) is not slot

epsilon-of-nobody: an advertised ε is not supplied
- (known.uncertainty or 0) if known is not None else 0
+ 0
""",
    tests=CORE,
)

TIMES = part(
    "broker/engine/ingest/times.py",
    r"""
cut-towards-zero: what is finer than a millisecond is cut off towards 1970
- return (moment - _EPOCH) // _MILLISECOND
+ return int((moment - _EPOCH) / _MILLISECOND)

zone-ignored: a time's zone does not count
- if moment.tzinfo is None:
+ if moment.tzinfo is not UTC:
""",
    tests=CORE,
)

DEPTH = part(
    "broker/engine/ingest/decode.py",
    r"""
depth-edge: a payload exactly as deep as allowed is refused
- if level > levels_max
+ if level >= levels_max

brackets-in-texts: brackets in texts count as levels
- _TEXT.sub(b"", payload)
+ payload
""",
    tests=CORE,
)

DECODE = part(
    "broker/engine/ingest/decode.py",
    r"""
batch-edge: a batch exactly as long as allowed is refused
- if len(items) > self._limits.batch_events_max
+ if len(items) >= self._limits.batch_events_max

srcid-wins: the old name of the source stands above the new one
- if event.source is None and header.srcid is not None
+ if header.srcid is not None

type-of-the-topic-only: a payload may name another type than its topic
- if header.type is not None and header.type != name:
+ if header.type is None and header.type == name:
""",
    tests=CORE,
)

LEDGER = part(
    "broker/engine/ledger.py",
    r"""
held-not-accounted: what waits is missing in the account
- - self.filtered - self.held -
+ - self.filtered -

nothing-dropped: a drop of one is not counted
- if count:
-             self.dropped
+ if count > 1:
+             self.dropped
""",
    tests=EVERYTHING,
)

FILTERER = part(
    "broker/engine/filter/filterer.py",
    r"""
shared-goes-at-once: a content that two tasks want goes with the first
- content.uses += 1
+ content.uses = 1

missed-uncounted: events of a type that nobody asks for are not counted as filtered
- missed += len(same)
+ missed += 0

one-is-true: `n = 1` and `n = true` share a content
- kinds.append(type(node.value).__name__)
+ kinds.append("constant")

select-kept: a content that was taken away is still asked
-         self._select = None
-
-     def route
+         self._waiting.pop(content.id, None)
+
+     def route
""",
    tests=CORE,
)

CONTENTS = part(
    "broker/engine/filter/contents.py",
    r"""
hashed-numbers-say-all: behind a hashed number all is taken for said
- if self._layers or not exact or not self._settled:
+ if self._layers:

dead-rows-alive: a content that was taken away gets events
- self.alive &= ~(1 << row.slot)
+ self.alive |= 1 << row.slot

narrowest-range-lost: of two bounds of one term the wider counts
- literal.high < high)
+ literal.high > high)

least-bound-holds: of two lower bounds of one term the wider counts
- literal.low > low)
+ literal.low < low)

whole-location-only: a location is not found beneath its path
- found.append(location[:end])
+ found.append(location[end:])

rows-lost-in-building: rows of a layer are lost where it is built anew
- rows += [row for row in layer.rows if layer.has(row)]
+ rows += [row for row in layer.rows if not layer.has(row)]
""",
    tests=CORE,
)

CONTENT = part(
    "broker/engine/filter/content.py",
    r"""
given-twice: an event goes to a content once for each alternative
- elif hits[-1] is not event:
+ elif hits[-1] is event:

made-twice: what is made at once is made once for each alternative
- self.makers if len(self.rows) == 1 else ()
+ self.makers
""",
    tests=CORE,
)

SCALE = part(
    "broker/engine/filter/scale.py",
    r"""
scale-short: the last cell of a range is left out
- bisect_left(edges, high)
+ bisect_left(edges, high) - 1

scale-takes-null: null falls into the first cell
- -1 if value is None
+ 0 if value is None

scale-takes-all: every comparison is taken for a range
- return operator in RANGED and -EXACT
+ return -EXACT
""",
    tests=CORE,
)

LISTED = part(
    "broker/engine/filter/candidates.py",
    r"""
listed-begins-with-cell: a row holds for all of the cell in which it begins
- begun = place > first or low is None or self._edges[place - 1] == low
+ begun = True

listed-ends-with-cell: a row holds for all of the cell in which it ends
- lasts = place < last or high is None or self._edges[place : place + 1] == [high]
+ lasts = True

listed-one-term-says-all: what a row asks of other terms is not tested
- all_said and begun and lasts
+ begun and lasts

listed-row-stays: a content that was taken away stands in its cells
- if held is not row.content])
+ if held])

listed-further-row-untested: a further row is given without its test
- self._asked[place] += (row.content,)
+ self._asked[place] += ()
""",
    tests=("tests/broker/core/test_filterer_index.py", *CORE),
)

CELLS = part(
    "broker/engine/filter/cells.py",
    r"""
cell-short: the last cell of a range is left out
- bisect_left(edges, high)
+ bisect_left(edges, high) - 1

step-keeps-shut-rows: rows that a stretch has shut stay in the sets behind it
- kept ^= _turned(turned)
+ kept |= _turned(turned)

null-is-least: null falls into the first cell
- if v is not None else -1]
+ if v is not None else 0]

word-of-32: bits of later words are read at wrong places
- (place << 6) + lowest
+ (place << 5) + lowest

appended-row-bounded: a further row without a range is in no cell
- self.cells[:] = [cell | bit for cell in self.cells]
+ self.cells[:] = [cell & ~bit for cell in self.cells]
""",
    tests=(
        "tests/broker/core/test_filterer_index.py",
        "tests/broker/network/routing/test_rows.py",
        *CORE,
    ),
)

CONDITIONS = part(
    "broker/engine/filter/conditions.py",
    r"""
not-mirrored: `5 < n` is indexed as `n < 5`
- _bounded(term_of(right), MIRRORED[operator], low)
+ _bounded(term_of(right), operator, low)

past-itself: `n <= 5` is indexed as `n < 5`
- past(value) if operator == "<=" else value
+ value

span-without-its-end: the greatest value of a large set is not indexed
- past(max(choice.values))
+ max(choice.values)

circle-too-narrow: away from the equator a circle's box is too narrow
- degrees(asin(min(1.0, sin(angle) / cos(radians(x)))))
+ degrees(angle)

date-line: a circle over the eastern date line is cut off
- if y - reach <= -180 or y + reach >= 180:
+ if y - reach <= -180:

floats-span-nothing: a large set of floats is not indexed
- kind = str if isinstance(first, str) else (int, float)
+ kind = str if isinstance(first, str) else int
""",
    tests=("tests/broker/core/test_filterer_index.py", *CORE),
)

EXPRESSIONS = part(
    "broker/engine/event/expressions.py",
    r"""
by-zero-raises: a division by zero is no null
- except (ZeroDivisionError, OverflowError):
+ except OverflowError:

at-least-is-more: `>=` leaves its end out
- {"=": "=="}.get(word, word)
+ {"=": "==", ">=": ">"}.get(word, word)

infinite-value: a value beyond a float's range is let out
- and not isfinite(value)
+ and value != value

duration-of-points: `duration` is the start
- "duration": "({e}.end - {e}.start)"
+ "duration": "({e}.start - {e}.end)"
""",
    tests=EVERYTHING,
)

GEOMETRY = part(
    "broker/engine/event/event.py",
    r"""
distance-edge: exactly D apart is too far
- distance <= distance_max_m
+ distance < distance_max_m

path-without-segments: `path("b/1")` holds of "b/10"
- location.startswith(prefix + "/")
+ location.startswith(prefix)

height-of-one: a height that one position has counts
- p.z is not None and q.z is not None
+ p.z is not None or q.z is not None

circle-border: a circle's border does not belong to it
- hypot(x - lat, y - lon) <= radius_m
+ hypot(x - lat, y - lon) < radius_m

box-border: a box's upper border does not belong to it
- low_x <= x <= high_x and low_y <= y <= high_y
+ low_x <= x < high_x and low_y <= y < high_y

polygon-border: a polygon's border does not belong to it
- return True
-         if (y_a > y)
+ return False
+         if (y_a > y)
""",
    tests=("tests/broker/core/test_regions.py", *EVERYTHING),
)

RESULTS = part(
    "broker/engine/runtime/results.py",
    r"""
place-before-order: results go by their subscription first
- return (*result.head, result.place)
+ return (*result.head[:2], result.place, *result.head[2:])
""",
    tests=EVERYTHING,
)

SEATS = part(
    "broker/engine/runtime/seats.py",
    r"""
due-one-late: an agent is woken after the watermark that it waits for
- domain.due[0][0] <= watermark:
+ domain.due[0][0] < watermark:
""",
    tests=EVERYTHING,
)

MATCHER = part(
    "broker/engine/runtime/matcher.py",
    r"""
foremost-input: a task waits for its foremost input and not for the last
- watermark = min(inputs)
+ watermark = max(inputs)

least-wish-lost: the latest of several wishes for a watermark counts
- wanted[name] = min(target,
+ wanted[name] = max(target,
""",
    tests=EVERYTHING,
)

WIRING = part(
    "broker/engine/runtime/instances.py",
    r"""
route-stays: events still go to an agent that is gone
- if route[0] is not seat]
+ if route[1] is not seat]
""",
    tests=EVERYTHING,
)

ADVERTISED = part(
    "broker/engine/ingest/advertised.py",
    r"""
pole-refused: a position at a pole is refused
- if not -LATITUDE_MAX <= latitude <= LATITUDE_MAX:
+ if not -LATITUDE_MAX < latitude < LATITUDE_MAX:

withdrawn-describes: what a withdrawn source said still supplies its events
- known = self._all.pop(source, None)
-         self.describing.pop(source, None)
+ known = self._all.pop(source, None)
""",
    tests=CORE,
)

TABLE = [
    *(REPEATS + CLOCKS + SOURCE_CLOCKS + INTAKE + NORMALISE + TIMES + DEPTH + DECODE + LEDGER),
    *(
        FILTERER
        + CONTENTS
        + CONTENT
        + SCALE
        + LISTED
        + CELLS
        + CONDITIONS
        + EXPRESSIONS
        + GEOMETRY
        + RESULTS
        + SEATS
        + MATCHER
        + WIRING
        + ADVERTISED
    ),
]
