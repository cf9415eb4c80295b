"""Nothing leaves before the record behind which it stands, and each line keeps its order."""

from broker.core.commit_gate import CommitGate, CommitMark
from broker.core.effects import Acknowledge, Emit, Enlist, Reply, SendFrame


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
