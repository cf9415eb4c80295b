"""A few brokers in a virtual world, with actors and with alarms of one type, for tests."""

import json
from collections import Counter
from itertools import count
from random import Random

from broker.core.broker import BrokerOptions
from broker.core.effects import Publish
from broker.core.messages import (
    ActorsListening,
    EventsReceived,
    Payload,
    SourceAdvertised,
    SpecificationSubmitted,
)
from broker.engine.limits import Limits
from simulation.crashes.outbox import SimulatedOutbox
from simulation.crashes.process import Machine
from simulation.disk import Disk
from simulation.network.links import Link
from simulation.network.place import Place
from simulation.world import World

BEGIN_MS = 1_700_000_000_000
TEXT = """
event Alarm(room: text)
subscription Plain from x to alerts
detect Alarm
subscription Room from x to Air of group.room
detect Alarm
group by room
subscription Near from x to nearest Tablet
detect Alarm
"""
ROOMS = ("r0", "r1")
LINE = [("b0", "b1"), ("b1", "b2"), ("b2", "b3")]


class Site(Place):
    """A place with actors; `got` are the results that one of them heard here."""

    def __init__(self, world, name):
        options = BrokerOptions(name=name, lateness_ms=0, idle_timeout_ms=1_000, networked=True)
        super().__init__(
            world,
            Machine(
                disk=Disk(world.random),
                outbox=SimulatedOutbox(),
                options=options,
                limits=Limits(),
                sync_ms=0,
                commit_ms=0,
                snapshot_records=20,
                segment_bytes=5_000,
            ),
        )
        self.actors = {}
        self.got = []

    def start(self):
        super().start()
        self.hear(ActorsListening(self.name, 0, tuple(self.actors), anew=True))

    def listen(self, actor, *, on):
        came, gone = ((actor,), ()) if on else ((), (actor,))
        if on:
            self.actors[actor] = None
        else:
            del self.actors[actor]
        self.hear(ActorsListening(self.name, 0, came, gone))

    def leaves(self, effect):
        if isinstance(effect, Publish):
            for one in effect.publications:
                if one.topic.startswith("actors/"):
                    self._heard(one.topic.removeprefix("actors/"), one.payload)
        super().leaves(effect)

    def delivered(self, rows):
        for one in rows:
            self._heard(one.actor, one.payload)

    def _heard(self, actor, payload):
        if actor in self.actors:
            said = json.loads(payload)
            self.got.append((actor, said["subscription"], said["id"]))


class Town:
    """Brokers in a tree, of which `edges` are the links; the first is the home."""

    def __init__(self, seed, edges, delay_ms=5, text=TEXT):
        self.text = text
        self.world = World(Random(seed), BEGIN_MS)
        names = sorted({name for edge in edges for name in edge})
        self.sites = {name: Site(self.world, name) for name in names}
        self.links = []
        for one, other in edges:
            a, b = self.sites[one], self.sites[other]
            link = Link(self.world, a, b, delay_ms)
            a.links[b.name] = b.links[a.name] = link
            self.links.append(link)
        self.home = self.sites[names[0]]
        self.ids = count()

    def start(self, where):
        for actor, name in where.items():
            self.sites[name].actors[actor] = None
        for site in self.sites.values():
            site.start()
        for site in self.sites.values():
            data = json.dumps({"types": ["Alarm"]}).encode()
            site.tell(SourceAdvertised(f"s-{site.name}", data), {})
        self.home.tell(SpecificationSubmitted("x", "1", self.text), {})
        self.run(20_000)
        assert "active" in self.home.states
        self.begin_ms = self.world.now

    def run(self, for_ms):
        self.world.run(self.world.now + for_ms)

    def alarm(self, name, room=None):
        number = next(self.ids)
        body = {"id": f"e{number}", "room": room or ROOMS[number % 2]}
        payload = Payload("Alarm", f"s-{name}", json.dumps(body).encode())
        self.sites[name].tell(EventsReceived((payload,)), {})

    def move(self, actor, to):
        before = next(site for site in self.sites.values() if actor in site.actors)
        if before is not to:
            before.listen(actor, on=False)
            to.listen(actor, on=True)

    def hops(self):
        """How far each broker is from the home, in its tree."""
        found, edge = {self.home.name: 0}, [self.home]
        for site in edge:
            for name in site.process.network.topology.tree.neighbours:
                if name not in found:
                    found[name] = found[site.name] + 1
                    edge.append(self.sites[name])
        return found

    @property
    def heard(self):
        return Counter(one for site in self.sites.values() for one in site.got)

    @property
    def found(self):
        rows = [json.loads(row.payload) for row in self.home.machine.outbox.rows]
        return [(one["actor"], one["subscription"], one["id"]) for one in rows]
