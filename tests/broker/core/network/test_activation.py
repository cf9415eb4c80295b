"""Subscriptions are active, and who asked for them told, once all of a text are."""

from types import SimpleNamespace

import pytest
from msgspec import Struct

from broker.core.networked.activation import Activation

HOT, COLD, CELL = ("x", "Hot"), ("x", "Cold"), ("x", "Cell")


class Answer(Struct):
    """What is known of an answer here."""

    keys: tuple


def found(key):
    return SimpleNamespace(to_dict=lambda: {"subscriber": key[0], "subscription": key[1]})


class Scene:
    """A catalogue in which all is accepted, and whom the part has told."""

    def __init__(self, *keys):
        self.catalogue = SimpleNamespace(
            subscriptions={key: SimpleNamespace(state="accepted") for key in keys}
        )
        self.finished = []
        self.part = Activation(
            self.catalogue, {CELL: "a/1"}, lambda message, answer, _: self.finished.append(answer)
        )

    def begin(self, *keys):
        self.part.begin(None, Answer(keys), None)

    def given(self, *keys):
        results = [found(key) for key in keys]
        kept = self.part.of_active(results)
        return [key for key, result in zip(keys, results, strict=True) if result in kept]


def test_what_is_active_already_is_told_at_once():
    scene = Scene(HOT)
    scene.catalogue.subscriptions[HOT].state = "active"
    scene.begin(HOT)
    assert scene.finished == [Answer((HOT,))]


@pytest.mark.parametrize("order", [(HOT, COLD), (COLD, HOT)])
def test_a_text_is_told_once_behind_its_last_subscription(order):
    scene = Scene(HOT, COLD)
    scene.begin(HOT, COLD)
    first, last = order
    scene.part.activate([first], None)
    assert not scene.finished
    scene.part.activate([last], None)
    assert scene.finished == [Answer((HOT, COLD))]


def test_results_of_what_is_not_active_are_not_given_out():
    scene = Scene(HOT, COLD)
    scene.begin(HOT, COLD)
    scene.part.activate([COLD], None)
    assert scene.given(HOT, COLD, HOT) == [COLD]
    scene.part.activate([HOT], None)
    assert scene.given(HOT, COLD, HOT) == [HOT, COLD, HOT]


def test_what_was_cancelled_meanwhile_holds_up_nobody_and_is_not_told_of():
    scene = Scene(HOT, COLD)
    scene.begin(HOT, COLD)
    del scene.catalogue.subscriptions[COLD]
    scene.part.look()
    scene.part.activate([HOT], None)
    assert scene.finished == [Answer((HOT,))]


def test_one_that_begins_again_under_the_name_of_a_cancelled_one_is_not_told_to_who_asked_before():
    scene = Scene(HOT, COLD)
    scene.begin(HOT, COLD)
    gone = scene.catalogue.subscriptions.pop(COLD)
    scene.part.look()
    scene.catalogue.subscriptions[COLD] = gone
    scene.begin(COLD)
    scene.part.activate([COLD], None)
    assert scene.finished == [Answer((COLD,))]


def test_what_runs_in_a_cell_is_not_waited_for_here():
    scene = Scene(HOT, CELL)
    assert scene.part.inactive() == [HOT]
