"""`to nearest`: of the actors below a name the one fewest hops away, ties by name."""

import json
import random

import pytest

from broker.core.effects import Emit
from broker.core.messages import ActorsListening, EventsReceived, Payload
from broker.engine.ingest.actors import Actors
from broker.engine.limits import Limits
from broker.network.effects import Note
from tests.broker.core.machine import NOW, Machine
from tests.broker.core.test_durable import Disk

HELP = (
    "event Call(room: text)\n"
    "subscription Help seq 1 from ward to nearest Tablet detect Call\n"
    "subscription Log seq 1 from ward to Tablet detect Call"
)


def actors_of(machine: Machine, number: int) -> dict[str, str]:
    """By subscription: the actor that the one result for a call goes to."""
    results = machine.send(
        {"id": f"c{number}", "timestamp": machine.now, "room": "1"}, type_name="Call"
    )
    return {one["subscription"]: one["actor"] for one in results}


def emitted(machine: Machine) -> set[tuple[str, str]]:
    found = [
        one for effect in machine.effects if isinstance(effect, Emit) for one in effect.results
    ]
    for one in found:
        assert json.loads(one.payload)["actor"] == one.actor
    return {(one.subscription, one.actor) for one in found}


def test_a_result_goes_to_the_nearest_and_only_where_it_was_asked_for() -> None:
    machine = Machine()
    machine.submit(HELP)
    machine.tell(ActorsListening("far", 2, ("Tablet/a",)))
    machine.tell(ActorsListening("near", 1, ("Tablet/z", "Tablet/k", "Other/a")))
    assert actors_of(machine, 1) == {"Help": "Tablet/k", "Log": "Tablet"}
    assert emitted(machine) == {("Help", "Tablet/k"), ("Log", "Tablet")}
    machine.tell(ActorsListening("broker", 0, ("Tablet/y",)))
    assert actors_of(machine, 2)["Help"] == "Tablet/y"


def test_who_listens_no_more_is_not_chosen() -> None:
    machine = Machine()
    machine.submit(HELP)
    machine.tell(ActorsListening("broker", 0, ("Tablet/a", "Tablet/b")))
    assert actors_of(machine, 1)["Help"] == "Tablet/a"
    machine.tell(ActorsListening("broker", 0, ("Tablet/c",), gone=("Tablet/a", "Tablet/x")))
    assert actors_of(machine, 2)["Help"] == "Tablet/b"
    machine.tell(ActorsListening("broker", 0, ("Tablet/d",), anew=True))
    assert actors_of(machine, 3)["Help"] == "Tablet/d"


def test_where_nobody_listens_the_name_itself_is_the_actor_counted_and_told_once() -> None:
    machine = Machine()
    machine.submit(HELP)
    told = []
    for number in range(3):
        assert actors_of(machine, number)["Help"] == "Tablet"
        told += [one for one in machine.effects if isinstance(one, Note)]
    assert [one.fields for one in told if one.event == "no_actor_listens"] == [{"actor": "Tablet"}]
    assert machine.broker.ledger.notes["no_actor_listens"] == 3


def test_the_name_itself_is_none_of_those_below_it() -> None:
    known = Actors(100)
    known.tell("b", 0, ["Tablet", "Tablets/a", "Tab"], [], anew=True)
    assert known.nearest("Tablet") is None
    known.tell("c", 5, ["Tablet/ward-1/bed-2"], [], anew=False)
    assert known.nearest("Tablet") == known.nearest("Tablet/ward-1") == "Tablet/ward-1/bed-2"


@pytest.mark.parametrize("seed", range(20))
def test_the_nearest_is_that_of_a_search_through_all(seed: int) -> None:
    draw = random.Random(seed)
    known = Actors(1_000)
    told: dict[str, tuple[int, set[str]]] = {}
    for _ in range(60):
        broker, hops, anew = f"b{draw.randrange(5)}", draw.randrange(4), draw.random() < 0.3
        names = [f"{draw.choice('AB')}/{draw.choice('xyz')}{draw.randrange(3)}" for _ in range(4)]
        cut = draw.randrange(5)
        before = set() if anew else told.get(broker, (0, set()))[1]
        told[broker] = (hops, (before - set(names[cut:])) | set(names[:cut]))
        assert known.tell(broker, hops, names[:cut], names[cut:], anew=anew) == 0
        for name in ("A", "B"):
            every = [
                (hops, one)
                for hops, own in told.values()
                for one in own
                if one.startswith(f"{name}/")
            ]
            assert known.nearest(name) == (min(every)[1] if every else None)


def test_no_more_actors_are_remembered_than_the_limit_and_the_rest_are_counted() -> None:
    machine = Machine(Limits(actors_max=3))
    machine.submit(HELP)
    machine.tell(ActorsListening("b1", 1, ("Tablet/d", "Tablet/e")))
    machine.tell(ActorsListening("b2", 1, ("Tablet/c", "Tablet/b", "Tablet/a")))
    assert machine.broker.ledger.notes["actors_full"] == 2
    assert len(machine.broker._actors) == 3
    assert actors_of(machine, 1)["Help"] == "Tablet/a"
    machine.tell(ActorsListening("b1", 1, (), anew=True))
    machine.tell(ActorsListening("b2", 1, ("Tablet/c", "Tablet/b"), anew=True))
    assert actors_of(machine, 2)["Help"] == "Tablet/b"


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_after_a_crash_the_same_result_goes_to_the_same_actor(with_snapshot: bool) -> None:
    """Who listens is written down, so that what the journal holds gives the same again."""
    disk = Disk()
    disk.submit(HELP)
    disk.tell(ActorsListening("near", 1, ("Tablet/k", "Tablet/z")))
    if with_snapshot:
        disk.snapshot = disk.broker.snapshot()
    call = Payload("Call", "s1", json.dumps({"timestamp": NOW, "room": "1"}).encode())
    disk.tell(EventsReceived((call,)))
    before = [(one.actor, one.offset) for one in disk.results]
    assert sorted(actor for actor, _ in before) == ["Tablet", "Tablet/k"]
    again = disk.start(outbox_end=0 if not with_snapshot else None)
    emits = [effect for effect in again or () if isinstance(effect, Emit)]
    if not with_snapshot:
        assert [(o.actor, o.offset) for effect in emits for o in effect.results] == before
    call = Payload("Call", "s1", json.dumps({"timestamp": NOW + 1, "room": "2"}).encode())
    disk.tell(EventsReceived((call,)))
    assert sorted(one.actor for one in disk.results[-2:]) == ["Tablet", "Tablet/k"]


def test_who_cannot_be_reached_is_nearest_only_where_nobody_can():
    actors = Actors(9)
    actors.tell("b", 1, ["Tablet/a"], (), anew=True)
    actors.tell("c", 3, ["Tablet/b"], (), anew=True)
    actors.cut_off(["b"])
    assert actors.nearest("Tablet") == "Tablet/b"
    actors.cut_off(["b", "c"])
    assert actors.nearest("Tablet") == "Tablet/a"
    actors.cut_off([])
    assert actors.nearest("Tablet") == "Tablet/a"
