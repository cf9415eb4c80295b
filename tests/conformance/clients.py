"""Clients on blocking sockets for the conformance tests, and the scene in which a test has them.

A client waits at most `PATIENCE_S` for anything. That nothing comes is never shown by waiting: a
PINGREQ follows, and what the server had to say before has to come before its PINGRESP.
"""

import itertools
import socket
import struct
from contextlib import contextmanager, suppress

from tests.conformance import wire as w

PATIENCE_S = 5.0
_numbers = itertools.count(1)


class ClosedError(AssertionError):
    """The server closed the connection where a packet was expected."""


class NotSpoken(Exception):  # noqa: N818 - it is no error
    """The server has said that it does not do what the statement is about."""


class Client:
    """One connection."""

    def __init__(self, port, version):
        self.version = version
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.inbox = []  # packets that came while another was waited for
        self.pids = itertools.count(1)
        self.client_id = ""
        self.connack = None

    def send(self, *data):
        with suppress(BrokenPipeError, ConnectionResetError):  # what follows tells of the end
            self.socket.sendall(b"".join(data))
        return self

    def _read(self):
        """The next packet from the socket, None at its end."""
        while (found := w.split(self.buffer)) is None:
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                assert not self.buffer, f"the stream ends within a packet: {self.buffer!r}"
                return None
            self.buffer += data
        del self.buffer[: found[2]]
        return w.read(self.version, *found)

    def next(self):
        """The next packet, whatever it is."""
        got = self.inbox.pop(0) if self.inbox else self._read()
        if got is None:
            raise ClosedError("the server closed the connection")
        return got

    def expect(self, kind):
        """The next packet, which must be of this kind."""
        got = self.next()
        assert got.kind == kind, f"{w.KINDS[kind]} was due, and there is {got}"
        return got

    def answer(self, kind):
        """The next packet of this kind; the PUBLISHes before it are kept for later."""
        kept = []
        while (got := self.next()).kind != kind:
            assert got.kind == w.PUBLISH, f"{w.KINDS[kind]} was due, and there is {got}"
            kept.append(got)
        self.inbox = kept + self.inbox
        return got

    def rest(self):
        """All that the server had to say up to now."""
        self.send(w.packet(w.PINGREQ))
        said = []
        while (got := self.next()).kind != w.PINGRESP:
            said.append(got)
        return said

    def nothing(self):
        """The server has nothing to say, and the connection is open."""
        said = self.rest()
        assert not said, [str(got) for got in said]

    def messages(self):
        """The PUBLISHes up to now, and nothing else came; they are acknowledged in full."""
        found = []
        while said := self.rest():  # what is acknowledged may make room for more
            for got in said:
                assert got.kind == w.PUBLISH, str(got)
            for got in said:
                self.finish(got)
            found += said
        return found

    def finish(self, got):
        """Acknowledge a message as its QoS asks."""
        if got.qos == 1:
            self.send(w.ack(w.PUBACK, got.pid))
        elif got.qos == 2:
            self.send(w.ack(w.PUBREC, got.pid))
            assert self.answer(w.PUBREL).pid == got.pid
            self.send(w.ack(w.PUBCOMP, got.pid))

    def take(self):
        """The next packet, a PUBLISH that is not acknowledged."""
        return self.expect(w.PUBLISH)

    def payloads(self):
        return [got.payload for got in self.messages()]

    def ended(self):
        """The server closes the connection; the packets that came before that."""
        said = list(self.inbox)
        while (got := self._read()) is not None:
            said.append(got)
        return said

    def refused(self, *codes):
        """The server closes the connection for what it got; in MQTT 5 it may say why.

        Where `codes` are given and it says why, it is one of these. Returns the code or None.
        """
        said = self.ended()
        assert len(said) <= 1, [str(got) for got in said]
        if not said:
            return None
        assert said[0].kind == w.DISCONNECT, str(said[0])
        assert said[0].code >= 0x80
        assert not codes or said[0].code in codes, hex(said[0].code)
        return said[0].code

    # --- what a client does ------------------------------------------------------------------

    def publish(self, topic, payload=b"", qos=0, retain=False, props=(), dup=False):
        """Publish and take the answers; the first of them."""
        pid = next(self.pids) if qos else 0
        self.send(w.publish(self.version, topic, payload, qos, pid, retain, dup, props))
        if not qos:
            return None
        got = self.answer(w.PUBACK if qos == 1 else w.PUBREC)
        assert got.pid == pid
        if qos == 2 and got.code < 0x80:
            self.send(w.ack(w.PUBREL, pid))
            assert self.answer(w.PUBCOMP).pid == pid
        return got

    def subscribe(self, *filters, qos=0, options=0, props=()):
        """Subscribe; the codes granted."""
        pid = next(self.pids)
        self.send(w.subscribe(self.version, pid, [(f, qos | options) for f in filters], props))
        got = self.answer(w.SUBACK)
        assert got.pid == pid
        return list(got.codes)

    def unsubscribe(self, *filters):
        pid = next(self.pids)
        self.send(w.unsubscribe(self.version, pid, filters))
        got = self.answer(w.UNSUBACK)
        assert got.pid == pid
        return list(got.codes)

    def ping(self):
        self.send(w.packet(w.PINGREQ)).expect(w.PINGRESP)

    def disconnect(self, code=None, props=None):
        self.send(w.disconnect(code, props))
        said = self.ended()
        assert not said, [str(got) for got in said]
        self.close()

    def close(self):
        self.socket.close()

    def vanish(self):
        """Lose the connection without a DISCONNECT."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Scene:
    """The server and the clients of one test, with names that no other test has."""

    def __init__(self, peer):
        self.peer = peer
        self.name = f"t{next(_numbers)}"
        self.clients = []
        self._ids = itertools.count(1)

    def topic(self, *levels):
        return "/".join((self.name, *levels))

    def client_id(self):
        return f"{self.name}c{next(self._ids)}"

    def socket(self, version):
        """A connection that has said nothing yet."""
        client = Client(self.peer.port, version)
        self.clients.append(client)
        return client

    def greet(self, version, client_id=None, **parts):
        """A connection that has sent a CONNECT; the answer is still to be read."""
        client = self.socket(version)
        client.client_id = self.client_id() if client_id is None else client_id
        client.send(w.Login(version, client.client_id, **parts).encode())
        return client

    def connect(self, version, client_id=None, **parts):
        """An open connection."""
        client = self.greet(version, client_id, **parts)
        client.connack = client.expect(w.CONNACK)
        assert client.connack.code == 0, hex(client.connack.code)
        return client

    def keep(self, version, client_id=None, expiry_s=3600, **parts):
        """An open connection whose session outlives it."""
        if version == w.V5:
            parts["props"] = (*parts.get("props", ()), (w.SESSION_EXPIRY, expiry_s))
        return self.connect(version, client_id, clean=parts.pop("clean", False), **parts)

    def listen(self, version, *filters, qos=0, **parts):
        """An open connection with subscriptions."""
        client = self.connect(version, **parts)
        self.subscribe(client, *filters, qos=qos)
        return client

    def subscribe(self, client, *filters, qos=0, **parts):
        """Subscribe, and have the QoS that was asked for."""
        granted = client.subscribe(*filters, qos=qos, **parts)
        if qos == 2 and granted == [1] * len(filters):
            self.not_spoken("the server grants QoS 0 and 1 only")
        assert granted == [qos] * len(filters)

    def lose(self, client):
        """The connection vanishes without a DISCONNECT, and the server has seen it."""
        client.vanish()
        self.peer.settle()

    def needs_qos_2(self, client):
        """The test ends here where the server says that it has no QoS 2."""
        if client.connack.of(w.MAX_QOS, 2) < 2:
            self.not_spoken("the server speaks QoS 0 and 1 only")

    def not_spoken(self, reason):
        raise NotSpoken(reason)

    @contextmanager
    def another(self, **options):
        """A scene with a server of other settings, where a test can have one."""
        if not self.peer.settable:
            self.not_spoken("a test cannot choose this server's settings")
        with type(self.peer)(**options) as peer:
            scene = Scene(peer)
            try:
                yield scene
            finally:
                scene.close()

    def pass_time(self, seconds):
        self.peer.pass_time(seconds)

    def close(self):
        for client in self.clients:
            client.close()
