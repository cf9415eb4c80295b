"""MQTT sessions that outlast the process, put together with the log of results.

Owns the beginning: what results kept sessions still miss. Must not know sessions, tables or topics.
Invariant: every result that the log holds and that was not queued for kept sessions before the end
of the last process is queued for them before the first client comes; and the log lets none go
before it is queued for them.
"""

from typing import TYPE_CHECKING

from broker import logs
from broker.core.effects import Emission, Emit
from broker.store import Outbox, Store

if TYPE_CHECKING:
    from broker.driver.mqtt_face import Delivery
    from broker.mqtt.server import MqttServer

AT_ONCE = 500  # results that are read together


async def go_on(server: "MqttServer", delivery: "Delivery", store: Store, log: Outbox) -> None:
    """Have the MQTT server go on with what is kept; before it starts. Raises StoreError.

    Results are queued at least once: one that a session was being given when the process ended may
    come twice, as its id tells.
    """
    mark = await server.keep_in(store)
    log.keep_from = server.results_needed
    if not server.counters()["sessions"]:
        server.mark_results(log.end)
        return
    begin = max(mark, log.earliest)
    if begin > mark:
        logs.tell("warning", "results_gone", begin=mark, end=begin)
    while begin < log.end:
        rows = await log.read(begin, min(begin + AT_ONCE, log.end))
        results = tuple(
            Emission(
                row.id,
                row.end_ms,
                row.subscriber,
                row.subscription,
                row.actor,
                row.payload,
                row.offset,
            )
            for row in rows
        )
        delivery.emit(Emit(results))
        begin += AT_ONCE
