"""What is promised waits: for the journal, then for the outbox, and in order."""

import asyncio

import pytest

from broker import logs
from broker.core.effects import (
    RESULT_BYTES,
    Acknowledge,
    Append,
    Emission,
    Emit,
    Enlist,
    Entry,
    ReleaseResults,
    Reply,
)
from broker.driver.promises import IntakeGate, Promises


class Outside:
    """Keeps what it is to carry out, as (kind, what)."""

    def __init__(self):
        self.done = []
        self.failing = set()

    def acknowledge(self, effect):
        if effect.tokens[0] in self.failing:
            raise RuntimeError("planted")
        self.done += [("taken", token) for token in effect.tokens]

    def reply(self, effect):
        self.done.append(("reply", effect.request))

    def emit(self, effect):
        self.done += [("result", one.offset) for one in effect.results]

    publish = note = fail = hold = None


class Outbox:
    """Keeps groups until they are `stored`."""

    def __init__(self):
        self.groups = []
        self.behind = False

    def append(self, results, done):
        self.groups.append(([one.offset for one in results], done))

    def enlist(self, effect, done):
        self.groups.append(([one.subscription for one in effect.coming], done))

    def stored(self, error=None):
        offsets, done = self.groups.pop(0)
        done(error)
        return offsets

    def full(self):
        return self.behind


class Journal:
    """Tells what a test tells it."""

    def __init__(self):
        self.durable = self.last = self.waiting_bytes = 0

    def append(self, number, data):
        self.last = number
        self.waiting_bytes += len(data)


class Scene:
    def __init__(self, **options):
        self.outside, self.outbox, self.journal = Outside(), Outbox(), Journal()
        self.gate = IntakeGate(
            lambda: self.calls.append("hold"), lambda: self.calls.append("release")
        )
        self.calls = []
        self.promises = Promises(self.outside, self.outbox, self.gate, **options)
        self.promises.begin(self.journal)
        self.offset = 0

    def told(self, number, results=0, size=1):
        """What a message of this number leads to."""
        self.promises.append(Append(number, bytes(size)))
        emissions = []
        for _ in range(results):
            emissions.append(
                Emission(f"r{self.offset}", 0, "anna", "Hot", "alerts", b"{}", self.offset)
            )
            self.offset += 1
        if emissions:
            self.promises.emit(Emit(tuple(emissions), number))
        self.promises.reply(Reply("to", "me", f"r{number}", b"{}", after=number))
        self.promises.acknowledge(Acknowledge((f"t{number}",), "taken", number))

    def durable(self, number):
        self.journal.durable = number
        self.journal.waiting_bytes = 0
        self.promises.durable(number)


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setattr(logs, "tell", lambda *_, **__: None)


def both(number):
    return [("reply", f"r{number}"), ("taken", f"t{number}")]


def test_nothing_is_said_before_its_record_is_durable():
    scene = Scene()
    for number in (1, 2, 3):
        scene.told(number)
    assert scene.outside.done == []
    scene.durable(2)
    assert scene.outside.done == both(1) + both(2)
    scene.durable(3)
    assert scene.outside.done[4:] == both(3)


def test_results_go_out_once_they_are_stored_in_one_group_for_each_commit():
    scene = Scene()
    scene.told(1, results=2)
    scene.told(2, results=1)
    scene.told(3, results=1)
    assert scene.outbox.groups == []
    scene.durable(2)
    assert scene.outside.done == both(1) + both(2)  # which do not wait for the outbox
    scene.durable(3)
    assert [offsets for offsets, _ in scene.outbox.groups] == [[0, 1, 2], [3]]
    said = len(scene.outside.done)
    scene.outbox.stored()
    assert scene.outside.done[said:] == [("result", 0), ("result", 1), ("result", 2)]
    scene.outbox.stored()
    assert scene.outside.done[-1] == ("result", 3)


def test_an_answer_waits_for_the_catalogue_too_and_nothing_else_does():
    """Those behind it wait for their turn; an event that is taken does not."""
    scene = Scene()
    listed = Entry("anna", "Hot", 1, "alerts", "me", False, 5, "text")
    scene.promises.append(Append(1, b"x"))
    scene.promises.enlist(Enlist((listed,), (), 1))
    for name in ("accepted", "active"):
        scene.promises.reply(Reply("to", "me", name, b"{}", after=1))
    scene.promises.acknowledge(Acknowledge(("text",), "taken", 1))
    scene.told(2)
    assert scene.outbox.groups == []
    scene.durable(2)
    assert scene.outside.done == [("taken", "text"), ("taken", "t2")]
    assert scene.outbox.stored() == ["Hot"]
    assert scene.outside.done[2:] == [("reply", "accepted"), ("reply", "active"), ("reply", "r2")]
    scene.told(3)
    scene.durable(3)
    assert scene.outside.done[5:] == both(3)


def test_a_catalogue_that_cannot_be_written_is_a_fault_and_nobody_waits_for_ever():
    scene = Scene()
    scene.promises.append(Append(1, b"x"))
    scene.promises.enlist(Enlist((), (("anna", "Hot"),), 1))
    scene.promises.reply(Reply("to", "me", "gone", b"{}", after=1))
    scene.durable(1)
    scene.outbox.stored(RuntimeError("planted"))
    assert scene.promises.faults == 1
    assert scene.outside.done == [("reply", "gone")]


def test_what_rests_on_durable_records_waits_only_for_what_is_before_it():
    scene = Scene()
    scene.told(1)
    scene.promises.acknowledge(Acknowledge(("early",), "refused", 0))
    assert scene.outside.done == []
    scene.durable(1)
    assert scene.outside.done == [*both(1), ("taken", "early")]
    scene.promises.acknowledge(Acknowledge(("now",), "refused", 1))
    assert scene.outside.done[-1] == ("taken", "now")


def test_settled_means_that_all_before_it_is_durable_and_stored():
    async def run():
        scene = Scene()
        scene.told(1, results=1)
        future = scene.promises.settled(1)
        scene.told(2, results=1)
        scene.durable(2)
        assert [offsets for offsets, _ in scene.outbox.groups] == [[0], [], [1]]
        scene.outbox.stored()
        assert not future.done()
        scene.outbox.stored()
        assert future.done()

    asyncio.run(run())


def test_intake_is_held_while_too_much_waits_for_the_journal():
    scene = Scene(waiting_bytes_max=100)
    scene.told(1, size=100)
    assert scene.calls == []
    scene.told(2, size=1)
    assert scene.calls == ["hold"]
    assert scene.gate.reasons() == []  # that happens under load
    scene.durable(2)
    assert scene.calls == ["hold", "release"]


def test_intake_is_held_while_too_much_waits_for_the_outbox():
    scene = Scene()
    scene.outbox.behind = True
    scene.told(1, results=1)
    scene.durable(1)
    assert scene.calls == ["hold"]
    scene.promises.room()
    assert scene.calls == ["hold", "release"]


def test_a_journal_in_trouble_holds_intake_and_says_why():
    scene = Scene()
    scene.promises.trouble("the disk is full")
    assert (scene.calls, scene.gate.reasons()) == (["hold"], ["the disk is full"])
    scene.promises.trouble("")
    assert (scene.calls, scene.gate.reasons()) == (["hold", "release"], [])


def test_a_result_that_cannot_be_stored_at_all_is_not_passed_over():
    scene = Scene()
    scene.told(1, results=1)
    scene.durable(1)
    scene.outbox.stored(ValueError("another history"))
    assert ("result", 0) not in scene.outside.done
    assert scene.promises.faults == 1
    assert scene.gate.reasons() == ["results cannot be stored: another history"]


def test_an_effect_that_fails_stops_no_other():
    scene = Scene()
    scene.outside.failing.add("t1")
    scene.told(1)
    scene.told(2)
    scene.durable(2)
    assert scene.outside.done == [("reply", "r1"), *both(2)]
    assert scene.promises.faults == 1


def test_intake_is_held_while_too_much_waits_for_the_stand_in_and_says_for_which():
    scene = Scene(waiting_bytes_max=2 * (RESULT_BYTES + 2))
    scene.promises.stand_in = lambda: "roof"
    scene.promises.commits.fence = 0
    scene.told(1, results=2)
    scene.durable(1)
    assert scene.calls == []
    scene.told(2, results=1)
    scene.durable(2)
    assert scene.calls == ["hold"]
    assert scene.gate.reasons() == ["results wait for the answer of the stand-in `roof`"]
    scene.promises.kept[ReleaseResults](ReleaseResults(1))
    assert scene.calls == ["hold"]  # those of one step leave together
    scene.promises.kept[ReleaseResults](ReleaseResults(2))
    assert scene.calls == ["hold", "release"]
    assert scene.promises.commits.fenced_bytes == RESULT_BYTES + 2
    scene.promises.kept[ReleaseResults](ReleaseResults(3))
    assert scene.promises.commits.fenced_bytes == 0
