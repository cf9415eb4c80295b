"""A hub in virtual time with clients that speak packets: no sockets, no clock, no sleep."""

import pytest

from broker.mqtt import packets as p
from broker.mqtt.codec import Decoder, TopicNames, encode
from broker.mqtt.effects import CheckPassword, Close, Reading
from broker.mqtt.hub import Hub
from broker.mqtt.limits import Limits
from broker.mqtt.router import Prefix

VERSIONS = pytest.mark.parametrize("version", [p.V311, p.V5])
HEADWATER = Prefix("headwater", ("headwater/events/#",))


class Client:
    """One connection, as the client sees it."""

    def __init__(self, world, version, certificate_user=None, address="test:1"):
        self.world = world
        self.version = version
        limits = Limits()
        self.decoder = Decoder(limits, TopicNames(limits), version)
        self.got = []
        self.bytes_got = 0
        self.closed = None  # the reason, once the server has closed
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


class World:
    """One hub, its clients and its application."""

    def __init__(self, *, complete=True, **options):
        self.now_ms = 1_000_000
        self.ids = 0
        options.setdefault("prefix", HEADWATER)
        if isinstance(options.get("limits"), dict):
            options["limits"] = Limits(**options["limits"])
        self.hub = Hub(new_client_id=self.new_id, **options)
        self.clients = {}
        self.complete_at_once = complete
        self.batches = []
        self.checks = []

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

    def write(self, connection):
        client, data = self.clients[connection], connection.flush()
        client.bytes_got += len(data)
        client.got += client.decoder.decode(data)
        if connection.more and client.takes:
            self.hub.writable(connection, self.now_ms)

    def carry_out(self, effect):
        client = self.clients[effect.connection]
        if isinstance(effect, Close):
            client.closed = effect.reason
        elif isinstance(effect, Reading):
            client.reads = effect.on
        elif isinstance(effect, CheckPassword):
            self.checks.append(effect)

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
            assert own.queued_bytes == sum(held.message.size_bytes for held in copies)
            queued += own.queued_bytes
        assert counters.queued_bytes == queued


def kept(world, version, client_id="c", **fields):
    """A client whose session outlives its connection by an hour."""
    if version == p.V5:
        fields["properties"] = p.Properties(session_expiry_interval=3600)
    return world.client(version, client_id, clean_start=False, **fields)
