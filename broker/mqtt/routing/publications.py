"""What becomes of a published message: handed up, routed, retained or refused.

Owns the decision and its reason code. Must not know packets' bytes or sockets. Invariant: every
message accepted is either handed up with its token or routed, and its code says which refusal it
met otherwise.
"""

from typing import TYPE_CHECKING

from msgspec.structs import replace

from broker.mqtt.application import ClientInfo, InboundMessage, Token
from broker.mqtt.codec.packets import V5, Properties, Publish
from broker.mqtt.codec.properties import encode_fields
from broker.mqtt.codec.reasons import ProtocolError, Reason
from broker.mqtt.codec.topics import check_topic
from broker.mqtt.codec.wire import varint
from broker.mqtt.routing.message import OVERHEAD_BYTES, Message
from broker.mqtt.routing.router import TopicRoute
from broker.mqtt.sessions.session import holder_of

if TYPE_CHECKING:
    from broker.mqtt.hub import Hub
    from broker.mqtt.sessions.connection import Connection

HANDED_UP = -1
_NOBODY = int(Reason.NO_MATCHING_SUBSCRIBERS)


def receive(connection: "Connection", packet: Publish, now_ms: int) -> None:
    """Do what a PUBLISH of an open connection asks for; ProtocolError: close it."""
    hub = connection.hub
    qos = packet.qos
    if packet.properties is not None or qos == 2 or (qos and connection.pending):
        admitted = connection.admit(packet)
        if admitted is None:
            return
        packet = admitted
    router = hub.router
    ending = len(router.overflowed)
    route = router.routes.get(packet.topic)
    if route is None or route.version != router.version:
        route = router.route(packet.topic)
    if not route.plain or packet.retain:
        code = accept(hub, connection.client, packet, route, connection, now_ms)
    else:
        hub.counters.messages_in += 1
        code = _NOBODY
        if route.deliveries:
            message = _message(route, packet, connection.client.client_id, now_ms)
            if router.spread(route, message, now_ms):
                code = 0
    if qos and hub.counters.queued_bytes > hub.slowing.from_bytes:
        hub.slowing.look(connection, route, now_ms)
    if qos and code >= 0:
        if len(router.overflowed) > ending:
            code = Reason.QUOTA_EXCEEDED  # a session ends for it; it went to all others
        if code == Reason.NOT_AUTHORIZED and connection.version != V5 and route.reserved:
            # 3.1.1 leaves the choice (MQTT-3.3.5-2). What begins with `$` is the server's own by
            # the standard (section 4.7.2): nobody is deceived, and no session is worth ending.
            code = 0
        elif code == Reason.NOT_AUTHORIZED and connection.version != V5:
            # It has no words for a refusal, and an acknowledgement would be a lie (MQTT-3.3.5-2).
            raise ProtocolError(Reason.NOT_AUTHORIZED, "it publishes where it is not allowed to")
        if code or connection.pending or qos == 2:
            connection.acknowledge(packet, code)
        else:
            connection.send(b"\x40\x02" + packet.packet_id.to_bytes(2, "big"))


def accept(  # noqa: PLR0917  # a message, its way and where it came from
    hub: "Hub",
    client: ClientInfo,
    packet: Publish,
    route: TopicRoute,
    connection: "Connection | None",
    now_ms: int,
) -> int:
    """Take a client's message or its will (no connection), on its route; its reason code.

    `HANDED_UP`: the application has it, and says later.
    """
    counters = hub.counters
    counters.messages_in += 1
    if route.reserved or (
        hub.authorize is not None and not hub.authorize(client, packet.topic, "publish")
    ):
        counters.refuse("publish_not_authorized")
        return Reason.NOT_AUTHORIZED
    if route.taken:
        _hand_up(hub, client, packet, connection)
        if route.shown and route.deliveries:
            hub.router.spread(route, _message(route, packet, client.client_id, now_ms), now_ms)
        return HANDED_UP
    message = _message(route, packet, client.client_id, now_ms)
    count = hub.router.spread(route, message, now_ms)
    if packet.retain and not _retain(hub, client, message):
        return Reason.QUOTA_EXCEEDED
    if route.mapped:
        _hand_up(hub, client, packet, connection)
        return HANDED_UP
    return Reason.SUCCESS if count else Reason.NO_MATCHING_SUBSCRIBERS


def _retain(hub: "Hub", client: ClientInfo, message: Message) -> bool:
    """Keep a client's message as its topic's; False: there is no room, or its quota is used up.

    What stood there is forgotten then, as it is true no more.
    """
    refusal = None
    if message.payload:
        refusal = hub.quotas.retain(message.topic, holder_of(client))
        if refusal is not None:
            hub.counters.refuse("retained_quota")
            message = replace(message, payload=b"")
        elif not hub.router.may_retain(message):
            hub.counters.refuse("retained_full")
    kept = hub.router.retain(message)
    if not (kept and message.payload):
        hub.quotas.unretain(message.topic)
    return kept and refusal is None


def publish(hub: "Hub", packet: Publish, now_ms: int) -> int:
    """Publish for the application; how many clients it goes to.

    ProtocolError where it cannot be sent, or where there is no room to retain it: then it goes to
    nobody.
    """
    route = hub.router.routes.get(packet.topic)
    if route is None:
        check_topic(packet.topic, hub.limits.topic_levels_max)
    try:
        route = hub.router.route(packet.topic)
        message = _message(route, packet, "", now_ms)
        if message.properties is not None:
            message.fields = encode_fields(message.properties)
        varint(message.size_bytes + len(message.fields or b""))
    except ValueError as error:  # what only the application can get wrong
        raise ProtocolError(Reason.PACKET_TOO_LARGE, f"it cannot be written: {error}") from None
    if packet.retain and packet.payload and not hub.router.may_retain(message):
        hub.counters.refuse("retained_full")
        raise ProtocolError(Reason.QUOTA_EXCEEDED, "there is no room to retain a message")
    hub.counters.published += 1
    count = hub.router.spread(route, message, now_ms) if route.deliveries else 0
    if packet.retain:
        hub.router.retain(message)
    return count


def _hand_up(
    hub: "Hub", client: ClientInfo, packet: Publish, connection: "Connection | None"
) -> None:
    token = None
    if connection is not None:
        connection.handing_up = True
        if packet.qos:
            token = Token(connection, packet.packet_id, len(packet.payload), qos=packet.qos)
            connection.wait_for(token)
            if packet.qos == 2 and connection.session is not None:
                connection.session.arriving[packet.packet_id] = token
    hub.counters.handed_up += 1
    hub.messages.append(
        InboundMessage(
            packet.topic,
            packet.payload,
            packet.qos,
            packet.retain,
            packet.dup,
            client,
            packet.properties,
            token,
        )
    )


def _message(route: TopicRoute, packet: Publish, sender: str, now_ms: int) -> Message:
    properties, payload = packet.properties, packet.payload
    size_bytes = len(payload) + len(route.head) + OVERHEAD_BYTES
    if properties is None:
        return Message(
            route.topic, route.head, payload, packet.qos, packet.retain, size_bytes, sender
        )
    expiry_s = properties.message_expiry_interval
    # Only these go on to subscribers, unaltered but for the expiry (section 3.3.2.3).
    forwarded = Properties(
        payload_format_indicator=properties.payload_format_indicator,
        content_type=properties.content_type,
        response_topic=properties.response_topic,
        correlation_data=properties.correlation_data,
        user_property=properties.user_property,
    )
    return Message(
        route.topic,
        route.head,
        payload,
        packet.qos,
        packet.retain,
        size_bytes,
        sender,
        forwarded,
        0 if expiry_s is None else now_ms + 1000 * expiry_s,
    )
