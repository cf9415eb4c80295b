"""Mistakes that lose or double something are found, each within 200 seeds.

Each test plants one mistake, in the core or in what drives it, and shows that a run tells of it.
"""

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from broker.core import messages
from broker.core.effects import Acknowledge, CommitGate, Emit, Enlist, Reply
from broker.core.recovery import durable_told, records
from broker.core.recovery.durable import DurableBroker
from broker.core.recovery.durable_listed import RecoveryError
from broker.core.recovery.durable_state import RestorableBroker
from broker.core.recovery.records import CorruptError
from broker.engine.ingest.repeats import Repeats
from broker.engine.ingest.source_clocks import SourceClocks
from simulation.account import CheckFailedError
from simulation.crashes import scenario
from simulation.crashes.journal import SimulatedJournal
from simulation.crashes.process import Process
from simulation.crashes.scenario import CrashRunFailedError
from simulation.disk import Disk

SEEDS = 200

pytestmark = pytest.mark.timeout(120)


def found():
    """What the first run says that tells of the mistake."""
    for seed in range(SEEDS):
        error = told(seed)
        if error is not None:
            # Not any error, but one of a check of the run or of recovery.
            assert isinstance(error.__cause__, CheckFailedError | RecoveryError | CorruptError)
            command = f"seed {seed} (repeat it: python -m simulation --seed {seed}): "
            assert str(error).startswith(command)
            return str(error).removeprefix(command)
    raise AssertionError(f"not found within {SEEDS} seeds")


def told(seed):
    try:
        scenario.run(seed)
    except CrashRunFailedError as error:
        return error
    return None


def test_an_acknowledgement_before_the_sync(monkeypatch):
    put = CommitGate.put
    monkeypatch.setattr(
        CommitGate,
        "put",
        lambda self, effect: [effect] if isinstance(effect, Acknowledge) else put(self, effect),
    )
    assert found()


def test_a_result_before_the_sync(monkeypatch):
    put = CommitGate.put
    monkeypatch.setattr(
        CommitGate,
        "put",
        lambda self, effect: [effect] if isinstance(effect, Emit) else put(self, effect),
    )
    assert found()


def test_a_memory_for_repeats_that_is_forgotten(monkeypatch):
    monkeypatch.setattr(Repeats, "restore", lambda self, events: None)
    assert found()


def test_offsets_that_begin_where_the_outbox_ends(monkeypatch):
    recover = DurableBroker.recover.__func__

    def reusing(cls, options, limits, snapshot, told, outbox_end, *more):
        broker, effects = recover(cls, options, limits, snapshot, told, outbox_end, *more)
        broker.outbox_end = outbox_end
        return broker, effects

    monkeypatch.setattr(DurableBroker, "recover", classmethod(reusing))
    assert found()


def test_results_that_the_outbox_lacks_are_not_given_again(monkeypatch):
    recover = DurableBroker.recover.__func__

    def forgetting(cls, *given):
        broker, effects = recover(cls, *given)
        return broker, [one for one in effects if not isinstance(one, Emit)]

    monkeypatch.setattr(DurableBroker, "recover", classmethod(forgetting))
    assert found()


def test_a_catalogue_that_is_not_brought_into_step_at_a_start(monkeypatch):
    recover = DurableBroker.recover.__func__

    def forgetting(cls, *given):
        broker, effects = recover(cls, *given)
        return broker, [one for one in effects if not isinstance(one, Enlist)]

    monkeypatch.setattr(DurableBroker, "recover", classmethod(forgetting))
    assert "listed" in found()


def test_an_answer_before_the_catalogue_has_it(monkeypatch):
    released = CommitGate._released

    def hasty(self, ready):
        replies = [one for one in ready if isinstance(one, Reply)]
        return [*released(self, [one for one in ready if one not in replies]), *replies]

    monkeypatch.setattr(CommitGate, "_released", hasty)
    assert "is answered, and not listed so" in found()


def test_a_snapshot_newer_than_the_outbox(monkeypatch):
    monkeypatch.setattr(
        Process, "_may_write", lambda self, number, outbox_end: self.journal.durable >= number
    )
    assert found()


def test_a_number_that_a_torn_record_had_before(monkeypatch):
    """The process goes on behind what was torn, in the same file."""
    begin = SimulatedJournal._begin

    def same(self, first):
        if self._segments and not self.waiting:
            name = self._segments[-1][0]
            self._salt = records.read_header(self._disk.read(name)).salt
            return
        begin(self, first)

    def settle(self, name, good_bytes):
        self._disk.sync(name)

    monkeypatch.setattr(SimulatedJournal, "_begin", same)
    monkeypatch.setattr(SimulatedJournal, "_settle", settle)
    assert found()


def test_records_that_are_dropped_too_early(monkeypatch):
    write_snapshot = SimulatedJournal.write_snapshot

    def early(self, number, data):
        self.trim(number)
        write_snapshot(self, number, data)

    monkeypatch.setattr(SimulatedJournal, "write_snapshot", early)
    assert found()


@pytest.mark.long  # found late
def test_more_records_are_dropped_than_the_snapshot_stands_for(monkeypatch):
    trim = SimulatedJournal.trim

    def greedy(self, number):
        trim(self, number)
        while len(self._segments) > 1:
            name, _ = self._segments.pop(0)
            self._remove(name)

    monkeypatch.setattr(SimulatedJournal, "trim", greedy)
    assert found()


def test_a_clock_that_begins_anew(monkeypatch):
    monkeypatch.setattr(SourceClocks, "restore", lambda self, state: None)
    assert found()


def test_time_that_is_not_written_down(monkeypatch):
    written = durable_told.written

    def silent(message, now):
        return b"" if isinstance(message, messages.Woken) else written(message, now)

    monkeypatch.setattr(durable_told, "written", silent)
    assert found()


def test_a_torn_record_that_is_taken_for_whole(monkeypatch):
    """Its check sum is not looked at."""
    record = records._record

    def trusting(view, at, salt):
        found = record(view, at, salt)
        if found != "the check sum is wrong":
            return found
        _, size, number, behind = records._RECORD.unpack_from(view, at)
        return number, behind, at + records.RECORD_HEADER_BYTES + size

    monkeypatch.setattr(records, "_record", trusting)
    assert found()


def test_a_cancelled_text_that_comes_back(monkeypatch):
    written = durable_told.written

    def forgetful(message, now):
        cancelled = isinstance(message, messages.CancelRequested)
        return b"" if cancelled else written(message, now)

    monkeypatch.setattr(durable_told, "written", forgetful)
    assert found()


def test_what_was_read_is_taken_for_durable(monkeypatch):
    monkeypatch.setattr(SimulatedJournal, "_settle", lambda self, name, good_bytes: None)
    assert found()


def test_a_failed_sync_that_is_tried_again(monkeypatch):
    monkeypatch.setattr(SimulatedJournal, "give_up", lambda self: None)
    assert found()


def test_a_folder_that_is_not_synced_before_records_are_dropped(monkeypatch):
    write_snapshot = SimulatedJournal.write_snapshot

    def hasty(self, number, data):
        with monkeypatch.context() as without:
            without.setattr(Disk, "sync_folder", lambda disk: None)
            write_snapshot(self, number, data)

    monkeypatch.setattr(SimulatedJournal, "write_snapshot", hasty)
    assert found()


def test_promises_that_overtake_each_other(monkeypatch):
    """The newest first."""

    def backwards(self, number):
        self._promises.reverse()
        return commit(self, number)

    commit = CommitGate.commit
    monkeypatch.setattr(CommitGate, "commit", backwards)
    assert found()


def test_silence_that_goes_on_while_there_is_no_process(monkeypatch):
    """A start is not written down as one, so that nobody knows how long there was none."""
    again = DurableBroker._again

    def as_ever(core, now):
        core.now = max(core.now, now)

    def silent(self, record):
        with monkeypatch.context() as context:
            context.setattr(RestorableBroker, "resume", as_ever)
            return again(self, record)

    monkeypatch.setattr(DurableBroker, "_again", silent)
    assert found()


def test_an_offset_that_is_left_out(monkeypatch):
    promised = DurableBroker._promised

    def skipping(self, effect):
        self.outbox_end += isinstance(effect, Emit) and len(effect.results) > 1
        return promised(self, effect)

    monkeypatch.setattr(DurableBroker, "_promised", skipping)
    assert found()


def test_a_retained_advertisement_that_outlives_its_source(monkeypatch):
    def only_more(self, publications):
        for one in publications:
            if one.retain and one.payload:
                self._retained[one.topic] = one.payload

    monkeypatch.setattr(DurableBroker, "_retain", only_more)
    assert found()


def test_a_counter_that_begins_anew(monkeypatch):
    restore = RestorableBroker.restore

    def forgetful(self, state):
        ledger = {**state["ledger"], "detected": [0, 0, 0, {}]}
        restore(self, {**state, "ledger": ledger})

    monkeypatch.setattr(RestorableBroker, "restore", forgetful)
    assert found()


def test_what_waits_for_a_record_waits_for_the_one_before(monkeypatch):
    promised = DurableBroker._promised

    def early(self, effect):
        effect = promised(self, effect)
        if isinstance(effect, Acknowledge | Emit):
            return replace(effect, after=effect.after - 1)
        return effect

    monkeypatch.setattr(DurableBroker, "_promised", early)
    assert found()


def test_old_records_under_new_settings(monkeypatch):
    """What the process before was told is judged by the settings of this one."""
    read, recover = durable_told.read, DurableBroker.recover.__func__
    current = []

    def remembering(cls, options, *given):
        current.append({**to_builtins(options), "tables": {}})
        return recover(cls, options, *given)

    def forgetful(data):
        message, now = read(data)
        if isinstance(message, durable_told.Opened):
            message = replace(message, options=current[-1])
        return message, now

    monkeypatch.setattr(DurableBroker, "recover", classmethod(remembering))
    monkeypatch.setattr(durable_told, "read", forgetful)
    assert found()
