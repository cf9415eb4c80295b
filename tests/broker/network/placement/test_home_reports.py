"""What a cell tells its home: once, in order, and again when it may be lost."""

from types import SimpleNamespace

import pytest

from broker.network.placement import cell_messages as said
from broker.network.placement.cell_messages import TextRevision, Which
from broker.network.placement.home_reports import HomeReports, NamedOrigins
from broker.network.placement.result_queue import ResultQueue
from broker.network.placement.snapshot_pace import Saver, Saving
from broker.network.placement.suspension import Suspension

WHICH = Which("a/1", 1, 1)
LIFE = 9
ROW = ("x", "Hot", "act", b"{}")


class Scene:
    """The reports of one cell, with a subscription that may be suspended."""

    def __init__(self):
        self.sub = SimpleNamespace(subscriber="x", name="Hot", suspended="", resumed=0)
        catalogue = SimpleNamespace(subscriptions={("x", "Hot"): self.sub})
        parts = ResultQueue(5, 0), Saver({}, 0), NamedOrigins(), catalogue
        self.reports = HomeReports(WHICH, LIFE, *parts)

    def say(self, settled=()):
        return list(self.reports.say(list(settled)))


@pytest.fixture
def scene():
    scene = Scene()
    assert scene.say() == [said.Running(WHICH, LIFE, (), 0)]
    assert scene.say() == []
    return scene


def snapshot(end):
    return Saving(3, end, {}, b"state", {}, 0)


def test_a_snapshot_is_said_once_the_home_has_all_results_before_it(scene):
    scene.reports.results.add(ROW)
    scene.reports.save(snapshot(end=6), 0)
    assert scene.say() == [said.Results(WHICH, LIFE, 5, 5, [ROW], 0)]
    assert scene.say() == []
    scene.reports.taken(6)
    assert scene.say() == [said.Saved(WHICH, LIFE, 6, 3, 6, b"state", 0)]
    assert scene.say() == []
    assert scene.reports.waiting
    assert not scene.reports.stored(2)
    assert scene.reports.stored(3)
    assert not scene.reports.waiting


def test_what_may_be_lost_is_said_again(scene):
    scene.reports.results.add(ROW)
    scene.reports.origins.allow("b", ("Temp",))
    scene.reports.save(snapshot(end=5), 0)
    first = scene.say()
    assert [type(each) for each in first] == [said.Named, said.Results, said.Saved]
    scene.reports.say_again()
    assert scene.say() == [said.Running(WHICH, LIFE, (), 0), *first]


def test_how_far_it_is_settled_is_said_behind_the_results_before(scene):
    scene.reports.results.add(ROW)
    row = ("x", "Hot", 1_000)
    results, settled = scene.say([row])
    assert isinstance(results, said.Results)
    assert settled == said.Settled(WHICH, LIFE, 6, [row])


def test_a_standing_is_said_when_it_is_another(scene):
    scene.sub.suspended = "too_much_work"
    rows = (Suspension("x", "Hot", "too_much_work", 0),)
    assert scene.say() == [said.Running(WHICH, LIFE, rows, 0)]
    assert scene.reports.waiting
    scene.reports.confirmed = rows
    assert not scene.reports.waiting


def test_results_of_another_text_are_said_as_such(scene):
    revision = TextRevision(1, b"", (("x", "Hot"),), begins=False)
    scene.reports.revise(revision)
    scene.reports.revised(revision)
    scene.reports.results.add(ROW)
    running, results = scene.say()
    assert (running.revision, results.revision) == (1, 1)


def test_an_origin_is_named_with_all_types_it_is_asked_for():
    origins = NamedOrigins()
    assert not origins.allow("b", ("Temp",))
    origins.said = True
    assert not origins.allow("b", ("Temp",))
    assert origins.said  # nothing new
    assert not origins.allow("b", ("Temp", "Wind"))
    assert not origins.said
    assert origins.note({"b": ("Temp",), "c": ("Rain",)}) == ["b"]
    assert origins.allow("b", ("Temp",))
    assert not origins.allow("b", ("Temp", "Wind"))
    origins.forget("b")
    assert (origins.waiting, origins.noted) == ({}, {"c": ("Rain",)})
