"""What the clients of a broker are told of the other brokers.

Owns what was told of each last. Must not know MQTT or links. Invariant: a broker that is known is
`ready` while a way leads to it, else `lost`; of one that was forgotten nothing is said any more.
"""

from __future__ import annotations

import msgspec

from broker.core import topics
from broker.core.effects import Publication
from broker.core.topology.topology import Topology

_encode = msgspec.json.Encoder().encode


class Others:
    """See the module."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def news(self, topology: Topology, now: int) -> list[Publication]:
        """What is to be said now, of each whose state is another than was told."""
        states = dict.fromkeys(topology.unreachable, "lost")
        states |= {name: "ready" for name in topology.tree.hops if name != topology.me}
        known = set(topology.known)
        for name, state in self._told.items():  # of one heard of again nothing is settled yet
            if name in known:
                states.setdefault(name, state)
        states = {name: states[name] for name in sorted(states) if name in known}
        before, self._told = self._told, states
        found = [
            Publication(topics.status(name), _encode({"state": state, "at": now}), retain=True)
            for name, state in states.items()
            if before.get(name) != state
        ]
        gone = sorted(before.keys() - states.keys())
        return found + [Publication(topics.status(name), b"", retain=True) for name in gone]
