"""Frames: what two brokers say to each other on one connection, as bytes.

Owns the wire format: four bytes of length, then that many of MessagePack, an array that begins with
the frame's kind. Must not know sessions. Invariant: whatever bytes come and however they are cut,
the outcome is whole frames within their size or a LinkError with a sentence.

A hello and a goodbye begin alike in all versions: a hello with its kind and the latest version that
whoever sends it speaks, a goodbye with its kind and a sentence. Both ends speak the lesser of their
two versions, also in what messages hold. Further elements at the end of an array are for later
versions and are not looked at.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import msgspec
from msgspec import Struct

VERSION = 4  # version 1 has no messages `Probe`, `Echo`, `RemoteCall`, and none of functions
OLDEST = 1  # that is spoken, too
HELLO = 0
LENGTH_BYTES = 4
ACK_BYTES = 18  # of an acknowledgement, a sign of life too, with its length and of usual numbers
DATA_BYTES = 14  # likewise around a message
NAME_CHARS_MAX = 64
NONCE_BYTES = 16
REASON_CHARS_MAX = 400


class LinkError(Exception):
    """A connection cannot go on; the text is a sentence for a person, and for the other broker."""


class Hello(Struct, frozen=True, array_like=True, tag=HELLO):
    """Introduce who speaks. `epoch` is of its process and grows with each start.

    `attempt` counts the connections that it has dialled; `holds` is the turn of the connection to
    the same broker that it has now, 0 if none. `secured`: it has a shared secret.
    """

    version: int
    broker: str
    epoch: int
    nonce: bytes
    attempt: int = 0
    holds: int = 0
    secured: bool = False


class Proof(Struct, frozen=True, array_like=True, tag=1):
    """That who speaks has the shared secret: a digest of both hellos under it."""

    digest: bytes


class Welcome(Struct, frozen=True, array_like=True, tag=2):
    """The decider takes this connection, its `turn`-th with this neighbour.

    `stream` is the number of what it sends in this epoch; `known_epoch` and `known_stream` name
    what it receives, of which it has all frames up to `received`.
    """

    turn: int
    stream: int
    known_epoch: int
    known_stream: int
    received: int


class Accept(Struct, frozen=True, array_like=True, tag=3):
    """The other takes it, too. `resumed`: both go on where they were; else all begins anew."""

    resumed: bool
    stream: int
    received: int


class Data(Struct, frozen=True, array_like=True, tag=4, gc=False):
    """Messages of one class, in order; `seq` ascends by one. `events` is how many they hold."""

    seq: int
    control: bool
    events: int
    messages: list[bytes]


class Ack(Struct, frozen=True, array_like=True, tag=5, gc=False):
    """All frames up to `seq` came; events may be sent until so many, and bytes, were sent in all.

    Both count from the beginning of the stream, events' messages alone.
    """

    seq: int
    events: int
    size_bytes: int


class Ping(Struct, frozen=True, array_like=True, tag=6):
    """A sign of life."""


class Bye(Struct, frozen=True, array_like=True, tag=7):
    """Why whoever speaks closes the connection. `taken`: another process of that name is there."""

    reason: str
    taken: bool = False


Frame: TypeAlias = Hello | Proof | Welcome | Accept | Data | Ack | Ping | Bye

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Frame] = msgspec.msgpack.Decoder(Frame)
_loose = msgspec.msgpack.Decoder(list)


def encode(frame: Frame) -> bytes:
    """The bytes of a frame with their length before them."""
    # The length stands before the body, not in it: a reader of small pieces knows how much is to
    # come without decoding anything of a stranger.
    body = _encoder.encode(frame)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def decode(body: bytes | memoryview) -> Frame:
    """The frame that the bytes after the length stand for. Raises LinkError."""
    # Decoding is tried first, as it nearly always works; that the other may only be of another
    # version is looked into when it has failed.
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    check_version(body, VERSION)
    raise LinkError("a frame of it cannot be understood")


def check_version(body: bytes | memoryview, latest: float = math.inf) -> None:
    """Raises LinkError where this is the hello of a broker of too old a version, or a later one."""
    try:
        parts = _loose.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if len(parts) < 2 or type(parts[0]) is not int or parts[0] != HELLO:
        return
    version = parts[1]
    if type(version) is int and version > latest:
        raise LinkError(
            f"one broker speaks version {version} of links, the other no more than {VERSION}; "
            "update the older one"
        )
    if type(version) is int and version < OLDEST:
        raise LinkError(f"version {version} of links is no longer spoken; update the older broker")


class FrameReader:
    """Cuts the bytes of one connection into the bodies of frames; begins with small ones.

    Each byte is copied at most twice, however the bytes are cut.
    """

    __slots__ = ("_at", "_data", "_later", "_later_bytes", "_limit_bytes", "_need", "_who")

    def __init__(self, limit_bytes: int) -> None:
        self._data = b""
        self._at = 0  # up to here it was read
        self._later: list[bytes] = []  # what came behind `_data`
        self._later_bytes = 0
        self._need = LENGTH_BYTES  # so much has to be there before anything more can be told
        self._limit_bytes = limit_bytes
        self._who = "this is no broker, or "

    def trust(self, limit_bytes: int) -> None:
        """The other is known: its frames may be longer from now on."""
        self._limit_bytes = limit_bytes
        self._who = ""

    def push(self, data: bytes) -> None:
        """Bytes came; `next` has what they complete."""
        self._later.append(data)
        self._later_bytes += len(data)

    def next(self) -> memoryview | None:
        """The next body that is whole, or None. Raises LinkError where it is too long or empty."""
        while True:
            have = len(self._data) - self._at
            if have < self._need:
                if have + self._later_bytes < self._need:
                    return None
                # Joined only when a whole body is there: a long frame in small pieces would else
                # be copied once for each piece.
                self._data = b"".join([self._data[self._at :], *self._later])
                self._at = self._later_bytes = 0
                self._later.clear()
            begin = self._at + LENGTH_BYTES
            if self._need > LENGTH_BYTES:
                self._at += self._need
                self._need = LENGTH_BYTES
                return memoryview(self._data)[begin : self._at]
            size = int.from_bytes(self._data[self._at : begin], "big")
            if not 0 < size <= self._limit_bytes:
                raise LinkError(
                    f"{self._who}its frame has {size} bytes, from 1 to {self._limit_bytes} are "
                    "allowed"
                )
            self._need = LENGTH_BYTES + size
