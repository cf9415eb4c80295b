"""Brokers of the simulation in which each home has a neighbour stand in; nothing is drawn.

Owns how they are linked, asked and lost. Must not know what a copy holds. Invariant: `run` lets
time pass for all of them alike.
"""

import json
from random import Random

from broker.core.broker import BrokerOptions
from broker.core.effects import Publish, Reply
from broker.core.messages import (
    CancelRequested,
    EventsReceived,
    Payload,
    SpecificationSubmitted,
)
from broker.engine.limits import Limits
from broker.network.frames.messages import TakeOverRequested
from simulation.crashes.outbox import SimulatedOutbox
from simulation.crashes.process import Machine
from simulation.disk import Disk
from simulation.network.links import Link
from simulation.standins.loss import StandInPlace
from simulation.world import World

BEGIN_MS = 1_700_000_000_000
TEXT = """event Temp(val: float)
subscription Warm from anna to log
detect Temp(val > 5)
subscription Cold from anna to log
detect Temp(val < 5)
"""


class ListeningPlace(StandInPlace):
    """A place that keeps what it answers, and what it retains."""

    def __init__(self, world, machine):
        super().__init__(world, machine)
        self.replies = []
        self.retained = {}

    def leaves(self, effect):
        super().leaves(effect)
        match effect:
            case Reply():
                self.replies.append(json.loads(effect.payload))
            case Publish(publications):
                for each in publications:
                    if each.retain and each.payload:
                        self.retained[each.topic] = json.loads(each.payload)
                    elif each.retain:
                        self.retained.pop(each.topic, None)

    @property
    def home(self):
        """Return what is at home here, by name."""
        return [own.name for own in self.process.core.subscriptions]

    @property
    def feed(self):
        return self.process.network.stand_ins.feed


class LinkedHomes:
    """Brokers by name, linked as `edges` tell; `snapshot_records` lie between two snapshots."""

    def __init__(self, *edges, snapshot_records=10_000, lease_ms=0):
        self.world = World(Random(7), BEGIN_MS)
        self.places = {}
        self.links = {}
        for name in dict.fromkeys(name for edge in edges for name in edge):
            machine = Machine(
                disk=Disk(self.world.random),
                outbox=SimulatedOutbox(),
                options=BrokerOptions(name=name, networked=True, cells=True, lateness_ms=0),
                limits=Limits(),
                sync_ms=0,
                commit_ms=0,
                snapshot_records=snapshot_records,
                segment_bytes=50_000,
            )
            self.places[name] = ListeningPlace(self.world, machine)
            self.places[name].lease_ms = lease_ms
        for one, other in edges:
            a, b = self.places[one], self.places[other]
            link = Link(self.world, a, b, 5)
            a.links[other] = b.links[one] = self.links[one, other] = link

    def __getitem__(self, name):
        return self.places[name]

    def start(self, *, cut=(), cut_s=0):
        """Begin all processes, with some links cut for a while."""
        for edge in cut:
            self.links[edge].cut(cut_s * 1_000, lost=True)
        for place in self.places.values():
            place.start()
        self.run(5)

    def run(self, seconds):
        self.world.run(self.world.now + seconds * 1_000)

    def submit(self, name, text=TEXT):
        self[name].hear(SpecificationSubmitted("anna", "r", text))
        self.run(10)

    def cancel(self, name, subscription):
        """Return the answer to a cancellation."""
        self[name].hear(CancelRequested("anna", "r", subscription, proven=True))
        self.run(5)
        return self[name].replies[-1]

    def publish(self, name, *values):
        """Publish readings of one source."""
        for value in values:
            data = json.dumps({"timestamp": self.world.now, "val": value}).encode()
            self[name].hear(EventsReceived((Payload("Temp", "t", data),)))
            self.run(1)

    def released(self, name):
        """Return what subscriptions of a home gave out, by name."""
        rows = [row for _, row in self[name].released_at if row.payload and not row.is_silent]
        return [row.subscription for row in rows]

    def lose(self, name):
        """End a home, which stays away until it is begun again."""
        self[name].is_gone = True
        self[name].end()
        self.run(20)

    def begin(self, name):
        self[name].is_gone = False
        self[name].start()
        self.run(20)

    def take_over(self, name, heir):
        self[heir].hear(TakeOverRequested(name, "anna"))
        self.run(10)
        return self[heir].replies[-1]
