"""What a broker's core wants done: imperatives, at most one of each kind for a message.

Owns the types that `Broker.handle` returns. Must not know who carries them out. Invariant: they are
carried out in the order given, and nothing that leaves the broker leaves in another way.

Whatever promises something to the outside is an effect of its own: `Acknowledge` (to a sensor: your
event is taken), `Emit` (to a subscriber: this was detected), `Reply` (to a client: this is
installed). Here they are carried out at once. A core with a journal numbers the commit that its
message belongs to, puts that number on these three, and whoever carries effects out holds them back
until the commit is on disk, in order; `Publish` and `Note` promise nothing and need not wait.
Nothing else of the machine changes for that.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

Outcome = Literal["taken", "refused", "no_such_topic"]
Level = Literal["debug", "info", "warning", "error"]


class Acknowledge(Struct, frozen=True):
    """Answer the publishers who wait: what they sent is taken, or refused for good."""

    tokens: tuple[Any, ...]
    outcome: Outcome = "taken"


class Publication(Struct, frozen=True):
    """One message: its topic below the prefix; an empty `payload` with `retain` takes it away."""

    topic: str
    payload: bytes
    retain: bool = False
    qos: int = 1


class Publish(Struct, frozen=True):
    """Publish what concerns nobody in particular, in order."""

    publications: tuple[Publication, ...]


class Emission(Struct, frozen=True):
    """One result, encoded as JSON, and whose it is."""

    subscriber: str
    subscription: str
    actor: str
    payload: bytes


class Emit(Struct, frozen=True):
    """Give results to their subscribers and actors, in order."""

    results: tuple[Emission, ...]


class Reply(Struct, frozen=True):
    """Answer a request; `payload` is JSON."""

    reply_to: Any
    client: str
    request: str
    payload: bytes


class Note(Struct, frozen=True):
    """Write one line into the log: what happened, and particulars by name."""

    level: Level
    event: str
    fields: dict[str, str | int]


Effect: TypeAlias = Acknowledge | Publish | Emit | Reply | Note
