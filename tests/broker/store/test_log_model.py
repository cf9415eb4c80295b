"""The log against a list: whatever is appended, read, acknowledged and taken, in any order.

The list keeps every row that ever was; what the database tells is compared with it. Retention is
not computed a second time: what it took is held against what it may take, must take and must leave.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, create_engine, event

from broker.store import GoneError, NotYetError, Retention, Row, StoreError, keeping, log, tables
from broker.store.results import ROW_BYTES

NAMES = ("spark", "archive", "panel")


@cache
def engine() -> Engine:
    """Empty tables in memory, made once: there are thousands of cases. Savepoints as in a store."""
    made = create_engine("sqlite://")

    @event.listens_for(made, "connect")
    def connected(connection, _record) -> None:
        connection.isolation_level = None

    @event.listens_for(made, "begin")
    def begun(connection) -> None:
        connection.exec_driver_sql("BEGIN")

    with made.begin() as connection:
        tables.create(connection)
    return made


@contextmanager
def database() -> Iterator[Connection]:
    """The empty tables, and empty again afterwards."""
    with engine().connect() as connection, connection.begin() as transaction:
        yield connection
        transaction.rollback()


class Model:
    """All rows that ever were, in order, and what the database is to hold of them."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.now_ms = 0
        self.offered: list[Row] = []  # everything, as it was appended first
        self.rows: list[tuple[Row, int]] = []  # what is there, and when it was stored
        self.gone: list[Row] = []
        self.earliest = 0
        self.end = 0
        self.consumers: dict[str, list[int]] = {}  # (offset, missed)

    # --- what is done -----------------------------------------------------------------------

    def append(self, steps: list[tuple[int, int | None, int, int]]) -> None:
        rows, at = [], self.end
        for step, name, end_ms, size in steps:
            offset = at + step
            chosen = f"again-{name}" if name is not None else f"id-{offset}"
            rows.append(Row(offset, chosen, "Frost", "team", "alerts", end_ms, b"x" * (size + 1)))
            at = offset + 1
        there = {row.id for row, _ in self.rows}
        repeats = 0
        for row in rows:
            if row.id in there:
                repeats += 1
            else:
                there.add(row.id)
                self.rows.append((row, self.now_ms))
        assert log.append(self.connection, rows, self.now_ms) == repeats
        self.offered += rows
        self.end = at

    def offer_again(self, back: int, count: int) -> None:
        """Some of the last rows once more, as a recovery does."""
        rows = self.offered[-back:][:count]
        kept = {row.offset: row.id for row, _ in self.rows}
        clash = [row for row in rows if row.offset in kept and kept[row.offset] != row.id]
        assert not clash
        if rows:
            assert log.append(self.connection, rows, self.now_ms) == len(rows)

    def offer_another(self) -> None:
        """A result under the offset of another one."""
        if self.rows:
            offset = self.rows[-1][0].offset
            other = Row(offset, "another", "Frost", "team", "alerts", 0, b"")
            with pytest.raises(StoreError, match="one history"):
                log.append(self.connection, [other], self.now_ms)

    def acknowledge(self, name: str, back: int) -> None:
        offset = self.end - back
        if offset > self.end:
            with pytest.raises(NotYetError):
                keeping.acknowledge(self.connection, name, offset, self.now_ms)
            return
        told = keeping.acknowledge(self.connection, name, offset, self.now_ms)
        before = self.consumers.setdefault(name, [self.earliest, 0])
        before[0] = max(before[0], offset, self.earliest)
        assert (told.offset, told.missed) == tuple(before)

    def forget(self, name: str) -> None:
        there = self.consumers.pop(name, None) is not None
        assert keeping.forget(self.connection, name) == there

    def retain(self, passed_ms: int, retention: Retention, keep_from: int | None) -> None:
        self.now_ms += passed_ms
        before = self.rows
        outcome = keeping.retain(self.connection, retention, self.now_ms, keep_from)
        taken = [one for one in before if one[0].offset < outcome.earliest]
        left = before[len(taken) :]
        read_by_all = min((one[0] for one in self.consumers.values()), default=0)
        for at, (row, stored_ms) in enumerate(before):
            kept_bytes = sum(ROW_BYTES + len(later.payload) for later, _ in before[at:])
            age_ms = self.now_ms - stored_ms
            may = (
                (row.offset < read_by_all and age_ms >= retention.acked_age_ms)
                or age_ms > retention.age_ms_max
                or kept_bytes > retention.size_bytes_max
            ) and (keep_from is None or row.offset < keep_from)
            assert may or at >= len(taken), f"{row.offset} should have stayed"
            if at == len(taken):
                assert not may or outcome.more, f"{row.offset} should have gone"
        self._account(outcome, taken, left, read_by_all)

    def _account(self, outcome, taken, left, read_by_all: int) -> None:
        assert outcome.rows == len(taken)
        unread = [row for row, _ in taken if row.offset >= read_by_all or not self.consumers]
        assert outcome.unread == len(unread)
        behind = {}
        for name, one in self.consumers.items():
            missed = [row for row, _ in taken if row.offset >= one[0]]
            if taken and one[0] < outcome.earliest:
                behind[name] = (one[0], outcome.earliest)
                one[1] += len(missed)
                one[0] = outcome.earliest
        assert {one.name: one.gap_end for one in outcome.lapsed} == {
            name: end for name, (_, end) in behind.items()
        }
        for one in outcome.lapsed:
            assert one.gap_begin <= behind[one.name][0]
        self.gone += [row for row, _ in taken]
        self.rows = left
        if taken:
            self.earliest = taken[-1][0].offset + 1

    # --- what must hold ---------------------------------------------------------------------

    def check(self) -> None:
        told = log.standing(self.connection)
        kept_bytes = sum(ROW_BYTES + len(row.payload) for row, _ in self.rows)
        assert (told.earliest, told.end) == (self.earliest, self.end)
        assert told.kept_bytes == kept_bytes
        assert told.taken == len(self.gone)
        assert log.read(self.connection, self.earliest, self.end) == [row for row, _ in self.rows]
        found = {one.name: [one.offset, one.missed] for one in keeping.consumers(self.connection)}
        assert found == self.consumers

    def read(self, begin: int, length: int) -> None:
        end = begin + length
        if begin < self.earliest:
            with pytest.raises(GoneError):
                log.read(self.connection, begin, end)
        elif end > self.end:
            with pytest.raises(NotYetError):
                log.read(self.connection, begin, end)
        else:
            expected = [row for row, _ in self.rows if begin <= row.offset < end]
            assert log.read(self.connection, begin, end) == expected

    def look_up(self, offset: int, ts_ms: int) -> None:
        ever = self.gone + [row for row, _ in self.rows]
        if self.earliest <= offset < self.end:
            ends = [row.end_ms for row in ever if row.offset <= offset]
            there = [row for row, _ in self.rows if row.offset <= offset]
            expected = max(ends) if there else None  # before the first that is left: nothing known
            assert log.ts_at(self.connection, offset) == expected
        else:
            with pytest.raises((GoneError, NotYetError)):
                log.ts_at(self.connection, offset)
        later = [row.offset for row, _ in self.rows if row.end_ms > ts_ms]
        if self.earliest <= offset <= self.end:
            ends = [row.end_ms for row, _ in self.rows if row.offset >= offset]
            least = min([end_ms for end_ms in ends if end_ms > ts_ms], default=None)
            assert log.earliest_end(self.connection, offset, ts_ms) == least
        found = log.first_offset_after(self.connection, ts_ms)
        if any(row.end_ms > ts_ms for row in self.gone):
            # The log has been past this time before what is left of it.
            assert found == min((row.offset for row, _ in self.rows), default=self.end)
        else:
            assert found == (later[0] if later else self.end)


small = st.integers(0, 40)
steps = st.tuples(
    st.sampled_from([0, 0, 0, 1, 5]), st.none() | st.integers(0, 3), st.integers(0, 30), small
)
retentions = st.builds(
    Retention,
    acked_age_ms=st.integers(0, 20),
    age_ms_max=st.integers(0, 60),
    size_bytes_max=st.integers(0, 12 * (ROW_BYTES + 20)),
)
doings = st.one_of(
    st.tuples(st.just("append"), st.lists(steps, min_size=1, max_size=8)),
    st.tuples(st.just("offer_again"), st.integers(1, 10), st.integers(1, 10)),
    st.tuples(st.just("offer_another")),
    st.tuples(st.just("acknowledge"), st.sampled_from(NAMES), st.integers(-2, 20)),
    st.tuples(st.just("forget"), st.sampled_from(NAMES)),
    st.tuples(st.just("retain"), st.integers(0, 30), retentions, st.none() | st.integers(0, 60)),
    st.tuples(st.just("read"), st.integers(-1, 60), st.integers(0, 20)),
    st.tuples(st.just("look_up"), st.integers(-1, 60), st.integers(-1, 31)),
)


@given(doings=st.lists(doings, min_size=5, max_size=40))
def test_the_log_is_a_list(doings):
    with database() as connection:
        model = Model(connection)
        for name, *arguments in doings:
            getattr(model, name)(*arguments)
            model.check()


@given(doings=st.lists(doings, min_size=5, max_size=40))
def test_the_log_is_a_list_where_a_pass_takes_little(doings):
    """A pass that ends early must say so, and the next one goes on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keeping, "TAKEN_MAX", 2)
        with database() as connection:
            model = Model(connection)
            for name, *arguments in doings:
                getattr(model, name)(*arguments)
                model.check()
