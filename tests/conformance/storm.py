"""A storm of packets on the MQTT face without sockets: many clients, few of them sane.

Owns the course of events and the checks that hold at every moment. Everything follows from the
seed. What the face answers is read by `wire`, which shares nothing with the face's own codec.

    python -m tests.conformance.storm --seed 7 --packets 100000
"""

import argparse
import gc
import itertools
import random
import sys
from collections import deque
from types import FunctionType, ModuleType

from broker.mqtt.codec.packets import Publish
from broker.mqtt.codec.reasons import ProtocolError
from broker.mqtt.effects import CheckPassword, CloseConnection, ReadConnection
from broker.mqtt.hub import Hub
from broker.mqtt.limits import MqttLimits
from broker.mqtt.routing.router import Prefix
from broker.mqtt.storage.batches import HubStorage
from broker.mqtt.storage.restoration import restore
from tests.broker.mqtt.world import Disk, due
from tests.conformance import wire as w
from tests.conformance.corpus import Corpus
from tests.conformance.plug import Plug

LIMITS = MqttLimits(
    connections_max=40,
    connect_bytes_max=2_000,
    packet_bytes_max=4_000,
    partial_bytes_max=20_000,
    sessions_max=25,
    subscriptions_max=120,
    subscriptions_per_client_max=10,
    receive_max=6,
    pending_bytes_per_client_max=2_000,
    pending_bytes_max=8_000,
    inflight_max=6,
    queue_messages_max=20,
    queue_bytes_max=8_000,
    queue_bytes_total_max=40_000,
    unsent_bytes_max=3_000,
    retained_messages_max=15,
    retained_bytes_max=5_000,
    topic_alias_max=4,
    topics_cached_max=60,
    login_addresses_max=10,
)
PLUGS = 36
EVERY = 500  # packets between two looks at everything
DAY_MS = 86_400_000


class Storm:
    """One hub and its clients; `packets` counts what they have sent."""

    def __init__(self, seed, *, users=False, disk=False):
        self.seed = seed
        self.users = users
        self.chance = random.Random(seed)
        self.corpus = Corpus(self.chance, LIMITS)
        self.now_ms = 1_000
        self.packets = 0
        self.crashes = 0
        self.disk = Disk() if disk else None
        self.commits = deque()  # with their numbers, until they are durable
        self.hub = self._hub()
        self.plugs = []
        self.by_connection = {}
        self.tokens = deque()
        self.checks = deque()
        self.seen = {}  # packets of the face by kind
        self.actions = (
            (self.send, 60),
            (self.answer, 20),
            (self.open, 6),
            (self.complete, 6),
            (self.leave, 2),
            (self.stall, 2),
            (self.say, 2),
            (self.wait, 2),
            (self.sync, 12 if disk else 0),
            (self.crash, 0.05 if disk else 0),
        )
        self._todo = [todo for todo, _ in self.actions]
        self._weights = [weight for _, weight in self.actions]

    def _hub(self):
        made = itertools.count(1)
        hub = Hub(
            limits=LIMITS,
            prefix=Prefix("headwater", ("headwater/events/#",)),
            users_only=self.users,
            # A function: `size_of` ends there.
            new_client_id=lambda: f"made-{next(made)}",
        )
        if self.disk is not None:
            ahead_ms = self.disk.wall_ms - self.now_ms
            hub.keep(HubStorage(lambda: ahead_ms))
            restore(hub, self.disk.kept(), self.now_ms)
        return hub

    # --- one step -----------------------------------------------------------------------------

    def run(self, packets):
        """Send so many packets; an AssertionError tells the seed and the packet."""
        until = self.packets + packets
        try:
            while self.packets < until:
                before = self.packets // EVERY
                self.chance.choices(self._todo, self._weights)[0]()
                if self.packets // EVERY != before:
                    self.check()
        except Exception as error:
            raise AssertionError(f"seed {self.seed}, packet {self.packets}: {error!r}") from error
        return self

    def open(self):
        if len(self.plugs) >= PLUGS:
            return
        plug = Plug(self)
        plug.connection = self.hub.opened(f"10.0.0.{len(self.plugs)}:1", None, self.now_ms)
        self.plugs.append(plug)
        self.by_connection[plug.connection] = plug
        self.perform()
        if self.chance.random() < 0.95:
            login = self.corpus.login()
            plug.greet(login)
            self.give(plug, login.encode())

    def pick(self):
        return self.chance.choice(self.plugs) if self.plugs else None

    def send(self):
        """A packet of the corpus, sane or not, whole or in part, maybe with others."""
        plug = self.pick()
        if plug is None:
            return self.open()
        chance = self.chance.random()
        version = plug.version or w.V5
        if chance < 0.93:
            data, pid = self.corpus.good(version)
            plug.settle(data[0] >> 4, pid)
        elif chance < 0.98:
            data, plug.sane = self.corpus.bad(version), False
        else:
            data, plug.sane = self.chance.randbytes(self.chance.randrange(1, 40)), False
        return self.give(plug, data)

    def give(self, plug, data):
        """Pass bytes on: often at once, else in parts."""
        self.packets += 1
        if not plug.reads:
            if len(plug.outbox) < 20_000:
                plug.outbox += data
            return
        data = bytes(plug.outbox) + data
        plug.outbox.clear()
        if self.chance.random() < 0.1:
            cut = self.chance.randrange(len(data) + 1)
            plug.outbox += data[cut:]
            data = data[:cut]
        if data:
            self.hub.received(plug.connection, data, self.now_ms)
            self.perform()

    def answer(self):
        """Acknowledge what is owed, at times something else."""
        plug = self.pick()
        if plug is None or not plug.owed:
            return
        kind, pid = plug.owed.popleft() if self.chance.random() < 0.9 else plug.owed[-1]
        if self.chance.random() < 0.03:
            kind = self.chance.choice((w.PUBACK, w.PUBREC, w.PUBREL, w.PUBCOMP))
        code = None
        if plug.version == w.V5 and kind in {w.PUBACK, w.PUBREC} and self.chance.random() < 0.1:
            code = self.chance.choice((0, 0x10, 0x80, 0x97))
        plug.settle(kind, pid, code or 0)
        self.give(plug, w.ack(kind, pid, code))

    def leave(self):
        """A connection breaks, or is closed by its client."""
        plug = self.pick()
        if plug is not None:
            if self.chance.random() < 0.3:
                self.give(plug, w.disconnect())
            self.lose(plug)

    def lose(self, plug):
        if plug in self.plugs:
            self.plugs.remove(plug)
            self.hub.lost(plug.connection, self.now_ms)
            self.perform()
            del self.by_connection[plug.connection]

    def stall(self):
        """A socket takes no more, or takes again."""
        plug = self.pick()
        if plug is None or plug.shut:
            return
        plug.stalled = not plug.stalled
        if plug.stalled:
            self.hub.busy(plug.connection)
        else:
            self.hub.writable(plug.connection, self.now_ms)
            self.perform()

    def complete(self):
        """The application is done with some of its messages, in whatever order."""
        for _ in range(min(len(self.tokens), self.chance.randrange(6))):
            if self.chance.random() < 0.2:
                self.tokens.rotate(-1)
            token = self.tokens.popleft()
            code = self.chance.choice((0, 0, 0, 0x10, 0x80, 0x87, 0x97, 0x99))
            self.hub.complete(token, code, self.now_ms)
        while self.checks and self.chance.random() < 0.9:
            check = self.checks.popleft()
            good = check.password == b"right"
            self.hub.checked(check.connection, good=good, now_ms=self.now_ms)
        self.perform()

    def say(self):
        """The application publishes, or asks for a rest."""
        topic = self.corpus.topic()
        try:
            payload = self.corpus.payload()
            retain = self.chance.random() < 0.2
            self.hub.publish(Publish(topic, payload, self.chance.randrange(3), retain), self.now_ms)
        except ProtocolError:
            pass  # no room to retain it
        self.hub.hold_intake(self.chance.random() < 0.2)
        self.perform()

    def wait(self):
        self.advance(self.chance.choice((1, 10, 500, 3_000, 40_000)))

    def sync(self):
        """A commit becomes durable."""
        if self.commits:
            number, batch = self.commits.popleft()
            self.disk.take(batch)
            self.hub.durable(number)
            self.perform()

    def crash(self):
        """The process dies, and another begins with what has reached the disk."""
        self.crashes += 1
        for _ in range(self.chance.randrange(len(self.commits) + 1)):
            self.disk.take(self.commits.popleft()[1])
        for held in (self.plugs, self.by_connection, self.tokens, self.checks, self.commits):
            held.clear()
        self.hub = self._hub()
        self.perform()
        self.check()

    # --- the world around the hub -------------------------------------------------------------

    def advance(self, by_ms):
        until = self.now_ms + by_ms
        if self.disk is not None:
            self.disk.wall_ms += by_ms
        while (due := self.hub.next_wake()) is not None and due <= until:
            self.now_ms = max(self.now_ms, due)
            self.hub.wake(self.now_ms)
            self.perform()
        self.now_ms = until

    def perform(self):
        """Carry out all that the hub wants."""
        hub = self.hub
        while hub.messages or hub.dirty or hub.effects:
            messages, hub.messages = hub.messages, []
            self.tokens.extend(one.token for one in messages if one.token is not None)
            dirty = list(hub.dirty)
            hub.dirty.clear()
            for connection in dirty:
                data = connection.flush()
                plug = self.by_connection.get(connection)
                if plug is not None:
                    plug.feed(data)
                    if connection.more and not plug.stalled:
                        hub.writable(connection, self.now_ms)
            for effect in hub.take_effects():
                self.carry_out(effect)
        # As in a broker: one commit is under way, and what gathers meanwhile is the next.
        if self.disk is not None and due(hub.keeping) and not self.commits:
            self.commits.append(hub.keeping.take())
        for plug in [plug for plug in self.plugs if plug.shut]:
            self.lose(plug)

    def carry_out(self, effect):
        plug = self.by_connection.get(effect.connection)
        if plug is None:
            return
        if isinstance(effect, CloseConnection):
            plug.shut = True
        elif isinstance(effect, ReadConnection):
            plug.reads = effect.on
        elif isinstance(effect, CheckPassword):
            self.checks.append(effect)

    # --- what has to hold ---------------------------------------------------------------------

    def check(self):
        hub, counters = self.hub, self.hub.counters
        sessions = list(hub.sessions.values())
        held = sum(session.outgoing.held_messages for session in sessions)
        assert counters.routed == counters.sent + sum(counters.dropped.values()) + held
        assert counters.connections == len(self.plugs) <= LIMITS.connections_max
        assert counters.sessions == len(sessions) <= LIMITS.sessions_max
        own = [len(session.subscriptions) for session in sessions]
        assert max(own, default=0) <= LIMITS.subscriptions_per_client_max
        assert counters.subscriptions == sum(own) <= LIMITS.subscriptions_max
        assert counters.retained_messages <= LIMITS.retained_messages_max
        assert counters.retained_bytes <= LIMITS.retained_bytes_max
        assert counters.partial_bytes <= LIMITS.partial_bytes_max
        # One retained message may be in flight to each client that has nothing else there.
        assert counters.queued_bytes <= LIMITS.queue_bytes_total_max + 25 * LIMITS.packet_bytes_max
        assert len(hub.topics) <= LIMITS.topics_cached_max
        assert len(hub.router.routes) <= LIMITS.topics_cached_max
        pending = sum(plug.connection.pending_bytes for plug in self.plugs)
        assert counters.pending_bytes == pending

    def calm(self):
        """All clients go, all sessions end, nothing is retained: what the hub holds then."""
        for plug in list(self.plugs):
            self.lose(plug)
        self.tokens.clear()
        self.checks.clear()
        self.hub.hold_intake(False)
        self.advance(2 * DAY_MS)
        for one in self.hub.retained("#") + self.hub.retained("$SYS/#"):
            self.hub.publish(Publish(one.topic, b"", retain=True), self.now_ms)
        self.perform()
        while self.commits:
            self.sync()
        self.check()
        assert self.disk is None or not self.disk.count(), self.disk.count()
        hub, counters = self.hub, self.hub.counters
        assert not hub.sessions
        assert not self.by_connection
        now = ("connections", "sessions", "subscriptions", "retained_messages", "retained_bytes")
        for name in (*now, "queued_bytes", "partial_bytes", "pending_bytes"):
            assert getattr(counters, name) == 0, name
        assert hub.next_wake() is None
        return size_of(hub)


def size_of(thing):
    """The bytes of an object and all that it leads to, but for code and classes."""
    seen, todo, total = set(), [thing], 0
    while todo:
        one = todo.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | FunctionType):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        todo += gc.get_referents(one)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--packets", type=int, default=20_000)
    parser.add_argument("--disk", action="store_true", help="with a disk, and crashes")
    parser.add_argument("--users", action="store_true", help="clients have to log in")
    chosen = parser.parse_args()
    sys.stdout.write(f"seed {chosen.seed}\n")
    storm = Storm(chosen.seed, users=chosen.users, disk=chosen.disk).run(chosen.packets)
    size_bytes = storm.calm()
    sys.stdout.write(f"{size_bytes} bytes are left\n{storm.hub.counters.as_dict()}\n")


if __name__ == "__main__":
    main()
