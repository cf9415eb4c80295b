"""Nothing leaves before the record behind which it stands, and each line keeps its order."""

from broker.core.effects import (
    RESULT_BYTES,
    Acknowledge,
    CommitGate,
    CommitMark,
    DisownResults,
    Emission,
    Emit,
    Enlist,
    ReleaseResults,
    Reply,
)
from broker.network.effects import SendFrame


def acknowledge(after):
    return Acknowledge((f"t{after}",), "taken", after)


def reply(request, after=1):
    return Reply("to", "me", request, b"{}", after=after)


def frame(link, after, *, control=True):
    return SendFrame(link, b"", control, after=after)


def test_what_rests_on_a_record_leaves_when_that_is_durable():
    gate = CommitGate(4)
    held = [acknowledge(5), Emit((), 5), CommitMark(6, "snapshot"), acknowledge(7)]
    assert [gate.put(one) for one in held] == [[]] * 4
    assert len(gate) == 4
    assert gate.commit(4) == []
    assert gate.commit(6) == held[:3]
    assert gate.commit(7) == held[3:]
    assert len(gate) == 0


def test_what_rests_on_a_durable_record_leaves_at_once_behind_nothing_else():
    gate = CommitGate(4)
    assert gate.put(acknowledge(4)) == [acknowledge(4)]
    gate.put(acknowledge(5))
    assert gate.put(acknowledge(4)) == []
    assert gate.commit(5) == [acknowledge(5), acknowledge(4)]


def test_a_frame_waits_for_those_of_its_link_and_class_alone():
    gate = CommitGate()
    assert gate.put(frame("b", 1)) == []
    assert gate.put(acknowledge(0)) == [acknowledge(0)]
    assert gate.put(frame("c", 0)) == [frame("c", 0)]
    assert gate.put(frame("b", 0, control=False)) == [frame("b", 0, control=False)]
    assert gate.put(frame("b", 0)) == []
    assert gate.frames_waiting == 2
    assert len(gate) == 0
    assert gate.commit(1) == [frame("b", 1), frame("b", 0)]


def test_an_answer_waits_for_the_change_before_it_and_nothing_else_does():
    gate = CommitGate()
    changes = [Enlist((), (("anna", name),), 1) for name in "ab"]
    held = [changes[0], reply("first"), acknowledge(1), changes[1], reply("second"), reply("third")]
    for one in held:
        gate.put(one)
    assert gate.commit(1) == [changes[0], acknowledge(1), changes[1]]
    assert len(gate) == 3
    assert gate.put(reply("fourth")) == []
    assert gate.listed() == [reply("first")]
    assert gate.listed() == [reply("second"), reply("third"), reply("fourth")]
    assert gate.put(reply("fifth")) == [reply("fifth")]


def emit(*offsets, after=1):
    rows = [Emission(f"r{at}", 0, "anna", f"S{at}", "log", b"{}", at) for at in offsets]
    return Emit(tuple(rows), after)


def test_results_wait_at_the_fence_and_hold_up_nothing_but_marks():
    gate = CommitGate(1)
    gate.fence = 5
    assert gate.put(emit(3, 4)) == [emit(3, 4)]
    assert gate.put(emit(5)) == []
    assert gate.put(acknowledge(1)) == [acknowledge(1)]
    assert gate.put(CommitMark(1, "settled")) == []  # it tells of all results before it
    assert len(gate) == 2
    assert gate.move_fence(ReleaseResults(6)) == [emit(5), CommitMark(1, "settled")]
    assert gate.put(CommitMark(1, "settled")) == [CommitMark(1, "settled")]


def test_what_the_fence_lets_go_still_waits_for_its_record():
    gate = CommitGate()
    gate.fence = 0
    assert gate.put(emit(0)) == []
    assert gate.move_fence(ReleaseResults(1)) == []
    assert gate.commit(1) == [emit(0)]


def test_what_was_taken_over_is_given_to_nobody_and_keeps_its_offset():
    gate = CommitGate(1)
    gate.fence = 0
    gate.put(emit(0, 1, 2))
    assert gate.move_fence(DisownResults((("anna", "S0"), ("anna", "S2")), 2)) == []
    [left] = gate.move_fence(ReleaseResults(3))
    rows = [(row.offset, row.payload, row.is_silent) for row in left.results]
    # The heir has the first in its log, and will find the last again.
    assert rows == [(0, b"{}", True), (1, b"{}", False), (2, b"", False)]


def test_what_was_taken_over_is_disowned_before_its_record_is_durable_as_well():
    """A process that begins has results of before in line, and hears of the take-over first."""
    gate = CommitGate()
    gate.fence = 0
    gate.put(emit(0))
    gate.move_fence(DisownResults((("anna", "S0"),), 0))
    assert gate.commit(1) == []
    [left] = gate.move_fence(ReleaseResults(1))
    assert left.results[0].payload == b""


def test_the_bytes_of_what_waits_at_the_fence_are_counted():
    gate = CommitGate(1)
    gate.fence = 0
    gate.put(emit(0, 1))
    gate.put(CommitMark(1, "settled"))
    gate.put(emit(2))
    assert gate.fenced_bytes == 3 * (RESULT_BYTES + len(b"{}"))
    gate.move_fence(DisownResults((("anna", "S2"),), 0))
    assert gate.fenced_bytes == 3 * RESULT_BYTES + 2 * len(b"{}")
    gate.move_fence(ReleaseResults(2))
    assert gate.fenced_bytes == RESULT_BYTES
    gate.move_fence(ReleaseResults(3))
    assert gate.fenced_bytes == 0
