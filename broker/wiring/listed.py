"""The subscriptions of a broker, as it tells them by HTTP and MQTT alike.

Owns the form of that list. Must not know who asked. Invariant: it is of this moment, and in the
order of installation.
"""

from typing import Any

from broker.core.broker import Broker
from broker.core.durable import DurableBroker
from broker.network.replication.absence_watch import waiting_for


def listed(core: Broker | DurableBroker) -> list[dict[str, Any]]:
    """All that are at home here; `waits_for` are brokers that are away and that it waits for."""
    waiting: dict[tuple[str, str], list[str]] = {}
    if isinstance(core, DurableBroker) and core.options.networked:
        for broker, keys in waiting_for(core.network, core.now).items():
            for key in keys:
                waiting.setdefault(key, []).append(broker)
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
            **({"waits_for": waiting[one.key]} if one.key in waiting else {}),
        }
        for one in core.subscriptions
    ]
