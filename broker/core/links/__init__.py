"""Links between brokers without their sockets: frames, handshake, sessions.

Owns what two neighbours say to each other to move messages exactly once and in order. Must not know
what messages mean. Invariant: see `session`.

`Links` is what a broker has; `LinkSession` is its session with one neighbour. In short:

    links = Links("hall", epoch)
    effects = links.handle(Opened(1, nonce, dialled=True, expected="roof"), now)   # a socket is up
    effects = links.handle(Received(1, data), now)                  # Write, Up, Delivered, Close …
    effects = links.handle(Offered("roof", [message], events=1), now)
    links.next_wake()                                               # when to tell Woken()
"""

from broker.core.links.frames import LinkError
from broker.core.links.limits import LinkLimits, make_link_limits
from broker.core.links.links import Links
from broker.core.links.session import LinkSession
from broker.core.links.told import (
    REFUSALS,
    Choked,
    Close,
    Closed,
    Congested,
    Delivered,
    Down,
    Effect,
    Forgotten,
    Held,
    NameInUse,
    Offered,
    Opened,
    Received,
    Refused,
    Told,
    Up,
    Woken,
    Write,
)

__all__ = [
    "REFUSALS",
    "Choked",
    "Close",
    "Closed",
    "Congested",
    "Delivered",
    "Down",
    "Effect",
    "Forgotten",
    "Held",
    "LinkError",
    "LinkLimits",
    "LinkSession",
    "Links",
    "NameInUse",
    "Offered",
    "Opened",
    "Received",
    "Refused",
    "Told",
    "Up",
    "Woken",
    "Write",
    "make_link_limits",
]
