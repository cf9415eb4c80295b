"""Faults in the server tier: what is shown or forgotten too early, read in part or never again.

Owns the table for `server`. Must not know how faults are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

MIGRATION = ("tests/server/test_migration.py",)
SHARDS = ("tests/server/test_shards.py",)
UPKEEP = ("tests/server/test_upkeep.py",)
POSTPONED = ("tests/server/test_postponed.py",)
SOURCE = ("tests/server/test_source.py",)
DETECTION = ("tests/server/test_detection.py",)

TABLE = [
    *part(
        "server/source/planning.py",
        r"""
absence-remembered: a broker that was away once is not waited for when it goes again
- self.postponed.forget_away(name)
+ self.postponed.forget_away("")

back-behind-copies: what a lost broker found when it was back counts as lost with its disk
- if log is not None and log.epoch == epoch:
+ if log is not None and log.epoch == epoch and not _heirs(known).parts(epoch, begin, end):
""",
        tests=POSTPONED,
    ),
    *part(
        "server/source/places.py",
        r"""
postponed-for-ever: reading never goes back to what a batch has left out
- read[left.broker] = place._replace(next=left.begin, turn=place.turn + 1)
+ read[left.broker] = place
""",
        tests=POSTPONED,
    ),
    *part(
        "server/source/places.py",
        r"""
heirs-read-twice: what two brokers have of a lost log is read of both
- read += own
+ read += own[:0]

copies-moved: a copy is read at the offset that it has in the lost log
- yield InheritedRun(low, own + low - theirs, high - low)
+ yield InheritedRun(low, own, high - low)

waits-anew: a broker that is away counts as away since the last restart
- return max(seen_s, now_s - float(path.read_text(encoding="utf-8")))
+ return min(seen_s, now_s - float(path.read_text(encoding="utf-8")))

heir-without-retention: what retention took of an heir counts as read there
- own.append((max(begin, first) - shift, min(end, first + size) - shift))
+ own.append((theirs, theirs + size))
""",
        tests=(*SOURCE, *POSTPONED),
    ),
    *part(
        "server/source/source.py",
        r"""
heir-alone-is-another: a condition on the broker has an heir's results read that are elsewhere
- if name not in wanted and not away and not taken_over:
+ if name not in wanted and not away:
""",
        tests=SOURCE,
    ),
    *part(
        "server/source/history.py",
        r"""
places-missing: a row of a history that is at no offset is an error of Python's
- return name in rows.column_names and rows.column(name).null_count > 0
+ return name not in rows.column_names

numbers-are-texts: numbers in a column of texts are taken for results
- return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
+ return bool(pa.types.is_string(kind) or pa.types.is_integer(kind))
""",
        tests=("tests/server/test_history.py",),
    ),
    *part(
        "server/source/fanout.py",
        r"""
asked-for-no-reader: a broker that is away is asked again for a task that has ended
- ended.set()
-         thread.submit(
+ ended.clear()
+         thread.submit(

asked-though-one-failed: a broker that is away is asked again for a task that another has ended
- ended.set()
-         threads.shutdown(
+ ended.clear()
+         threads.shutdown(

asked-in-turn: a task waits for each of its brokers before it asks the next
- coming = [threads.submit(_all_of, maker) for maker in makers]
-         for made in coming:
+ for maker in makers:
+             made = threads.submit(_all_of, maker)
""",
        tests=SOURCE,
    ),
    *part(
        "server/detection/result_batches.py",
        r"""
values-grow: what a value holds counts for the ones behind it
- packed, payloads, size = [], [], len(payload)
+ packed, payloads = [], []

last-value-lost: results behind the last full value go nowhere
- if packed:
+ if size > BYTES_MAX:
""",
        tests=DETECTION,
    ),
    *part(
        "server/detection/course.py",
        r"""
wakes-late: what waits is not what the next batch is begun for
- earliest_ms = min(end_ms for end_ms in ends_ms if end_ms > watermark_ms)
+ earliest_ms = max(ends_ms)
""",
        tests=DETECTION,
    ),
    *part(
        "server/detection/processor.py",
        r"""
mark-unread: what the mark of a batch has passed waits for the next batch
- mark_ms = max(mark_ms, row["mark_ms"])
+ mark_ms = max(mark_ms, passed_ms)

waiting-once: what waits is written by the first batch of a key alone
- if packed != held:
+ if held is None:
""",
        tests=DETECTION,
    ),
    *part(
        "server/source/source.py",
        r"""
sinks-differ: a batch that one sink has in full comes to the next without a broker
- if whole or options.postponed is None or self._targets is not None:
+ if options.postponed is None or self._targets is not None:

waits-no-time: a job by event time goes on without a broker at once
- if options.align and self._plans().is_waited_for(stretch.broker, seen):
+ if options.align and options.away_s is None:

copies-put-off: what a broker has that took another one over is left out of the batch
- if self._plans().copies(stretch, brokers) is not None:
+ if self._plans().copies(stretch, brokers) is not None and whole:

held-batch-grows: a batch that a sink has is run again with what it had left out
- if self._postponed.holds(left):
+ if not whole and self._postponed.holds(left):

held-batch-shrinks: a batch that a sink has in full is without a broker after a restart
- whole = self.options.whole_first if self._begun is None else self._begun == (start, end)
+ whole = self._begun == (start, end)
""",
        tests=POSTPONED,
    ),
    *part(
        "server/streams.py",
        r"""
notes-ignored: what a batch has left out is not known where a sink may have it
- postponed = place.folder / POSTPONED
+ postponed = None if whole else place.folder / POSTPONED

code-is-an-error: the name of an error in a line of code on the way ends a stream for good
- return _NAMED.findall(error)
+ return re.findall(r"(\w+Error)", error)
""",
        tests=("tests/server/test_monitor.py", *POSTPONED),
    ),
    *part(
        "server/upkeep/versions.py",
        r"""
half-filled-is-shown: a version that was begun beside another counts as the one that is shown
- begun = [stream for stream in begun_of(jobs, job) if not stream.apart]
+ begun = list(begun_of(jobs, job))
""",
        tests=MIGRATION,
    ),
    *part(
        "server/upkeep/migration.py",
        r"""
shown-unread: a version is shown that has not read everything
- if not complete:
+ if complete is None:
""",
        tests=MIGRATION,
    ),
    *part(
        "server/upkeep/consumers.py",
        r"""
running-is-forgotten: brokers forget a consumer that is still read by
- free = [stream for stream, file in held if stream.version not in busy]
+ free = [stream for stream, file in held]

away-is-done: a broker that was away is never asked again
- if complete and free:
+ if free:
""",
        tests=MIGRATION,
    ),
    *part(
        "server/sinks/alert_marks.py",
        r"""
alert-left-out: an alert is left out that the former version has not sent
- row["offset"] < self.offsets
+ row["offset"] <= self.offsets
""",
        tests=MIGRATION,
    ),
    *part(
        "server/sinks/shown.py",
        r"""
former-takes-back: the former version makes the views show itself again
- return table.stored if table.suffix else None
+ return table.stored
""",
        tests=MIGRATION,
    ),
    *part(
        "server/upkeep/repair.py",
        r"""
mended-twice: rows of a mending that was cut off are put there again
- return rows.filter(pc.invert(pc.is_in(rows.column("offset"), value_set=kept)))
+ return rows

gap-forgotten: what is nowhere counts as mended
- note_gap(str(history.folder), gap)
+ pass

log-of-another: rows of a new log are taken for those of the former one
- if standing.epoch == gap.epoch and covered[0] < covered[1]:
+ if covered[0] < covered[1]:
""",
        tests=UPKEEP,
    ),
    *part(
        "server/upkeep/compaction.py",
        r"""
removed-while-read: what was replaced goes at once
- if not note.name.isdigit() or int(note.name) > until_ms:
+ if not note.name.isdigit():

listed-is-removed: a file that counts is removed, as an attempt was cut off
- if file.is_file() and file not in counted:
+ if file.is_file():

day-too-early: a day is dropped in its middle
- return midnight.timestamp() * 1000 + DAY_MS <= cut_ms
+ return midnight.timestamp() * 1000 <= cut_ms
""",
        tests=UPKEEP,
    ),
    *part(
        "server/jobs/packed_source.py",
        r"""
mark-packed-away: a batch of which nothing was packed tells no mark
- if not keys and mark.is_valid:
+ if keys is None and mark.is_valid:

counted-in-each: what was read counts for each key
- counts = [results.num_rows, *([0] * len(keys))][: len(keys)]
+ counts = [results.num_rows] * len(keys)
""",
        tests=("tests/server/test_packed_source.py",),
    ),
    *part(
        "server/detection/mapping.py",
        r"""
declared-alone: an attribute of an alias is handed on by its own name
- if name not in _RESERVED and (wanted is None or name in wanted):
+ if name not in _RESERVED and (wanted is None or inner in wanted):
""",
        tests=DETECTION,
    ),
    *part(
        "server/detection/shards.py",
        r"""
spread-by-any: one engine gets as many rows as many do, as another part runs apart
- return all(part.key is not None for part in self.parts)
+ return any(part.key is not None for part in self.parts)

agree-by-either: conditions of which one may hold make events agree
- if isinstance(condition, Logical) and condition.operator == "and":
+ if isinstance(condition, Logical):

next-of-any-key: a sequence of what comes next runs apart
- if not isinstance(pattern, Link) or pattern.operator not in JOINING or pattern.next:
+ if not isinstance(pattern, Link) or pattern.operator not in JOINING:

key-left-behind: a detected event without the key is looked for by it
- return [name for name in shared if not needed or _carries(node, name)]
+ return shared

shared-twice: subscriptions that share a definition run apart
- if needs & needed:
+ if needs == needed and not needs:

equal-apart: values that are equal are in different shards
- return repr(float(value)).encode()
+ return repr(value).encode()
""",
        tests=SHARDS,
    ),
]
