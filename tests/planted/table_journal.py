"""Faults in the journal and in who holds promises back: said too early, trusted too long, lost.

Owns the table for `broker/journal` and for what waits for it. Must not know how faults are run.
Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

JOURNAL = ("tests/broker/journal",)
KEEPING = (
    "tests/broker/test_promises.py",
    "tests/broker/test_gate.py",
    "tests/broker/durability/test_keeping.py",
)

SEGMENT = part(
    "broker/journal/segment.py",
    r"""
told-before-the-sync: records are told to be durable that are only written
- self._files.write(self._file, data)
-         self._files.sync(self._file)
+ self._files.write(self._file, data)

folder-not-synced: a new segment's name may be lost
- if self._fresh:
+ if not self._fresh:

trusted-after-a-failure: a segment that failed is written to again
-         self.close()
-         with self._lock:
-             name = self._names[-1] if self._names else None
+         with self._lock:
+             name = self._names[-1] if self._names else None

room-not-given-back: what was written in vain stays
- self._files.truncate(self._file, self._size)
+ pass

needed-records-removed: a segment goes whose last record the snapshot does not stand for
- if end <= number]
+ if end <= number + 1]

one-segment-for-ever: a segment never ends
- if self._size >= self._segment_bytes:
+ if self._size >= self._segment_bytes * 1000000:
""",
    tests=JOURNAL,
)

READING = part(
    "broker/journal/reading.py",
    r"""
last-segment-taken-as-it-is: nobody makes durable what was read
- put(files, path, data[: segment.good_bytes])
+ pass

covered-segments-read: what the snapshot stands for is handed out again
- if record.number > done:
+ if record.number >= done:

gap-after-the-snapshot: missing records are not noticed
- if segments and segments[0].first > done + 1:
+ if segments and segments[0].first > done + 100:

numbers-used-again: the next record has the snapshot's number
- next_number, cut = done + 1, 0
+ next_number, cut = done, 0

left-behind: what a snapshot stands for stays for ever after a crash
- for name in present[: len(present) - len(segments)]:
+ for name in present[:0]:

oldest-snapshot: not the newest snapshot is taken
- path = folder / naming.snapshot(numbers[-1])
+ path = folder / naming.snapshot(numbers[0])
""",
    tests=JOURNAL,
)

WRITER = part(
    "broker/journal/journal.py",
    r"""
given-up-after-one-failure: what failed once is not tried again
- return self._failed(sentence(error, self._segments.folder))
+ pending.clear()
+             return self._failed(sentence(error, self._segments.folder))

all-of-it-durable: what is still to be written is told to be durable
- self._durable(self._durable_number)
+ self._durable(self._durable_number + len(pending))

trouble-for-ever: nobody hears that writing goes on
- self._trouble("")
+ pass

one-fault-hides-another: a second kind of fault is not told
- if why != self._told:
+ if not self._told:
""",
    tests=JOURNAL,
)

FILES = part(
    "broker/journal/files.py",
    r"""
snapshot-not-synced: a snapshot's name is there before its bytes are
-             files.write(file, data)
-             files.sync(file)
+             files.write(file, data)

half-a-file-left: what could not be written stays there
- _try_to_remove(files, fresh)  # it takes room that may be what is wanting
+ pass

folder-made-and-lost: a new folder's name may be lost
-         self.sync_folder(path.parent)
-
-     def try_to_write
+
+     def try_to_write
""",
    tests=JOURNAL,
)

GATE = part(
    "broker/core/effects.py",
    r"""
acknowledged-at-once: what rests on a record leaves before the disk has it
- if line or effect.after > self.durable:
+ if line:

order-of-promises-lost: what has nothing to wait for overtakes
- if line or effect.after > self.durable:
+ if effect.after > self.durable:

one-line-of-frames: frames of one link wait for those of another
- self._frames.setdefault((effect.link, effect.control), deque())
+ self._frames.setdefault(("", effect.control), deque())

released-too-far: the commit of a record lets go of what rests on the next
- line[0].after <= number:
+ line[0].after <= number + 1:

answered-before-listed: a client is answered before the catalogue has what it asked for
- elif self._answers and isinstance(effect, Reply):
+ elif not self._answers and isinstance(effect, Reply):

answers-of-the-next: an answer does not wait for the change before it alone
- while self._answers and (reply := self._answers[0]) is not None:
+ while len(self._answers) > 1 and (reply := self._answers[0]) is not None:
""",
    tests=("tests/broker/core/test_commit_gate.py",),
)

PROMISES = part(
    "broker/driver/promises.py",
    r"""
told-before-stored: a result goes out that the outbox does not have
- self._outbox.append(results, partial(self._stored, results))
+ self._inner.emit(Emit(tuple(results)))
+         self._outbox.append(results, lambda _error: None)

failed-result-told: a result that cannot be stored is told all the same
- if error is None:
-             self._guarded(self._inner.emit
+ if error is not self:
+             self._guarded(self._inner.emit

settled-too-early: a snapshot does not wait for the outbox
- self._outbox.append((), partial(_settle, one.token))
+ _settle(one.token, None)

never-read-on: intake is held for ever once too much waited
- if self._is_behind and self._journal.waiting_bytes <= self.waiting_bytes_max // 2:
+ if self._journal.waiting_bytes < 0:
""",
    tests=KEEPING,
)

KEEPER = part(
    "broker/driver/snapshots.py",
    r"""
snapshot-before-its-results: a snapshot is written that stands for results nobody has
- await self._line.settled(number)
+ await asyncio.sleep(0)

journal-without-end: no snapshot is ever due
- if grown >= least or
+ if grown >= least * 1000000 or

found-journal-not-counted: a broker that ends often never takes a snapshot
- self._from_bytes = -journal.size_bytes
+ self._from_bytes = 0

too-large-and-nobody-held: the journal grows beyond its bound
- if not room_bytes:
-             reason
+ if size_bytes < 0:
+             reason

full-on-disk-alone: what waits for a slow disk passes the bound of the journal
- size_bytes = self._journal.size_bytes + self._journal.waiting_bytes
+ size_bytes = self._journal.size_bytes

full-when-looked: the journal passes its bound between two looks at it
- self.full_bytes = self._journal.appended_bytes + room_bytes
+ self.full_bytes = self.next_look_bytes
""",
    tests=KEEPING,
)

TURN = part(
    "broker/driver/runner.py",
    r"""
read-at-once-let-in: what was read together is handled though intake is held by the first of it
- if not self.at_work:  # by what it just handled: the rest waits, before what comes later
+ if self._holders < 0:

held-at-the-end: what was read is dropped at the end where intake is held meanwhile
- while self._inbox:
+ while False:
""",
    tests=KEEPING,
)

SLICED = part(
    "broker/driver/runner.py",
    r"""
open-amid-work: others publish to the core amid the work on a message
- self._idle.clear()
-                 self.hold()
+ self._idle.clear()

shut-behind-work: intake stays held behind work of many slices
- self._idle.set()
-             self.release()
+ self._idle.set()

told-amid-work: a message is handled amid the work on another
- self._finish()
-         self._advance(message, self._machine.work(message, self.clock.now_ms()))
+ self._advance(message, self._machine.work(message, self.clock.now_ms()))

ready-amid-work: who waits to tell the core something does not wait for the work under way
- while not (self._running.is_set() and self._work is None):
+ while not self._running.is_set():
""",
    tests=("tests/broker/driver/test_long_steps.py",),
)

DELIVERED = part(
    "broker/driver/mqtt_face.py",
    r"""
overtaken-results: few results overtake many that wait for their turn
- if is_idle and len(results) <= RESULTS_EACH:
+ if len(results) <= RESULTS_EACH:

last-slice-lost: the rest of many results waits for ever
- if self._slices:
-             asyncio.get_running_loop().call_soon(self._turn)
+ if len(self._slices) > 1:
+             asyncio.get_running_loop().call_soon(self._turn)
""",
    tests=("tests/broker/driver/test_long_steps.py",),
)

CUT = (
    *part(
        "broker/engine/runtime/results.py",
        r"""
slice-unsorted: results that are equal in their first key stay as they came where they are many
- yield from _sort_by(equal, each, *rest)
+ yield
""",
        tests=("tests/broker/core/test_slices.py",),
    ),
    *part(
        "broker/core/broker.py",
        r"""
slice-of-results-twice: a result at the end of a slice is given out with the next one, too
- results[begin : begin + each]
+ results[max(0, begin - 1) : begin + each]
""",
        tests=("tests/broker/core/test_slices.py",),
    ),
    *part(
        "broker/engine/runtime/matcher.py",
        r"""
slice-never-ends: all agents are fed in one slice
- if budget.spent >= budget.slice_max:
+ if budget.spent < 0:
""",
        tests=("tests/broker/driver/test_long_steps.py",),
    ),
    *part(
        "simulation/crashes/process.py",
        r"""
simulated-amid-work: the simulated process handles a message amid the work on another
- if self._troubled or self._works or self._inbox
+ if self._troubled or self._inbox
""",
        tests=("tests/simulation/test_crashes.py",),
    ),
)

TABLE = [
    *SEGMENT,
    *READING,
    *WRITER,
    *FILES,
    *GATE,
    *PROMISES,
    *KEEPER,
    *TURN,
    *SLICED,
    *DELIVERED,
    *CUT,
]
