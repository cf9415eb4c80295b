"""A hub in virtual time with clients that speak packets: no sockets, no clock, no sleep."""

import pytest

from broker.mqtt.codec import packets as p
from broker.mqtt.codec.decoder import Decoder, TopicNames, encode
from broker.mqtt.effects import CheckPassword, CloseConnection, ReadConnection
from broker.mqtt.hub import Hub
from broker.mqtt.limits import MqttLimits
from broker.mqtt.routing.router import Prefix
from broker.mqtt.storage.batches import HubStorage
from broker.mqtt.storage.restoration import restore
from broker.mqtt.storage.rows import KEYS, StoredRows

VERSIONS = pytest.mark.parametrize("version", [p.V311, p.V5])
HEADWATER = Prefix("headwater", ("headwater/events/#",))


class Client:
    """One connection, as the client sees it."""

    def __init__(self, world, version, certificate_user=None, address="test:1"):
        self.world = world
        self.version = version
        limits = MqttLimits()
        self.decoder = Decoder(limits, TopicNames(limits), version)
        self.got = []
        self.bytes_got = 0
        self.closed = None  # the reason, once the server has closed
        self.fault = ""  # what a person is told of that
        self.reads = True
        self.takes = True  # its socket takes bytes; False: they pile up in the server
        self.more = False
        self.connection = world.hub.opened(address, certificate_user, world.now_ms)
        world.clients[self.connection] = self
        world.perform()

    def send(self, *sent):
        data = b"".join(encode(packet, self.version) for packet in sent)
        return self.send_bytes(data)

    def send_bytes(self, data):
        self.world.hub.received(self.connection, data, self.world.now_ms)
        self.world.perform()
        return self

    def take(self):
        """What came since the last time."""
        got, self.got = self.got, []
        return got

    def take_one(self, kind):
        (packet,) = self.take()
        assert isinstance(packet, kind), packet
        return packet

    def publishes(self):
        """Topic and payload of what came."""
        return [(x.topic, x.payload) for x in self.take() if isinstance(x, p.Publish)]

    def subscribe(self, *filters, qos=1, properties=None, **options):
        wanted = tuple(p.Filter(item, qos, **options) for item in filters)
        self.send(p.Subscribe(1, wanted, properties))
        got = self.take()
        assert isinstance(got[0], p.Suback)
        self.got = got[1:]
        return got[0].codes

    def publish(self, topic, payload=b"", qos=0, retain=False, packet_id=1, **properties):
        held = p.Properties(**properties) if properties else None
        packet_id = packet_id if qos else 0
        return self.send(p.Publish(topic, payload, qos, retain, False, packet_id, held))

    def disconnect(self, code=0, **properties):
        held = p.Properties(**properties) if properties else None
        self.send(p.Disconnect(code, held))
        self.lose()

    def lose(self):
        """The network connection breaks."""
        self.world.hub.lost(self.connection, self.world.now_ms)
        self.world.perform()

    def stall(self):
        """Take no more bytes, as a socket with a full buffer does."""
        self.takes = False
        self.world.hub.busy(self.connection)

    def flow(self):
        self.takes = True
        self.world.hub.writable(self.connection, self.world.now_ms)
        self.world.perform()


def due(keeping):
    """Whether the batch that gathers is to be taken; it may be empty, and somebody wait for it."""
    return bool(keeping.batch.rows) or keeping.awaited >= keeping.number


class Disk:
    """The tables as they are on disk; `wall_ms` is the time of day."""

    def __init__(self):
        self.tables = {table: {} for table in KEYS}
        self.wall_ms = 1_700_000_000_000

    def take(self, batch):
        for (table, key), row in batch.rows.items():
            if (table, key) in batch.born:
                assert key not in self.tables[table]
            if row is None:
                self.tables[table].pop(key, None)
            else:
                self.tables[table][key] = row

    def kept(self):
        kept = StoredRows()
        for table, rows in self.tables.items():
            kept.tables[table] = [rows[key] for key in sorted(rows)]
        return kept

    def count(self):
        """How many rows there are in each table that has any."""
        return {table.TABLE: len(rows) for table, rows in self.tables.items() if rows}


class World:
    """One hub, its clients, its application and its disk, if it has one."""

    def __init__(self, *, complete=True, disk=None, now_ms=1_000_000, **options):
        self.now_ms = now_ms
        self.ids = 0
        options.setdefault("prefix", HEADWATER)
        if isinstance(options.get("limits"), dict):
            options["limits"] = MqttLimits(**options["limits"])
        self.hub = Hub(new_client_id=self.new_id, **options)
        self.options = options
        self.disk = disk
        self.commits = []  # with their numbers, until they are durable
        self.syncs = True  # at once; False: when `sync` is called
        self.clients = {}
        self.complete_at_once = complete
        self.batches = []
        self.checks = []
        if disk is not None:
            ahead_ms = disk.wall_ms - now_ms
            self.hub.keep(HubStorage(lambda: ahead_ms))
            restore(self.hub, disk.kept(), now_ms)
            self.perform()

    def after(self, *, orderly, away_ms=0, commits=0):
        """The world after this one has ended, with another clock of its own.

        Without order, so many of the commits that were under way have reached the disk.
        """
        if orderly:
            self.hub.shut_down(self.now_ms)
            self.perform()
            self.sync()
        else:
            for _number, batch in self.commits[:commits]:
                self.disk.take(batch)
        self.disk.wall_ms += away_ms
        return World(
            complete=self.complete_at_once, disk=self.disk, now_ms=self.now_ms // 3, **self.options
        )

    def sync(self, count=1_000_000):
        """The commits under way are durable, or so many of them."""
        while self.commits and count:
            count -= 1
            number, batch = self.commits.pop(0)
            self.disk.take(batch)
            self.hub.durable(number)
            self.perform()

    def new_id(self):
        self.ids += 1
        return f"made-{self.ids}"

    def client(self, version, client_id="c", *, sent=None, **fields):
        """An open client; what it got first is kept in `welcome`."""
        client = Client(self, version)
        fields.setdefault("clean_start", True)
        client.send(sent or p.Connect(version, client_id, **fields))
        client.welcome = client.got.pop(0) if client.got else None
        assert isinstance(client.welcome, p.Connack | None)
        return client

    def handed(self):
        """All messages handed to the application since the last time."""
        batches, self.batches = self.batches, []
        return [message for batch in batches for message in batch]

    def complete(self, message, code=0):
        self.hub.complete(message.token, code, self.now_ms)
        self.perform()

    def publish(self, topic, payload, qos=0, retain=False, properties=None):
        count = self.hub.publish(
            p.Publish(topic, payload, qos, retain, properties=properties), self.now_ms
        )
        self.perform()
        return count

    def checked(self, good):
        check = self.checks.pop(0)
        self.hub.checked(check.connection, good=good, now_ms=self.now_ms)
        self.perform()
        return check

    def advance(self, by_ms):
        """Let time pass, waking the hub exactly when it wants to be woken."""
        until = self.now_ms + by_ms
        if self.disk is not None:
            self.disk.wall_ms += by_ms
        while (due := self.hub.next_wake()) is not None and due <= until:
            self.now_ms = max(self.now_ms, due)
            self.hub.wake(self.now_ms)
            self.perform()
        self.now_ms = until

    def perform(self):
        hub = self.hub
        while hub.messages or hub.dirty or hub.effects:
            if hub.messages:
                batch, hub.messages = hub.messages, []
                self.batches.append(batch)
                if self.complete_at_once:
                    for message in batch:
                        hub.complete(message.token, 0, self.now_ms)
            for connection in hub.dirty:
                self.write(connection)
            hub.dirty.clear()
            for effect in hub.take_effects():
                self.carry_out(effect)
        self.check_ledger()
        self.check_waiting()
        # As in a broker: one commit is under way, and what gathers meanwhile is the next.
        if self.disk is not None and due(hub.keeping) and not self.commits:
            self.commits.append(hub.keeping.take())
            if self.syncs:
                self.sync()

    def write(self, connection):
        client, data = self.clients[connection], connection.flush()
        client.bytes_got += len(data)
        client.got += client.decoder.decode(data)
        if connection.more and client.takes:
            self.hub.writable(connection, self.now_ms)

    def carry_out(self, effect):
        client = self.clients[effect.connection]
        if isinstance(effect, CloseConnection):
            client.closed, client.fault = effect.reason, effect.fault
        elif isinstance(effect, ReadConnection):
            client.reads = effect.on
        elif isinstance(effect, CheckPassword):
            self.checks.append(effect)

    def check_waiting(self):
        """Nobody waits for nothing, or for what will not come, and in order."""
        keeping = self.hub.keeping
        waiting = {} if keeping is None else keeping.waiting
        for connection in waiting:
            assert not connection.closed
            assert keeping.durable < connection.waits <= keeping.number
            assert due(keeping) or self.commits
        for client in self.clients.values():
            connection = client.connection
            numbers = [number for number, _data in connection.held_back]
            assert numbers == sorted(numbers)
            assert bool(connection.waits) == (connection in waiting)
            assert connection.held_back_bytes == sum(len(data) for _, data in connection.held_back)

    def check_ledger(self):
        """Every copy that was routed was sent, was dropped by a reason, or is held."""
        counters = self.hub.counters
        held = sum(session.outgoing.held_messages for session in self.hub.sessions.values())
        assert counters.routed == counters.sent + sum(counters.dropped.values()) + held
        pending = sum(client.connection.pending_bytes for client in self.clients.values())
        assert counters.pending_bytes == pending
        queued = 0
        for session in self.hub.sessions.values():
            own = session.outgoing
            copies = [*own._inflight.values(), *own._waiting, *own._loose]
            assert own.room.held_bytes == sum(held.message.size_bytes for held in copies)
            queued += own.room.held_bytes
        assert counters.queued_bytes == queued


def kept(world, version, client_id="c", **fields):
    """A client whose session outlives its connection by an hour."""
    if version == p.V5:
        fields["properties"] = p.Properties(session_expiry_interval=3600)
    return world.client(version, client_id, clean_start=False, **fields)
