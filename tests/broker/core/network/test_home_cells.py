"""What a home takes of its cells: results once, and the word that they are active or over."""

from types import SimpleNamespace

from msgspec import json

from broker.core.effects import Outgoing
from broker.core.networked.home_cells import HomeCells
from broker.engine.ingest.times import TIME_MAX_MS
from broker.network.placement.book import CellBook
from broker.network.placement.home_records import CellResults, CellSaved, CellSettled

HOT, COLD = ("x", "Hot"), ("x", "Cold")


class Matcher:
    """The tasks that run at a home."""

    def __init__(self, *names):
        self.running = dict.fromkeys(names)

    def remove(self, name):
        del self.running[name]


def installed(name, **words):
    kept = {"uses": ("Warm",), "task": name, "state": "active", "nearest": False, "results": 0}
    return SimpleNamespace(**(kept | words))


class Scene:
    """A home with one cell, which runs Hot, and Cold beside it."""

    def __init__(self, **hot):
        self.book = CellBook("a")
        self.subscriptions = {HOT: installed("Hot", **hot), COLD: installed("Cold")}
        self.cell = self.book.begin([HOT], 0).name
        self.matcher = Matcher("Warm", "Hot", "Cold")
        self.ledger = SimpleNamespace(results=0, note=lambda *_: None)
        self.active, self.ended, self.given = [], [], []
        self.part = HomeCells(
            self.book,
            SimpleNamespace(subscriptions=self.subscriptions),
            self.matcher,
            self.ledger,
            lambda keys, _: self.active.extend(keys),
            self.ended.append,
            lambda actor: f"{actor}/near",
            lambda results, _: self.given.extend(results),
        )

    def tell(self, message):
        self.part.handlers()[type(message)](message, Outgoing())

    def save(self, end=0):
        self.tell(CellSaved(self.cell, 1, 0, 0, end, b"state"))

    def find(self, first, *names, subscription="Hot"):
        rows = [("x", subscription, "door", result(name)) for name in names]
        self.tell(CellResults(self.cell, 1, 0, 0, first, rows))

    def ids(self):
        return [one.id for one in self.given]


def result(name):
    return json.encode({"id": name, "end": 5, "actor": "door"})


def test_results_wait_until_a_cell_is_active_and_are_given_out_once():
    scene = Scene()
    scene.find(0, "one", "two")
    assert (scene.ids(), scene.active) == ([], [])
    scene.save(end=2)
    assert (scene.ids(), scene.active) == (["one", "two"], [HOT])
    scene.find(1, "two", "three")
    assert scene.ids() == ["one", "two", "three"]
    assert scene.subscriptions[HOT].results == scene.ledger.results == 3


def test_the_nearest_actor_is_chosen_at_home():
    scene = Scene(nearest=True)
    scene.save()
    scene.find(0, "one")
    (given,) = scene.given
    assert given.actor == json.decode(given.payload)["actor"] == "door/near"


def test_a_result_goes_as_it_came_to_an_actor_that_was_named():
    scene = Scene()
    scene.save()
    scene.find(0, "one")
    assert [(one.actor, one.payload) for one in scene.given] == [("door", result("one"))]


def test_what_is_of_no_cell_goes_on_here_with_all_that_it_needs():
    scene = Scene()
    scene.part.stop_idle()
    assert list(scene.matcher.running) == ["Warm", "Cold"]
    scene.subscriptions[COLD].state = "ended"
    scene.part.stop_idle()
    assert list(scene.matcher.running) == []


def test_a_cancelled_subscription_has_no_cell():
    scene = Scene()
    del scene.subscriptions[HOT]
    scene.part.forget_cancelled()
    assert (scene.book.of, scene.book.cells) == ({}, {})


def test_a_subscription_ends_once_its_cell_is_settled_for_ever_and_all_results_are_here():
    scene = Scene()
    scene.save()
    scene.find(0, "one")
    over = [(*HOT, TIME_MAX_MS)]
    scene.tell(CellSettled(scene.cell, 1, 0, 2, over))
    assert scene.ended == []
    scene.find(1, "two")
    scene.tell(CellSettled(scene.cell, 1, 0, 2, over))
    assert scene.ended == [scene.subscriptions[HOT]]
    assert HOT not in scene.book.of
