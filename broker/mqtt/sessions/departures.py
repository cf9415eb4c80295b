"""How connections and sessions end: expiry, wills, overflow, room for others.

Owns the ends. Must not know sockets or packets' bytes. Invariant: what ends is ended once and
counted by its reason, and a will is published exactly where its client was lost.
"""

from typing import TYPE_CHECKING

from broker.mqtt.codec.packets import Publish, Will
from broker.mqtt.codec.reasons import ProtocolError, Reason
from broker.mqtt.routing.router import accept

if TYPE_CHECKING:
    from broker.mqtt.hub import Hub
    from broker.mqtt.sessions.connection import Connection
    from broker.mqtt.sessions.session import Session


def shut(hub: "Hub", connection: "Connection", reason: str, now_ms: int) -> None:
    """Take a connection out of everything; its session goes on without it, or ends."""
    counters = hub.counters
    connection.closed = True
    connection.connect = None
    counters.close(reason)
    counters.pending_bytes -= connection.pending_bytes
    connection.pending.clear()
    connection.pending_bytes = 0
    counters.partial_bytes -= connection.partial_bytes
    connection.partial_bytes = 0
    if connection.waits or hub.promised(connection):
        connection.forget_waiting()
    hub.holding.gone(connection)
    if connection.holder is not None:
        hub.quotas.give("connections", connection.holder)
    if connection.timer is not None:
        connection.timer.cancel()
    session = connection.session
    if session is None:
        return
    session.connection = None
    session.gone_ms = now_ms
    session.outgoing.detach()
    # Last in the order of absence, for `make_room`.
    hub.sessions[session.outgoing.client_id] = hub.sessions.pop(session.outgoing.client_id)
    if session.will is not None:
        delay_ms = will_delay_ms(hub, session.will)
        if delay_ms:
            will_at(hub, session, now_ms + delay_ms)
        else:
            publish_will(hub, session, now_ms)
    if not session.expiry_ms:
        end_session(hub, session, "ended_with_connection", now_ms)
    else:
        session.expiry_timer = hub.timers.at(
            now_ms + session.expiry_ms, lambda now: end_session(hub, session, "expired", now)
        )
        if session.stored and hub.keeping is not None:
            hub.keeping.session(session)


def end_session(hub: "Hub", session: "Session", reason: str, now_ms: int) -> None:
    """Forget a session; a will that still waited is published."""
    client_id = session.outgoing.client_id
    session.still_timers()
    del hub.sessions[client_id]
    if hub.keeping is not None:
        hub.keeping.forget(session)
    hub.quotas.give("subscriptions", session.holder, len(session.subscriptions))
    for topic_filter in session.subscriptions:
        hub.router.unsubscribe(client_id, topic_filter)
    for held in session.outgoing.discard(reason):
        if held.share:
            held.share.offer(held.message, held.share.delivery, now_ms)
    hub.counters.sessions = len(hub.sessions)
    hub.counters.end(reason)
    publish_will(hub, session, now_ms)


def make_room(hub: "Hub", now_ms: int) -> None:
    """End the session that is absent longest where there are as many as there may be."""
    if len(hub.sessions) < hub.limits.sessions_max:
        return
    for session in hub.sessions.values():
        if session.connection is None:
            end_session(hub, session, "sessions_full", now_ms)
            return
    raise ProtocolError(Reason.QUOTA_EXCEEDED, "there are too many sessions")


def end_overflowed(hub: "Hub", now_ms: int) -> None:
    """End the sessions whose QoS 1 queue is full: their clients learn that something is lost.

    Their wills may fill other queues, hence the loop; each session ends once.
    """
    overflowed = hub.router.overflowed
    while overflowed:
        outgoing = overflowed.pop()
        session = hub.sessions.get(outgoing.client_id)
        if session is None or session.outgoing is not outgoing:
            continue
        if session.connection is not None:
            session.expiry_ms = max(1, session.expiry_ms)  # it is ended below, by its reason
            code = Reason.QUOTA_EXCEEDED
            hub.dismiss(session.connection, code, "queue_overflow", now_ms)
        before = hub.counters.dropped.get("queue_overflow", 0)
        end_session(hub, session, "queue_overflow", now_ms)
        hub.given_up[outgoing.client_id] = hub.counters.dropped.get("queue_overflow", 0) - before


def will_delay_ms(hub: "Hub", will: Will) -> int:
    """Return how long after the loss of its client a will is to be published, in ms."""
    delay_s = will.properties.will_delay_interval if will.properties is not None else None
    return 1000 * min(delay_s or 0, hub.limits.will_delay_s_max)


def will_at(hub: "Hub", session: "Session", when_ms: int) -> None:
    """Have the will published then, unless its client is back or its session over before."""
    session.will_timer = hub.timers.at(when_ms, lambda now: publish_will(hub, session, now))


def publish_will(hub: "Hub", session: "Session", now_ms: int) -> None:
    """Publish the will of a client that was lost, if it has one still."""
    will, session.will = session.will, None
    session.will_timer = None
    if session.stored and hub.keeping is not None:
        hub.keeping.session(session)
    if will is not None:
        packet = Publish(
            will.topic, will.payload, will.qos, will.retain, properties=will.properties
        )
        route = hub.router.route(packet.topic)
        accept(hub, session.client, packet, route, None, now_ms)
