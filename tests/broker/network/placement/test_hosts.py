"""A host alone, with cells that only write down what is done to them."""

from collections import deque
from types import SimpleNamespace

import pytest

from broker.network.placement import cell_messages as said
from broker.network.placement import hosts
from broker.network.placement.cell_messages import Which
from broker.network.placement.hosts import (
    COME_FURTHER_MS,
    CellHosts,
    CellRefusedError,
    HostTools,
)
from broker.network.placement.mail import SAY_AGAIN_MS

WHICH = Which("a/1", 1, 2)


class StubCell:
    """A cell with nothing in it; `breaks` names what fails."""

    def __init__(self, hosted, life):
        self.which, self.life = hosted.which, life
        self.me = hosted.which.name
        self.fault, self.faults = None, 0
        self.asked = []
        self.saver = SimpleNamespace(
            put_off=self.put_off, revision=hosted.revision, ask=self.asked.append
        )
        self.log = []
        self.reports = SimpleNamespace(
            settle_asked=False,
            saver=self.saver,
            results=[],
            waiting=False,
            say_again=lambda: self.log.append(("say_again",)),
            taken=lambda next_: self.log.append(("taken", next_)),
        )
        self.says, self.frames = [], []
        self.breaks = ""

    def __getattr__(self, name):
        def note(*given):
            if name == self.breaks:
                raise RuntimeError(name)
            self.log.append((name, *given))

        return note

    def put_off(self, now):
        self.log.append(("put off", now))
        self.breaks = ""  # it is not tried again for long

    def take_out(self):
        frames, self.frames = self.frames, []
        return frames, []

    def to_say(self):
        says, self.says = self.says, []
        return says

    def next_wake(self):
        return 0


class Host:
    """The host `b` of cells whose home is `a`, or itself."""

    def __init__(self):
        self.now = 1_000
        self.sent, self.notes = [], []
        self.heard, self.to_cells, self.hurried = [], [], []
        self.refusal = ""
        self.via = {"a": "a"}
        self.counts = dict.fromkeys(
            ("cells_begun", "cells_ended", "cells_failed", "cells_overflowed"), 0
        )
        self.neighbours = dict.fromkeys(())
        self.mail = SimpleNamespace(
            on_said={},
            own=deque(),
            tell=lambda to, what: self.sent.append((to, what)),
            heard=lambda sender, what: self.mail.on_said[type(what)](sender, what),
            home_of=lambda name: name.partition("/")[0],
        )
        inner = SimpleNamespace(
            tree="t",
            join=self.neighbours.setdefault,
            leave=self.neighbours.pop,
            frames=self.frames,
            hear=lambda name, frames: self.heard.append((name, frames)),
            carry_out=lambda effects: None,
            is_sending=lambda: bool(self.to_cells),
        )
        tools = HostTools(
            "b",
            self.mail,
            inner,
            self.via,
            self.counts,
            2,
            lambda: self.now,
            tuple,
            self.hurried.append,
            self.note,
        )
        self.hosts = CellHosts(tools, self)

    def note(self, *line):
        self.notes.append(line)

    def frames(self):
        sent, self.to_cells = self.to_cells, []
        yield from sent

    def make(self, hosted, life, now):
        return StubCell(hosted, life)

    def install(self, cell, hosted, home, now):
        cell.log.append(("install", home))
        return self.refusal

    def revise(self, cell, revision, now):
        cell.log.append(("revise", revision.number))
        cell.saver.revision = revision.number
        return self.refusal

    def hear(self, home, what):
        self.mail.on_said[type(what)](home, what)

    def begin(self, which=WHICH, snapshot=b"state", home="a"):
        self.hear(home, said.Hosted(which, (), {}, b"", {}, {}, snapshot))
        return self.hosts.cells.get(which.name)

    def take(self):
        sent, self.sent = self.sent, []
        return sent


@pytest.fixture
def host():
    return Host()


def test_a_cell_that_is_to_go_hears_first_of_all_that_is_owed_to_it(host):
    cell = host.begin()
    host.hear("a", said.SaveAsked(WHICH))
    assert host.hurried == [cell.me]
    assert cell.asked == [host.now + COME_FURTHER_MS]
    host.hear("c", said.SaveAsked(WHICH))  # which is not its home
    assert host.hurried == [cell.me]


def test_a_term_that_does_not_run_here_is_asked_for(host):
    host.hear("a", said.Wanted(WHICH, ()))
    assert host.take() == [("a", said.Missing(WHICH))]


def test_nobody_but_its_home_has_a_cell_run_here(host):
    with pytest.raises(ValueError, match="not the home"):
        host.hear("c", said.Wanted(WHICH, ()))
    assert host.begin(home="c") is None


def test_a_cell_begins_from_its_snapshot_or_from_its_text(host):
    assert ("install", "a") not in host.begin().log
    other = host.begin(Which("a/2", 1, 1), snapshot=b"")
    assert ("install", "a") in other.log
    assert list(host.neighbours) == ["a/1#2", "a/2#1"]
    assert host.counts["cells_begun"] == 2
    assert host.hosts.cells["a/1#2"].life < other.life


def test_a_text_that_is_refused_here_leaves_nothing(host):
    host.refusal = "no such function"
    assert host.begin(snapshot=b"") is None
    assert host.take() == [("a", said.Refused(WHICH, "no such function"))]
    assert not host.neighbours


def test_more_cells_than_are_allowed_are_refused(host):
    host.begin()
    host.begin(Which("a/2", 1, 1))
    third = Which("a/3", 1, 1)
    assert host.begin(third) is None
    ((to, refused),) = host.take()
    assert to == "a"
    assert "cells_max" in refused.reason


def test_a_cell_that_cannot_be_made_here_is_refused_with_the_reason(host):
    def made(*_):
        raise CellRefusedError("it lacks a function")

    host.make = made
    host.begin()
    assert host.take() == [("a", said.Refused(WHICH, "it lacks a function"))]
    assert host.counts["cells_failed"] == 0


def test_what_a_home_says_reaches_the_life_that_it_names_alone(host):
    cell = host.begin()
    for life in (cell.life - 1, cell.life):
        host.hear("a", said.Taken(WHICH, life, 7))
        host.hear("a", said.Stored(WHICH, life, 3))
        host.hear("a", said.Noted(WHICH, life, {"c": ("T",)}))
    told = [entry for entry in cell.log if entry[0] in ("taken", "stored", "noted")]
    assert told == [("taken", 7), ("stored", 3, 1_000), ("noted", {"c": ("T",)}, 1_000)]


def test_a_cell_that_fails_ends_alone_and_its_home_is_told(host):
    cell, other = host.begin(), host.begin(Which("a/2", 1, 1))
    cell.breaks = "wake"
    host.hosts.wake()
    assert list(host.hosts.cells) == ["a/2#1"]
    assert ("wake", 1_000) in other.log
    assert host.take() == [("a", said.Refused(WHICH, "it failed at b: RuntimeError"))]
    assert host.notes[0][:2] == ("error", "cell_failed")


def test_a_snapshot_that_fails_ends_a_cell_but_not_at_its_home(host):
    guest, own = host.begin(), host.begin(Which("b/1", 1, 1), home="b")
    guest.breaks = own.breaks = "save_if_due"
    host.hosts.run()
    assert list(host.hosts.cells) == ["b/1#1"]
    assert own.faults == 1
    assert ("put off", 1_000) in own.log


def test_a_core_that_failed_goes_on_at_its_home_alone(host):
    guest, own = host.begin(), host.begin(Which("b/1", 1, 1), home="b")
    guest.fault = own.fault = ValueError("x")
    host.hosts.run()
    assert list(host.hosts.cells) == ["b/1#1"]
    assert own.fault is None
    assert host.counts["cells_failed"] == 2


def test_frames_go_in_on_the_tree_of_this_broker_and_come_out_to_it(host):
    cell = host.begin()
    host.to_cells = [(cell.me, b"in"), ("nobody#1", b"lost")]
    cell.frames = [b"out"]
    host.hosts.run()
    came = [entry for entry in cell.log if entry[0] in ("tree_is", "hear")]
    assert came == [("tree_is", "t", 1_000), ("hear", b"in", 1_000)]
    assert host.heard == [(cell.me, (b"out",))]


def test_what_a_cell_says_waits_for_a_way_to_its_home(host):
    cell = host.begin()
    del host.via["a"]
    cell.says = [said.Named(WHICH, cell.life, {})]
    host.hosts.run()
    assert host.take() == []
    host.via["a"] = "a"
    host.hosts.run()
    assert host.take() == [("a", said.Named(WHICH, cell.life, {}))]


def test_what_nobody_answers_is_said_again_after_a_while(host):
    cell = host.begin()
    cell.reports.waiting = True
    host.hosts.run()
    assert host.hosts.say_again_at == 1_000 + SAY_AGAIN_MS
    host.now += SAY_AGAIN_MS
    host.hosts.wake()
    assert ("say_again",) in cell.log


def test_a_cell_with_too_many_results_begins_again_where_its_home_can_follow(host, monkeypatch):
    monkeypatch.setattr(hosts, "RESULTS_WAITING_MAX", 2)
    cell = host.begin()
    cell.reports.results = [0] * 3
    host.hosts.run()
    assert host.take() == [("a", said.Missing(WHICH))]
    assert not host.hosts.cells


def test_a_forgotten_home_takes_its_cells_with_it(host):
    host.begin()
    own = host.begin(Which("b/1", 1, 1), home="b")
    host.hosts.forget("a")
    assert list(host.hosts.cells) == ["b/1#1"]
    assert ("forget", "a", 1_000) in own.log
    assert list(host.neighbours) == ["b/1#1"]


def test_a_term_of_the_same_name_of_a_home_that_lost_its_disk_takes_the_place(host):
    host.begin()
    again = Which("a/1", 9, 2)
    host.hear("a", said.Wanted(again, ()))
    assert host.take() == [("a", said.Missing(again))]
    assert not host.hosts.cells


def revised(number, life):
    return said.Revised(WHICH, life, said.TextRevision(number, b"", (), begins=False))


def test_texts_are_taken_up_in_their_order_and_once(host):
    cell = host.begin()
    for number in (1, 1, 3, 2):
        host.hear("a", revised(number, cell.life))
    host.hear("a", revised(3, cell.life - 1))  # to a process that is no more
    assert [entry[1] for entry in cell.log if entry[0] == "revise"] == [1, 2]


def test_a_text_that_is_refused_here_ends_the_cell_which_its_home_has_as_it_was(host):
    cell = host.begin()
    host.refusal = "too long"
    host.hear("a", revised(1, cell.life))
    (to, what), *_ = host.take()
    assert (to, what.which) == ("a", WHICH)
    assert "too long" in what.reason
    assert not host.hosts.cells
