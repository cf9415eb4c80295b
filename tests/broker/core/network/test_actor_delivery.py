"""Results go to where actors listen: copied once each, and on from where nobody heard them."""

from types import SimpleNamespace

import pytest

from broker.core.effects import Emission, Notes, Outgoing
from broker.core.messages import ActorsListening
from broker.core.networked.actor_delivery import COPY_BYTES_MAX, ActorDelivery
from broker.engine.ingest.actors import Actors
from broker.network.frames.told import CopyUnheard
from broker.network.placement.cell_view import term_name


class Scene:
    """The delivery of broker `a`, and who listens where."""

    def __init__(self, me="a"):
        self.actors, self.notes = Actors(10), []
        ledger = SimpleNamespace(note=self.notes.append)
        self.now = 1_000
        self.part = ActorDelivery(me, 10, self.actors, ledger, Notes(), lambda: self.now)

    def listen(self, broker, *actors, version=1):
        message = ActorsListening(broker, 1, actors, anew=True, version=version)
        _, before = self.actors.of(broker)
        self.actors.tell(broker, 1, actors, (), anew=True)
        out = Outgoing()
        self.part.listening(message, before, out)
        return [one.topic for one in out.publications]

    def copies(self, broker):
        return [(one.actor, one.version, one.asks) for one in self.part.copies.kept_for(broker)]


def result(actor, payload=b"r"):
    return Emission("id", 5, "x", "Hot", actor, payload)


def test_a_result_is_copied_to_each_broker_where_its_actor_listens_and_one_sees_to_it():
    scene = Scene()
    scene.listen("c", "door", version=7)
    scene.listen("b", "door", version=3)
    scene.part.copy([result("door")])
    assert scene.copies("b") == [("door", 3, (("c", 7),))]
    assert scene.copies("c") == [("door", 7, None)]


def test_nobody_has_to_see_to_a_result_that_is_published_here_too():
    scene = Scene()
    scene.listen("a", "door")
    scene.listen("b", "door")
    scene.part.copy([result("door")])
    assert scene.copies("b") == [("door", 1, None)]
    assert scene.copies("a") == []


def test_a_result_waits_for_an_actor_that_has_just_left_and_goes_where_it_comes_to():
    scene = Scene()
    scene.listen("b", "door")
    scene.listen("b")
    scene.part.copy([result("door")])
    assert scene.listen("a", "door")
    scene.listen("a")
    scene.part.copy([result("door", b"later")])
    scene.listen("c", "door")
    assert [actor for actor, _, _ in scene.copies("c")] == ["door"]


def test_what_nobody_heard_is_tried_where_it_says_and_then_where_the_actor_is():
    scene = Scene()
    scene.part.unheard(CopyUnheard("door", b"r", (("c", 2), ("d", 4))), Outgoing())
    assert scene.copies("c") == [("door", 2, (("d", 4),))]
    scene.listen("b", "door")
    scene.part.unheard(CopyUnheard("door", b"r", ()), Outgoing())
    assert scene.copies("b") == [("door", 1, ())]


def test_another_sees_to_what_came_without_a_list():
    scene = Scene()
    scene.listen("b", "door")
    scene.part.unheard(CopyUnheard("door", b"r", None), Outgoing())
    assert scene.copies("b") == []


def test_what_a_forgotten_broker_has_not_taken_goes_elsewhere():
    scene = Scene()
    scene.listen("b", "door")
    scene.listen("c", "door", version=2)
    scene.part.copy([result("door")])
    scene.listen("b")
    scene.part.forget("b", Outgoing())
    assert scene.copies("b") == []
    assert [version for _, version, _ in scene.copies("c")] == [2, 2]


@pytest.mark.parametrize("more", [0, 1])
def test_what_no_link_takes_is_not_kept_for_one(more):
    scene = Scene()
    scene.listen("b", "door")
    scene.part.copy([result("door", bytes(COPY_BYTES_MAX + more))])
    assert len(scene.copies("b")) == 1 - more
    assert scene.notes == ["copies_too_long"] * more


def test_an_actor_listens_here_since_the_version_in_which_it_came():
    scene = Scene()
    scene.listen("a", "door")
    scene.listen("a", "door", "lamp")
    assert scene.part.version_of("a") == 2
    assert scene.part.listens("door", 1, alone=False)
    assert not scene.part.listens("lamp", 1, alone=False)
    assert scene.part.listens("lamp", 1, alone=True)
    scene.listen("a", "lamp")
    assert not scene.part.listens("door", 3, alone=True)


def test_nearest_is_one_that_just_left_where_no_other_listens():
    scene = Scene()
    scene.listen("b", "tablet/one")
    assert scene.part.stand_for("tablet") is None
    scene.listen("b")
    assert scene.part.stand_for("tablet") == "tablet/one"
    assert Scene(term_name("a/1", 1)).part.stand_for("tablet") == "tablet"


def test_a_state_has_all_of_it():
    scene = Scene()
    scene.listen("a", "door")
    scene.listen("b", "lamp", version=4)
    scene.part.copy([result("lamp")])
    again = Scene()
    again.actors.restore(scene.actors.state())
    again.part.restore({"giving": scene.part.state()})
    assert again.part.state() == scene.part.state()
    assert again.part.listens("door", 1, alone=False)
    assert again.copies("b") == scene.copies("b")
