"""The subscriptions of a broker, as it tells them by HTTP and MQTT alike.

Owns the form of that list. Must not know who asked. Invariant: it is of this moment, and in the
order of installation.
"""

from typing import Any

from broker.core.broker import Broker
from broker.core.durable import DurableBroker


def listed(core: Broker | DurableBroker) -> list[dict[str, Any]]:
    """All that are at home here."""
    return [
        {
            "subscription": one.name,
            "subscriber": one.subscriber,
            "actor": one.actor,
            "seq": one.seq,
            "state": "suspended" if one.suspended else one.state,
            "results": one.results,
            "client": one.client,
            "since": one.since,
            **({} if one.ends is None else {"ends": one.ends}),
            **({"suspended": one.suspended} if one.suspended else {}),
        }
        for one in core.subscriptions
    ]
