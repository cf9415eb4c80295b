"""How the two ends of a new connection learn who the other is, and that it may be here.

Owns the hellos and the proofs. Must not know sessions. Invariant: no name is believed before the
other has proven that it has the same shared secret, over both hellos of this very connection; the
secret itself is never sent.

    dialler             listener
      hello  ------------>
             <------------  hello
      proof  ------------>               the dialler proves first: a stranger learns nothing
             <------------  proof

Without a secret on both sides the proofs are made with an empty one and prove nothing; whether that
will do is decided where the listener is configured.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from broker.network.session.frames import (
    NAME_CHARS_MAX,
    NONCE_BYTES,
    REASON_CHARS_MAX,
    Bye,
    Frame,
    Hello,
    LinkError,
    Proof,
    check_version,
    decode,
    encode,
)

_CONTEXT = b"headwater link 1 "


class PeerClosedError(LinkError):
    """The other has closed the connection and said why, in words made fit for a log."""

    def __init__(self, reason: str) -> None:
        told = "".join(char if char.isprintable() else "?" for char in reason[:REASON_CHARS_MAX])
        super().__init__(f"it says: {told}")


class Handshake:
    """One connection until its other end is known: then `done`, and `other` is its hello."""

    __slots__ = (
        "_certified",
        "_heard",
        "_mine",
        "_secrets",
        "dialled",
        "done",
        "expected",
        "other",
        "secret",
    )

    def __init__(
        self,
        mine: Hello,
        secrets: Sequence[bytes],
        *,
        dialled: bool,
        expected: str = "",
        certified: str = "",
    ) -> None:
        """`secrets` are all that are valid, the one to prove with first."""
        self._mine = encode(mine)
        self._secrets = secrets
        self.secret = secrets[0]
        self.dialled = dialled
        self.expected = expected
        self._certified = certified
        self._heard = b""
        self.other: Hello | None = None
        self.done = False

    def opened(self) -> bytes:
        """Return what to say first: the listener nothing."""
        return self._mine if self.dialled else b""

    def heard(self, body: memoryview) -> bytes:
        """Return what to answer to a frame. Raises LinkError: the connection is to be closed."""
        # The version is looked at before the rest: what a later one says in its hello is not
        # known here, and the sentence is to name the versions and not call the frame malformed.
        if self.other is None:
            check_version(body)
        frame = decode(body)
        if isinstance(frame, Bye):
            raise PeerClosedError(frame.reason)
        if self.other is None:
            return self._hello(frame, bytes(body))
        if not isinstance(frame, Proof):
            raise LinkError("it speaks before it has proven who it is")
        # Who dialled is answered with the very secret that it has proven.
        for secret in self._secrets[:1] if self.dialled else self._secrets:
            self.secret = secret
            # Compared in constant time: how long it takes tells nothing of the digest.
            if hmac.compare_digest(frame.digest, self._proof(dialler=not self.dialled)):
                break
        else:
            raise LinkError(self._why_not())
        self.done = True
        return b"" if self.dialled else encode(Proof(self._proof(dialler=False)))

    def _hello(self, frame: Frame, body: bytes) -> bytes:
        if not isinstance(frame, Hello):
            raise LinkError("it does not begin with a hello")
        self._check(frame)
        self.other, self._heard = frame, body
        return encode(Proof(self._proof(dialler=True))) if self.dialled else self._mine

    def _check(self, hello: Hello) -> None:
        mine: Frame = decode(memoryview(self._mine)[4:])
        assert isinstance(mine, Hello)
        # A name comes into logs, topics and status pages: what cannot be printed is kept out
        # here.
        name = hello.broker
        if not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable():
            raise LinkError("its name is none that a broker can have")
        if len(hello.nonce) != NONCE_BYTES or hello.epoch < 0 or hello.attempt < 0:
            raise LinkError("its hello cannot be understood")
        if name == mine.broker:
            raise LinkError(
                f'both ends are called "{name}": a broker does not link to itself, and each needs '
                "a name of its own"
            )
        if self.expected and name != self.expected:
            raise LinkError(f'the broker there is "{name}", not "{self.expected}"')
        if self._certified and name != self._certified:
            raise LinkError(f'"{name}" shows a certificate of "{self._certified}"')

    def _proof(self, *, dialler: bool) -> bytes:
        """The digest that the dialler, or the listener, has to show."""
        # Both hellos are in it, and so both nonces: a proof that was overheard is of no use on
        # another connection. They stand in the dialler's order, so that both ends compute the
        # same.
        mine, theirs = self._mine[4:], self._heard
        hellos = (mine, theirs) if self.dialled else (theirs, mine)
        text = hashlib.sha256(hellos[0]).digest() + hashlib.sha256(hellos[1]).digest()
        # Without a word of who proves, a dialler's proof sent back to it would pass for the
        # listener's.
        who = b"dialler " if dialler else b"listener "
        return hmac.digest(self.secret, _CONTEXT + who + text, "sha256")

    def _why_not(self) -> str:
        assert self.other is not None
        if bool(self._secrets[0]) == self.other.secured:
            return "its shared secret is another one"
        return "one broker has a shared secret and the other has none; give both the same"
