"""Actors are those to whose topics clients have subscribed; `to nearest` finds them."""

import asyncio
import json

from broker.core.messages import ActorsListening
from broker.driver.actor_listeners import ActorListeners
from broker.mqtt.codec.topics import FilterTree
from tests.broker.running import PATIENCE_S, RunningBroker, ask, client, take

HELP = """event Call(room: text)
subscription Help seq 1 from ward to nearest Tablet detect Call
"""


class Subscriptions:
    """Topics below the prefix that somebody has subscribed to, and what the core was told."""

    def __init__(self):
        self.topics = set()
        self.told = []
        self.heard = asyncio.Event()

    def subscribed_below(self, topic):
        return sorted(one for one in self.topics if one.startswith(f"{topic}/"))

    def put(self, message):
        self.told.append(message)
        self.heard.set()


def test_what_has_changed_is_told_once_and_at_first_all():
    here = Subscriptions()
    listening = ActorListeners(here, here, "headwater", "b1")
    listening.look()
    assert here.told == [ActorsListening("b1", 0, (), (), True)]
    here.topics |= {
        "headwater/actors/Tablet/2",
        "headwater/actors/Tablet/1%2B1",
        "headwater/late/x",
    }
    listening.look()
    assert here.told[1:] == [ActorsListening("b1", 0, ("Tablet/1+1", "Tablet/2"))]
    listening.look()
    here.topics = {"headwater/actors/Tablet/2", "headwater/actors/b"}
    listening.look()
    assert here.told[2:] == [ActorsListening("b1", 0, ("b",), ("Tablet/1+1",))]


def test_many_changes_are_looked_at_together(monkeypatch):
    monkeypatch.setattr("broker.driver.actor_listeners.LOOK_AFTER_S", 0.0)
    here = Subscriptions()

    async def crowd():
        listening = ActorListeners(here, here, "headwater", "b1")
        for number in range(100):
            here.topics.add(f"headwater/actors/a/{number}")
            listening.changed()
        assert here.told == []
        await asyncio.wait_for(here.heard.wait(), PATIENCE_S)
        here.topics.clear()
        listening.changed()
        listening.close()
        for _ in range(10):
            await asyncio.sleep(0)

    asyncio.run(crowd())
    (told,) = here.told
    assert len(told.came) == 100


def test_of_filters_those_without_a_wildcard_are_names():
    tree = FilterTree()
    filters = [
        "p/actors/a",
        "p/actors/a/b",
        "p/actors/+",
        "p/actors/c/#",
        "p/actors/+/d",
        "p/x",
        "#",
    ]
    for one in [*filters, "p/actors"]:
        tree.put(one, "client", 1)
    assert sorted(tree.names_below("p/actors")) == ["p/actors/a", "p/actors/a/b"]
    assert tree.names_below("q") == []
    tree.remove("p/actors/a", "client")
    assert tree.names_below("p/actors") == ["p/actors/a/b"]


def test_a_call_rings_at_the_nearest_tablet_and_at_the_next_when_that_has_gone(tmp_path):
    """Two nurses' tablets at one broker: the least name; then the other; then nobody."""

    async def ward(port):
        async def call(number):
            body = json.dumps({"id": f"c{number}", "room": str(number)})
            await sensor.publish("headwater/events/Call/bell", body, qos=1)
            ((_, result),) = await take(log)
            return result["actor"]

        async def called_until(actor, number):
            """Who listens is looked at some time after the client was told of its subscription."""
            async with asyncio.timeout(PATIENCE_S):
                while (found := await call(number)) != actor:
                    number += 1000
                    await asyncio.sleep(0.01)
            return found

        results = "headwater/results/ward/Help"
        async with client(port, identifier="s") as sensor, client(port, results) as log:
            assert (await ask(sensor, "submit", HELP))["ok"]
            assert await call(1) == "Tablet"
            async with client(port, "headwater/actors/Tablet/b") as b:
                await called_until("Tablet/b", 2)
                async with client(port, "headwater/actors/Tablet/a") as a:
                    await called_until("Tablet/a", 3)
                    ((topic, result),) = await take(a)
                    assert topic == "headwater/actors/Tablet/a"
                    assert result["actor"] == "Tablet/a"
                await called_until("Tablet/b", 4)
                assert (await take(b))[0][1]["actor"] == "Tablet/b"
            await called_until("Tablet", 5)

    with RunningBroker(tmp_path) as broker:
        asyncio.run(ward(broker.port()))
