"""The few packets of MQTT that a load needs, on blocking sockets.

Owns their bytes. Must not use the broker's codec: what is measured must not measure itself.
Invariant: a connection that is returned was accepted.
"""

import socket

PUBLISH = 3
PUBACK = 4
CONNECT_S = 5.0


def remaining_length(length: int) -> bytes:
    """The variable-length integer before a packet's body."""
    out = bytearray()
    while True:
        length, low = length >> 7, length & 0x7F
        out.append(low | (0x80 if length else 0))
        if not length:
            return bytes(out)


def packet(first: int, body: bytes) -> bytes:
    """A packet of this first byte and body."""
    return bytes((first,)) + remaining_length(len(body)) + body


def short_text(value: str) -> bytes:
    """A text with its length."""
    data = value.encode()
    return len(data).to_bytes(2, "big") + data


def connect(port: int, client_id: str, version: int) -> socket.socket:
    """A socket with an accepted CONNECT."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=CONNECT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    properties = b"\0" if version == 5 else b""
    head = short_text("MQTT") + bytes((version, 2, 0, 0)) + properties
    connection.sendall(packet(0x10, head + short_text(client_id)))
    answer = connection.recv(1024)
    if answer[:1] != b"\x20" or answer[3] != 0:
        raise RuntimeError(f"CONNECT was refused: {answer!r}")
    connection.settimeout(None)
    return connection


def subscribe(connection: socket.socket, topic_filter: str, qos: int, version: int) -> None:
    """Subscribe; RuntimeError where that is refused."""
    properties = b"\0" if version == 5 else b""
    body = b"\0\x01" + properties + short_text(topic_filter) + bytes((qos,))
    connection.sendall(packet(0x82, body))
    answer = connection.recv(64)
    if answer[:1] != b"\x90" or answer[-1] > 2:
        raise RuntimeError(f"SUBSCRIBE was refused: {answer!r}")


def publish(topic: bytes, payload: bytes, qos: int, packet_id: int, version: int) -> bytes:
    """A PUBLISH; the topic comes with its length."""
    head = topic + (packet_id.to_bytes(2, "big") if qos else b"")
    return packet(0x30 | qos << 1, head + (b"\0" if version == 5 else b"") + payload)


def frame_at(data: bytes, position: int) -> tuple[int, int] | None:
    """Where the body of the whole packet at `position` begins and ends."""
    length = shift = 0
    at = position + 1
    while at < len(data):
        byte = data[at]
        length |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return (at, at + length) if at + length <= len(data) else None
        shift += 7
    return None
