"""SUBSCRIBE and UNSUBSCRIBE: what is granted, what is refused and why.

Owns the codes of SUBACK and UNSUBACK. Must not know sockets. Invariant: every filter gets exactly
one code, and a granted one is in the tree before anything is sent for it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.mqtt.application import ClientInfo
from broker.mqtt.codec.packets import V5, Filter, Suback, Subscribe, Unsuback, Unsubscribe
from broker.mqtt.codec.reasons import Reason
from broker.mqtt.codec.topics import SHARE, check_share, split_share
from broker.mqtt.routing.router import TopicSubscription

if TYPE_CHECKING:
    from broker.mqtt.hub import Hub
    from broker.mqtt.sessions.connection import Connection
    from broker.mqtt.sessions.session import Session

_FAILURE_311 = 0x80
_REFUSALS = {
    Reason.TOPIC_FILTER_INVALID: "shared_subscription_invalid",
    Reason.NOT_AUTHORIZED: "subscription_not_authorized",
    Reason.QUOTA_EXCEEDED: "subscriptions_full",
}


def receiver(hub: "Hub", client: ClientInfo) -> Callable[[str], bool]:
    """Return what answers if the client may receive a topic, by the rights as they stand then.

    A filter is granted though some of its topics are denied, so each topic is asked for: once for
    a route, and again after every change of subscriptions or rights.
    """

    def receives(topic: str) -> bool:
        return hub.authorize is None or hub.authorize(client, topic, "receive")

    return receives


def subscribe(connection: "Connection", packet: Subscribe, now_ms: int) -> None:
    """Subscribe the client, answer, and begin to send what is retained."""
    session = connection.session
    assert session is not None
    identifiers = packet.properties.subscription_identifier if packet.properties else ()
    codes: list[int] = []
    replays: list[TopicSubscription] = []
    for item in packet.filters:
        refusal = _refusal(connection, item)
        if refusal is not None:
            connection.hub.counters.refuse(_REFUSALS[refusal])
            codes.append(refusal if connection.version == V5 else _FAILURE_311)
            continue
        identifier = identifiers[0] if identifiers else 0
        subscription = TopicSubscription(session.outgoing, item, identifier)
        new = connection.hub.router.subscribe(subscription)
        session.subscriptions[item.topic_filter] = subscription
        if session.outgoing.kept is not None:
            session.outgoing.kept.subscribe(subscription)
        codes.append(item.qos)
        if item.topic_filter.startswith(SHARE):
            continue  # it gets nothing that is retained (section 4.8.2)
        if item.retain_handling == 0 or (item.retain_handling == 1 and new):
            replays.append(subscription)
    connection.send(connection.fitting(Suback(packet.packet_id, tuple(codes))))
    for subscription in replays:
        connection.hub.router.replay(subscription)
    session.outgoing.pump(now_ms)


def _refusal(connection: "Connection", item: Filter) -> Reason | None:
    hub = connection.hub
    session, client = connection.session, connection.client
    assert session is not None
    shared = item.topic_filter.startswith(SHARE)
    if shared and not check_share(item.topic_filter):
        return Reason.TOPIC_FILTER_INVALID
    wanted = split_share(item.topic_filter)[1]
    if hub.authorize is not None and not hub.authorize(client, wanted, "subscribe"):
        return Reason.NOT_AUTHORIZED
    if item.topic_filter not in session.subscriptions and (
        len(session.subscriptions) >= hub.limits.subscriptions_per_client_max
        or hub.counters.subscriptions >= hub.limits.subscriptions_max
    ):
        return Reason.QUOTA_EXCEEDED
    if item.topic_filter not in session.subscriptions and hub.quotas.take(
        "subscriptions", session.holder
    ):
        return Reason.QUOTA_EXCEEDED
    return None


def unsubscribe(connection: "Connection", packet: Unsubscribe) -> None:
    """Take subscriptions away and answer."""
    session = connection.session
    assert session is not None
    codes: list[int] = []
    for topic_filter in packet.filters:
        if topic_filter in session.subscriptions:
            drop(connection.hub, session, topic_filter)
            codes.append(Reason.SUCCESS)
        else:
            codes.append(Reason.NO_SUBSCRIPTION_EXISTED)
    connection.send(connection.fitting(Unsuback(packet.packet_id, tuple(codes))))


def drop(hub: "Hub", session: "Session", topic_filter: str) -> None:
    """Take one subscription of a session out of the tree, off the disk and off its quota."""
    del session.subscriptions[topic_filter]
    hub.quotas.give("subscriptions", session.holder)
    hub.router.unsubscribe(session.outgoing.client_id, topic_filter)
    session.outgoing.forget_replay(topic_filter)
    if session.outgoing.kept is not None:
        session.outgoing.kept.unsubscribe(session.outgoing.client_id, topic_filter)
