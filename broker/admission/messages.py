"""What a broker that joins asks, and what it is given.

Owns the shapes of both. Must not know how they are sealed. Invariant: elements that a later version
adds have defaults, and are not looked at by this one.
"""

import msgspec

REQUEST_BYTES_MAX = 8_192


class Enquiry(msgspec.Struct, frozen=True):
    """One request as it crosses the line: the invite's identifier in hex, the rest in base64."""

    invite: str
    sealed: bytes


class JoinRequest(msgspec.Struct, frozen=True):
    """The broker's name, its public key (DER), and its half of the secret for the answer."""

    name: str
    key: bytes
    agreeing: bytes


class Certificates(msgspec.Struct, frozen=True, kw_only=True):
    """All in PEM; `authority_key` only where the new broker may sign others' certificates."""

    own: bytes
    authority: bytes
    authority_key: bytes = b""
    demanded: str = "required"

    def __repr__(self) -> str:
        """Without the key."""
        return "Certificates()"


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """All that an invited broker is given. `host` is empty where it is the one that was asked.

    `alike` are settings by section and key that have to be the same at all brokers. With `discover`
    brokers on its segment find each other.
    """

    broker: str
    host: str
    port: int
    secrets: tuple[str, ...] = ()
    seeds: str = ""
    discover: bool = False
    certificates: Certificates | None = None
    alike: dict[str, dict[str, bool | int]] = {}

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"Admission(broker={self.broker!r})"


class SealedAdmission(msgspec.Struct, frozen=True):
    """The answer that a broker gives: a sealed Admission in base64."""

    ok: bool
    sealed: bytes
