"""Packets for the storm: good ones from a few names, and what becomes of them by accident.

Owns the choice of what is sent. Must not know the server. Invariant: it follows from the generator
of randomness that it is given.
"""

from tests.conformance import wire as w

CLIENTS = 30
TOPICS = (
    *("a", "a/b", "a/b/c", "b", "b/c", "/", "a//b", "$SYS/x", "é/日本", "x" * 200),
    *("headwater/events/Temp/t1", "headwater/sources/t1", "headwater/status/b", "headwater"),
)
FILTERS = (
    *("#", "+", "a/#", "+/b", "a/+/c", "b", "b/c", "$SYS/#", "/+", "headwater/#"),
    *("$share/g/a/#", "$share/g/b", "$share/h/+", "headwater/events/+/t1", "+/+/#"),
)
STRANGE = ("$share//a", "$share/g", "a#", "a/#/b", "+a", "", "a\0b", "x" * 2_000, "/" * 80)
WEIGHTS = {
    w.PUBLISH: 60,
    w.SUBSCRIBE: 14,
    w.UNSUBSCRIBE: 4,
    w.PUBACK: 2,
    w.PUBREC: 1,
    w.PUBREL: 8,
    w.PUBCOMP: 1,
    w.PINGREQ: 3,
    w.DISCONNECT: 1,
    w.CONNECT: 1,
    w.AUTH: 1,
}
GOOD, BAD = 400, 1_200  # packets made in advance, for each version


class Corpus:
    """Packets of one storm."""

    def __init__(self, chance, limits):
        self.chance = chance
        self.limits = limits
        self._good = {v: [self.make(v) for _ in range(GOOD)] for v in (w.V311, w.V5)}
        self._bad = {
            v: [self.spoil(v, self.chance.choice(self._good[v])[0]) for _ in range(BAD)]
            for v in (w.V311, w.V5)
        }

    # --- parts --------------------------------------------------------------------------------

    def topic(self):
        return self.chance.choice(TOPICS)

    def payload(self):
        size = self.chance.choice((0, 1, 10, 10, 120, 130, 700))
        return self.chance.randbytes(size)

    def pid(self):
        return self.chance.choice((1, 2, 3, 4, 5, 65_535))

    def props(self, *choices):
        """Some of these properties, each once."""
        return tuple(one for one in choices if self.chance.random() < 0.3)

    def login(self):
        chance = self.chance
        version = chance.choice((w.V311, w.V5, w.V5))
        v5 = version == w.V5
        will = None
        if chance.random() < 0.3:
            delay = self.props((w.WILL_DELAY, chance.choice((0, 1, 60))), (w.USER, ("k", "v")))
            will = w.Will(
                self.topic(), self.payload(), chance.randrange(3), chance.random() < 0.2, delay
            )
        props = self.props(
            (w.SESSION_EXPIRY, chance.choice((0, 1, 60, 0xFFFFFFFF))),
            (w.RECEIVE_MAX, chance.choice((1, 2, 10, 65_535))),
            (w.MAX_PACKET, chance.choice((100, 300, 1_000, 100_000))),
            (w.ALIAS_MAX, chance.choice((0, 5))),
            (w.PROBLEM_INFO, chance.randrange(2)),
            (w.USER, ("k", "v")),
        )
        user = password = None
        if chance.random() < 0.7:
            user = chance.choice(("anna", "bert"))
            password = chance.choice((b"right", b"right", b"wrong"))
        return w.Login(
            version,
            f"c{chance.randrange(CLIENTS)}" if chance.random() < 0.9 else "",
            chance.random() < 0.4,
            chance.choice((0, 0, 1, 30)),
            will,
            user,
            password,
            props if v5 else (),
        )

    # --- packets ------------------------------------------------------------------------------

    def make(self, version):
        """A packet that may well be sent, and its identifier where it answers the server."""
        kind = self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        if kind == w.PUBLISH:
            return self._publish(version), 0
        if kind == w.SUBSCRIBE:
            return self._subscribe(version), 0
        if kind == w.UNSUBSCRIBE:
            filters = self.chance.sample(FILTERS, self.chance.randrange(1, 4))
            return w.unsubscribe(version, self.pid(), filters), 0
        if kind in {w.PUBACK, w.PUBREC, w.PUBREL, w.PUBCOMP}:
            pid = self.pid()
            return w.ack(kind, pid), pid
        if kind == w.DISCONNECT:
            codes = (None, 0, 4, 0x80) if version == w.V5 else (None,)
            return w.disconnect(self.chance.choice(codes)), 0
        if kind == w.CONNECT:
            return self.login().encode(), 0
        return w.packet(kind), 0

    def _publish(self, version):
        chance = self.chance
        qos = chance.randrange(3)
        props, topic = (), self.topic()
        if version == w.V5:
            props = self.props(
                (w.MESSAGE_EXPIRY, chance.choice((0, 1, 60))),
                (w.RESPONSE_TOPIC, "r"),
                (w.CORRELATION, b"\0\xff"),
                (w.CONTENT_TYPE, "t"),
                (w.USER, ("k", "v")),
                (w.ALIAS, chance.randrange(1, 5)),
            )
            if chance.random() < 0.3 and any(name == w.ALIAS for name, _ in props):
                topic = ""
        dup = bool(qos) and chance.random() < 0.2
        retain = chance.random() < 0.15
        return w.publish(version, topic, self.payload(), qos, self.pid(), retain, dup, props)

    def _subscribe(self, version):
        chance = self.chance
        filters = []
        for item in chance.sample(FILTERS, chance.randrange(1, 4)):
            options = chance.randrange(3)
            if version == w.V5:
                options |= chance.choice((0, 8, 16, 32)) | (
                    4 if chance.random() < 0.2 and not item.startswith("$share") else 0
                )
            filters.append((item, options))
        props = self.props((w.SUBSCRIPTION_ID, chance.choice((1, 127, 268_435_455))))
        return w.subscribe(version, self.pid(), filters, props if version == w.V5 else ())

    def good(self, version):
        return self.chance.choice(self._good[version])

    def bad(self, version):
        return self.chance.choice(self._bad[version])

    # --- accidents ----------------------------------------------------------------------------

    def spoil(self, version, data):
        """The packet with something wrong in it, or one that is wrong from the start."""
        chance = self.chance
        return chance.choice(
            (self._flip, self._cut, self._grow, self._stretch, self._cross, self._strange)
        )(version, bytearray(data))

    def _flip(self, _version, data):
        for _ in range(self.chance.choice((1, 1, 2, 8))):
            data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)
        return bytes(data)

    def _cut(self, _version, data):
        at = self.chance.randrange(len(data))
        del data[at : at + self.chance.randrange(1, 8)]
        return bytes(data)

    def _grow(self, _version, data):
        at = self.chance.randrange(len(data) + 1)
        data[at:at] = self.chance.randbytes(self.chance.randrange(1, 8))
        return bytes(data)

    def _stretch(self, _version, data):
        """Another length in front of the same body."""
        found = w.split(data)
        length = max(0, len(found[1]) + self.chance.choice((-3, -1, 1, 3, 200, 5_000, 2**27)))
        return bytes(data[:1]) + w.varint(length) + found[1]

    def _cross(self, version, data):
        """The first byte of one packet before the body of another, or of the other version."""
        other = self.chance.choice(self._good[self.chance.choice((w.V311, w.V5))])[0]
        return bytes(other[:1]) + bytes(data[1:])

    def _strange(self, version, _data):
        """What is well formed and not allowed."""
        name = self.chance.choice(STRANGE)
        return self.chance.choice(
            (
                w.subscribe(version, self.pid(), [(name, 1)]),
                w.unsubscribe(version, self.pid(), [name]),
                w.publish(version, name, b"x", 1, self.pid()),
                w.publish(version, "a", b"x", 3, self.pid()),
                w.subscribe(version, 0, [("a", 0)]),
                w.subscribe(version, 1, []),
                w.subscribe(version, 1, [("a", 0xFF)]),
                w.packet(self.chance.choice((0, w.CONNACK, w.SUBACK, w.UNSUBACK, w.PINGRESP))),
                w.publish(w.V5, "a", b"x", props=[(w.ALIAS, 0)]),
                w.publish(w.V5, "a", b"x", props=[(w.SUBSCRIPTION_ID, 5)]),
                w.publish(w.V5, "a", b"x", props=[(w.USER, ("k", "v"))] * 100),
            )
        )
