"""What routers of neighbouring brokers tell each other, and what goes to a broker's own users.

Owns the shape of messages. Must not know links or how messages are encoded. Invariant: on one link
the messages of a router arrive in the order in which it gave them out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from broker.network.routing.advertisement.operator import Advertisement, Operator

LOCAL = ""  # no broker's name: names are never empty
"""In the place of a neighbour's name: the broker's own sources and subscriptions."""


class Advertise(msgspec.Struct, frozen=True, tag=True):
    """A source sends what this says; it takes the place of what the source said before."""

    advertisement: Advertisement


class Withdraw(msgspec.Struct, frozen=True, tag=True):
    """A source sends no longer."""

    source: str  # by its name; the neighbour forgets what it said


class Want(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Send what the operator asks for; it takes the place of an earlier one with its id.

    `covered`: what was asked for so far, and stands as this comes, asks for all of that.
    """

    operator: Operator
    covered: bool = False  # the other end matches it, and asks nobody for it


class Unwant(msgspec.Struct, frozen=True, tag=True):
    """The operator of that id asks no longer."""

    id: str  # of the operator that is taken back


class Events(msgspec.Struct, frozen=True):
    """Events for a neighbour, in the order in which they were released.

    `copies` is how often they are charged: once each, but for strategies in which every operator
    gets its own result set once for each of them.
    """

    events: list[Any]  # each once in this direction, whatever wants it
    copies: int  # as many as travel where each result travels by itself


class LeadEvents(msgspec.Struct, frozen=True):
    """Events that a neighbour is told of: others that it has may have waited for them.

    They are charged as events are.
    """

    events: list[Any]  # so that what waits for them is released
    copies: int


class Results(msgspec.Struct, frozen=True):
    """Events for the operators named beside them: to a neighbour (only by way of a centre, each
    charged once for each operator) or, at LOCAL, to the subscriptions of these ids.
    """

    events: list[tuple[Any, tuple[str, ...]]]  # each with the subscriptions that it is for


Carried = Events | LeadEvents | Results
Message = Advertise | Withdraw | Want | Unwant | Carried


class Send(NamedTuple):
    """Send a message to a neighbour, or to LOCAL."""

    to: str  # a neighbour, or LOCAL
    message: Message
