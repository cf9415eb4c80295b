"""Faults in the store: what is reported, what is kept, and what a failing database does to it.

Owns the table for `broker/store`. Must not know how faults are run. Invariant: as for fault.Fault.
"""

from __future__ import annotations

from tests.planted.fault import part

STORE = ("tests/broker/store",)

LOG = part(
    "broker/store/log.py",
    r"""
offset-taken-twice: what is offered again before the end is stored again
- fresh = [row for row in rows if row.offset >= log.end]
+ fresh = [row for row in rows if row.offset >= log.earliest]

two-histories: another result under an offset that is taken is passed over
- if stored != sought[offset]:
+ if stored == "":

ids-within-a-batch: a result that comes twice in one batch is not seen
- seen.add(row.id)
+ pass

end-of-the-stored: an offset that is left out at the end is given again
- {"to": fresh[-1].offset + 1,
+ {"to": (added or fresh)[-1].offset + 1,

peak-forgotten: event times of the log begin anew with each batch
- peak_ms = _insert(connection, added, now_ms, log.peak_ms)
+ peak_ms = _insert(connection, added, now_ms, None)

part-of-a-range: a range that goes beyond the end is answered in part
- if end > log.end or begin > log.end:
+ if begin > log.end:

gone-is-empty: what retention took is answered as if there had been nothing
- if begin < log.earliest:
+ if end < log.earliest:

range-with-its-end: a range includes its end
- OUTBOX.c.offset < bindparam("to"))
+ OUTBOX.c.offset <= bindparam("to"))

at-that-time: a result that ends at the time counts as after it
- elif row.peak_ms > ts_ms:
+ elif row.peak_ms >= ts_ms:
""",
    tests=STORE,
    only="outbox or databases",
)

KEEPING = part(
    "broker/store/keeping.py",
    r"""
fastest-consumer: results go when one consumer has them
- read_by_all = min((consumer.offset
+ read_by_all = max((consumer.offset

ack-ahead: what is not there yet is acknowledged
- if offset > log.end:
+ if offset > log.end + 5:

keep-from-taken: what the broker itself still needs goes
- if not (done or must) or (keep_from is not None and offset >= keep_from):
+ if not (done or must):

age-turned: what is younger goes
- must = age_ms > retention.age_ms_max or
+ must = age_ms < retention.age_ms_max or

size-unbounded: the log grows beyond its size
- or kept_bytes > fits_bytes
+ or kept_bytes > fits_bytes * 100

gap-uncounted: a consumer goes on over a gap that nobody counted
- missed=one.missed + missed,
+ missed=one.missed,

gap-overall: results that the consumer had are counted as missed
- if one.offset <= offset < earliest)
+ if offset < earliest)
""",
    tests=STORE,
    only="model or databases",
)

ACKS = part(
    "broker/store/keeping.py",
    r"""
ack-goes-back: an older acknowledgement takes a newer one back
- offset=max(before.offset, offset)
+ offset=offset
""",
    tests=STORE,
    only="outbox",
)

ERRORS = part(
    "broker/store/errors.py",
    r"""
savepoint-to-blame: a full disk that ended the transaction is laid to the work
- seen = seen.__cause__ or seen.__context__
+ seen = None
""",
    tests=STORE,
    only="failing or test_store",
)

WRITER = part(
    "broker/store/store.py",
    r"""
savepoint-left-out: work that fails leaves behind what it did before
- savepoint.rollback()
+ savepoint.commit()

broken-connection-kept: a connection that failed is used again
- connection, self._connection = self._connection, None
+ connection = self._connection

commit-twice: a commit that took place although it was not told is carried out again
- return number == self._unsure[0]
+ return number == self._unsure[0] + 1

commit-remembered: a commit is taken for one that came before it
- self._number, self._unsure = number, NOTHING_UNSURE
+ self._number = number

waits-for-ever: a store whose database fails cannot be closed
- if self._waited_s >= CLOSE_WAIT_S:
+ if self._waited_s >= CLOSE_WAIT_S * 1e6:
""",
    tests=STORE,
    only="store or failing or databases",
)

STORES = part(
    "broker/store/store.py",
    r"""
full-without-end: who holds back is never told that there is room
- if self._was_full and not self.full():
+ if self._was_full and self.full():

bytes-left-behind: what was written goes on counting as waiting
- self.waiting_bytes -= item.size_bytes
+ pass
""",
    tests=STORE,
    only="test_store",
)

OPENING = part(
    "broker/store/parts.py",
    r"""
newer-overwritten: a newer format is taken for an older one
- if there > part.version:
+ if there > part.version + 1:

step-left-out: the last step of a migration is left out
- for version in range(there, part.version):
+ for version in range(there, part.version - 1):

strangers-database: another program's database is written to
- if names and connection.dialect.name == "sqlite":
+ if names and connection.dialect.name == "other":
""",
    tests=STORE,
    only="opening or formats or databases",
)

CONNECTING = part(
    "broker/store/connecting.py",
    r"""
not-synced: a commit is told before the disk has it
- level = "FULL" if mode == "wal" else "EXTRA"
+ level = "NORMAL" if mode == "wal" else "EXTRA"

two-brokers: a second broker may write beside the first
- fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
+ fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)

open-to-all: others on the machine may read what sensors say
- os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
+ os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644
""",
    tests=STORE,
    only="store or opening or databases",
)

LISTING = part(
    "broker/store/listing.py",
    r"""
name-twice: a subscription that comes again stands there twice, or not at all
- gone.append(_remove(connection, (entry.subscriber, entry.subscription)))
+ gone.append(None)

text-for-ever: the text of what was cancelled stays
-         connection.execute(delete(TEXTS).where(TEXTS.c.number == number))
+         pass

text-of-another: what comes together is taken for one text
- number = numbers.get(entry.text)
+ number = next(iter(numbers.values()), None)

order-of-names: what is listed loses the order in which it came
- .order_by(CATALOGUE.c.place)
+ .order_by(CATALOGUE.c.subscription)
""",
    tests=STORE,
    only="catalogue or databases",
)

LISTED = part(
    "broker/core/recovery/durable_listed.py",
    r"""
rest-installed: what was cancelled is there again when the journal is gone
- if one.key not in wanted:
+ if one.key in wanted and False:

struck-out-stays: what a crash kept from the catalogue is made up for in part
- return Enlist(coming, tuple(known), after) if
+ return Enlist(coming, (), after) if

proof-lost: what a user who had logged in had installed is anybody's to change
- submitted = SpecificationSubmitted(client, "", text, proven=proven)
+ submitted = SpecificationSubmitted(client, "", text)
""",
    tests=("tests/broker/core/test_durable_listed.py",),
)

SESSIONS = part(
    "broker/driver/mqtt_sessions.py",
    r"""
needed-taken: retention takes results before kept sessions have them
- log.keep_from = server.results_needed
+ log.keep_from = lambda: None
""",
    tests=("tests/broker/test_sessions.py",),
)

MARKS = part(
    "broker/mqtt/storage/batches.py",
    r"""
mark-left-behind: the first session that outlasts its connection gets results from before it
- if self.results_mark != self.results_durable:
+ if False:
""",
    tests=("tests/broker/test_sessions.py",),
)

MOVED = part(
    "broker/journal/segment.py",
    r"""
another-folder: what is written behind nothing is told to be durable
- if files.identity(self.folder) != self._place:
+ if files.identity(self.folder) is None:

deleted-file: what goes with a deleted file is told to be durable
- if not files.has_name(self._file):
+ if files.has_name(self._file) is None:

missing-file: what comes behind a deleted file is told to be durable
- elif self._names and files.identity(self.folder / self._names[-1].file) is None:
+ elif self._names and files.identity(self.folder) is None:
""",
    tests=("tests/broker/journal/test_faults.py",),
)

TRIED = part(
    "broker/journal/reading.py",
    r"""
not-tried: a folder that cannot be written is found out when sensors wait
- files.try_to_write(folder)
+ pass
""",
    tests=("tests/broker/journal/test_faults.py",),
)

GIVEN_UP = part(
    "broker/mqtt/sessions/departures.py",
    r"""
given-up-in-silence: nobody is told which session ended with what was acknowledged
- hub.given_up[outgoing.client_id] =
+ hub.given_up[""] =
""",
    tests=("tests/broker/mqtt/test_server.py",),
    only="full",
)

SWEPT = part(
    "broker/engine/pattern/agent/staged_agent.py",
    r"""
swept-forgotten: after a restart silent groups go at another time
- self._begin, self._swept = state["begin"], state.get("swept", WATERMARK_NONE)
+ self._begin, self._swept = state["begin"], WATERMARK_NONE
""",
    tests=("tests/broker/core/test_state_visible.py",),
)

TABLE = [
    *MOVED,
    *TRIED,
    *GIVEN_UP,
    *SWEPT,
    *LISTING,
    *LISTED,
    *SESSIONS,
    *MARKS,
    *LOG,
    *KEEPING,
    *ACKS,
    *ERRORS,
    *WRITER,
    *STORES,
    *OPENING,
    *CONNECTING,
]
