"""The far end of one connection in the storm: what it has said, and whether the answers may be so.

Owns the checks of what the face says. Must not know the face's own codec: `wire` reads.
"""

from collections import deque

from tests.conformance import wire as w


class Plug:
    """The far end of one connection."""

    def __init__(self, storm):
        self.storm = storm
        self.connection = None  # the hub's, once it has one
        self.buffer = bytearray()
        self.outbox = bytearray()  # of a packet that was sent in part
        self.sane = True  # nothing but whole packets, each of them good, was sent
        self.greeted = False
        self.told_end = False
        self.shut = False
        self.reads = True
        self.stalled = False
        self.version = 0
        self.owed = deque(maxlen=50)  # messages that were not acknowledged
        self.inflight = set()
        self.packet_max = 0xFFFFFFFF
        self.receive_max = 0xFFFF

    def greet(self, login):
        """What this end says of itself in a sane CONNECT."""
        props = dict(login.props)
        self.packet_max = props.get(w.MAX_PACKET, self.packet_max)
        self.receive_max = props.get(w.RECEIVE_MAX, self.receive_max)

    def feed(self, data):
        """What the face has said."""
        assert not self.shut, "something is said after the end"
        self.buffer += data
        version = self.connection.version
        if self.buffer[:4] == b"\x20\x02\x00\x01" and not self.greeted:
            version = w.V311  # how strangers are told that their version is not spoken
        while self.buffer:
            found = w.split(self.buffer)
            assert found is not None, "a packet is written in parts"
            del self.buffer[: found[2]]
            self.look(w.read(version, *found), version)

    def look(self, got, version):
        """A packet of the face's: may it say that, here and now?"""
        assert not self.told_end, f"{got} comes after the last word"
        assert self.greeted or got.kind == w.CONNACK, f"{got} comes before the CONNACK"
        if got.kind == w.CONNACK:
            assert not self.greeted, "a second CONNACK"
            self.greeted, self.version = True, version
            self.told_end = got.code != 0
            assert not (got.code and got.present)
        elif got.kind == w.DISCONNECT:
            self.told_end = True
            assert got.code >= 0x80
        elif got.kind == w.PUBLISH:
            self.look_at_message(got)
        elif got.kind in {w.PUBACK, w.PUBREC, w.PUBCOMP, w.PUBREL, w.SUBACK, w.UNSUBACK}:
            assert got.pid
            if got.kind in {w.PUBREC, w.PUBREL} and got.code < 0x80:
                self.owed.append((w.PUBREL if got.kind == w.PUBREC else w.PUBCOMP, got.pid))
        if self.sane:
            assert got.size <= self.packet_max, f"{got} has {got.size} bytes"

    def look_at_message(self, got):
        assert got.topic or got.of(w.ALIAS)
        assert not set(got.topic) & {"+", "#"}
        assert got.qos or not got.dup
        if not got.qos:
            return
        assert got.pid
        self.owed.append((w.PUBACK if got.qos == 1 else w.PUBREC, got.pid))
        if self.sane:
            assert got.pid not in self.inflight, f"{got} is sent a second time"
            self.inflight.add(got.pid)
            assert len(self.inflight) <= self.receive_max

    def settle(self, kind, pid, code=0):
        """This end acknowledges; what it has not got may be on its way, so it is not sane then."""
        if kind in {w.PUBACK, w.PUBREC, w.PUBCOMP}:
            self.sane = self.sane and pid in self.inflight
            if kind != w.PUBREC or code >= 0x80:
                self.inflight.discard(pid)
