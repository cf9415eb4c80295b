"""Who gets what: the route of each topic, and what becomes of a message that is published.

Owns the filter tree, the retained messages, the cache of routes, and the decision on each message
with its reason code: handed up, routed, retained or refused. Must not know packets' bytes or
sockets. Invariants: a cached route is used only while no subscription has changed since it was
made; every message accepted is either handed up with its token or routed, and its code says which
refusal it met otherwise.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from broker.mqtt.application import ClientInfo, InboundMessage, Token
from broker.mqtt.codec.packets import V5, Filter, Properties, Publish
from broker.mqtt.codec.properties import encode_fields
from broker.mqtt.codec.reasons import ProtocolError, Reason
from broker.mqtt.codec.topics import FilterTree, TopicTree, check_topic, matches, split_share
from broker.mqtt.codec.wire import text, varint
from broker.mqtt.counters import Counters
from broker.mqtt.limits import MqttLimits
from broker.mqtt.routing.message import OVERHEAD_BYTES, Message, MessageDelivery, Replay, Taker
from broker.mqtt.routing.shared_groups import Share
from broker.mqtt.sessions.client_queue import ClientQueue
from broker.mqtt.sessions.session import holder_of
from broker.mqtt.sessions.timers import Timer, Timers

if TYPE_CHECKING:
    from broker.mqtt.hub import Hub
    from broker.mqtt.sessions.connection import Connection
    from broker.mqtt.storage.batches import HubStorage

# After so many changes of subscriptions the routes let go of whom they led to, as a route that is
# not used again would keep the queues of sessions that have ended.
SWEEP_AFTER = 1_000


class Prefix(Struct, frozen=True):
    """Which topics the application takes: all at or beneath `name`; an empty name: none.

    Those that also match one of `shown` (filters) go to clients subscribed to them as well. Other
    topics that match one of `mapped` it takes, too, and they are as plain for everybody as before.
    """

    name: str = ""
    shown: tuple[str, ...] = ()
    mapped: tuple[str, ...] = ()

    def holds(self, topic: str) -> bool:
        """Tell whether the application takes this topic."""
        name = self.name
        return bool(name) and topic.startswith(name) and topic[len(name) :][:1] in {"", "/"}


class TopicSubscription(Struct, frozen=True):
    """One subscription of one client; `identifier` 0 is none."""

    outgoing: ClientQueue
    filter: Filter
    identifier: int


class TopicRoute(Struct):
    """The way of one topic: who takes it, and to whom it goes while `version` is the router's."""

    topic: str
    head: bytes
    plain: bool  # none of those below, and nobody has to be asked
    taken: bool  # by the application
    reserved: bool  # clients must not publish to it
    shown: bool  # to clients, though taken
    mapped: bool  # plain for clients, and the application gets it as well
    version: int = -1
    deliveries: tuple[MessageDelivery, ...] = ()


class TopicRouter:
    """The subscriptions and retained messages of all clients."""

    def __init__(
        self,
        limits: MqttLimits,
        counters: Counters,
        timers: Timers,
        prefix: Prefix,
        *,
        authorized: bool = False,
    ) -> None:
        self._limits = limits
        self._counters = counters
        self._timers = timers
        self._prefix = prefix
        self._authorized = authorized  # somebody is asked whether a client may publish
        # By client identifier, or by the name of a group of them.
        self._filters: FilterTree[str | tuple[str], TopicSubscription | Share] = FilterTree()
        self._shares: dict[tuple[str, str], Share] = {}  # by group and filter
        self.routes: dict[str, TopicRoute] = {}  # see `route`
        self.version = 0  # of all subscriptions
        self.changed: Callable[[], None] | None = None  # told of each new version
        self._swept = 0  # the version at which routes that hold no more were emptied
        self.retained: TopicTree[Message] = TopicTree()
        self._expiries: dict[str, Timer] = {}
        self.expired: Callable[[str], None] | None = None  # told of topics whose message expired
        self.keeping: HubStorage | None = None
        self.overflowed: list[Taker] = []  # sessions to be ended for their queue being full

    def route(self, topic: str) -> TopicRoute:
        """The way of a topic name that was checked, as it is now.

        Whoever finds one of the current `version` in `routes` may save the call.
        """
        route = self.routes.get(topic)
        if route is None:
            route = self._discover(topic)
        if route.version != self.version:
            route.deliveries = self._deliveries(topic)
            route.version = self.version
        return route

    def ask_of_publishers(self, *, authorized: bool) -> None:
        """Set if somebody is asked whether a client may publish, as of the next message."""
        self._authorized = authorized
        self.routes.clear()

    def heard(self, topics: Sequence[str]) -> list[str]:
        """Return those of the topics that somebody may have a subscription for.

        What is published to the others, which goes to nobody, counts as published.
        """
        heard = []
        for topic in topics:
            route = self.routes.get(topic)
            if route is None or route.version != self.version or route.deliveries:
                heard.append(topic)
        self._counters.published += len(topics) - len(heard)
        return heard

    def spread(self, route: TopicRoute, message: Message, now_ms: int) -> int:
        """Give the message to everyone on its way; how many these are."""
        count = 0
        for delivery in route.deliveries:
            meant: MessageDelivery | None = delivery
            if delivery.no_local and message.sender == delivery.outgoing.client_id:
                meant = delivery.own
            if meant is not None:
                count += 1
                if not meant.outgoing.offer(message, meant, now_ms):
                    self.overflowed.append(meant.outgoing)
        return count

    def subscribe(self, subscription: TopicSubscription) -> bool:
        """Add or replace a client's subscription; whether it is new."""
        outgoing = subscription.outgoing
        group, topic_filter = split_share(subscription.filter.topic_filter)
        if group:
            share = self._shares.get((group, topic_filter))
            if share is None:
                share = self._shares[group, topic_filter] = Share(
                    subscription.filter.topic_filter, self.overflowed
                )
                self._filters.put(topic_filter, (group,), share)
            own = replace(_delivery([subscription]), plain=False, share=share)
            new = share.put(outgoing, own)
        else:
            new = self._filters.put(topic_filter, outgoing.client_id, subscription)
        self._change()
        self._counters.subscriptions += new
        return new

    def unsubscribe(self, client_id: str, topic_filter: str) -> bool:
        """Remove a client's subscription; whether there was one."""
        group, topic_filter = split_share(topic_filter)
        if group:
            share = self._shares.get((group, topic_filter))
            removed = share is not None and share.remove(client_id)
            if share is not None and not share:
                del self._shares[group, topic_filter]
                self._filters.remove(topic_filter, (group,))
        else:
            removed = self._filters.remove(topic_filter, client_id)
        if removed:
            self._change()
            self._counters.subscriptions -= 1
        return removed

    def names_below(self, topic: str) -> list[str]:
        """The topics beneath this one to which somebody has subscribed by their very names."""
        return self._filters.names_below(topic)

    def replay(self, subscription: TopicSubscription) -> None:
        """Have a new subscription get what is retained."""
        identifiers = (subscription.identifier,) if subscription.identifier else ()
        wanted = subscription.filter
        replay = Replay(wanted.qos, identifiers, wanted.no_local)
        subscription.outgoing.replay(wanted.topic_filter, replay)

    def may_retain(self, message: Message) -> bool:
        """Tell whether there is room to retain the message."""
        before = self.retained.get(message.topic)
        size_bytes = message.size_bytes - (before.size_bytes if before is not None else 0)
        return (
            self.retained.size + (before is None) <= self._limits.retained_messages_max
            and self._counters.retained_bytes + size_bytes <= self._limits.retained_bytes_max
        )

    def retain(self, message: Message) -> bool:
        """Keep the message as its topic's, or forget the topic's where the payload is empty.

        False: there is no room; what stood there is forgotten too, as it is true no more.
        """
        timer = self._expiries.pop(message.topic, None)
        if timer is not None:
            timer.cancel()
        kept = bool(message.payload) and self.may_retain(message)
        before = (
            self.retained.put(message.topic, message)
            if kept
            else self.retained.remove(message.topic)
        )
        counters = self._counters
        counters.retained_messages = self.retained.size
        counters.retained_bytes += (message.size_bytes if kept else 0) - (
            before.size_bytes if before is not None else 0
        )
        if self.keeping is not None:
            # What the application retains it says again when it starts.
            if kept and message.sender:
                self.keeping.retain(message)
            elif before is not None and before.sender:
                self.keeping.unretain(message.topic)
        if kept and message.expires_ms:
            self._expiries[message.topic] = self._timers.at(
                message.expires_ms, lambda _now_ms: self._expire(message.topic)
            )
        return kept or not message.payload

    def share(self, name: str) -> Share | None:
        """The group of a shared subscription, by its whole name."""
        return self._shares.get(split_share(name))

    def _expire(self, topic: str) -> None:
        del self._expiries[topic]
        gone = self.retained.remove(topic)
        if self.expired is not None:
            self.expired(topic)
        if gone is not None:
            self._counters.retained_messages = self.retained.size
            self._counters.retained_bytes -= gone.size_bytes
            if self.keeping is not None and gone.sender:
                self.keeping.unretain(topic)

    def _change(self) -> None:
        """No route holds any more."""
        self.version += 1
        if self.changed is not None:
            self.changed()
        if self.version - self._swept >= SWEEP_AFTER:
            self._swept = self.version
            for route in self.routes.values():
                route.deliveries = ()

    def _discover(self, topic: str) -> TopicRoute:
        if len(self.routes) >= self._limits.topics_cached_max:
            self.routes.clear()
        taken = self._prefix.holds(topic)
        shown = any(matches(item, topic) for item in self._prefix.shown)
        reserved = topic.startswith("$")
        mapped = not taken and any(matches(item, topic) for item in self._prefix.mapped)
        plain = not (taken or mapped or reserved or self._authorized)
        route = TopicRoute(topic, text(topic), plain, taken, reserved, shown, mapped)
        self.routes[topic] = route
        return route

    def _deliveries(self, topic: str) -> tuple[MessageDelivery, ...]:
        by_client: dict[str, list[TopicSubscription]] = {}
        shared: list[MessageDelivery] = []
        for _key, subscribed in self._filters.match(topic):
            if isinstance(subscribed, Share):
                shared.append(subscribed.delivery)
            elif subscribed.outgoing.receives(topic):
                by_client.setdefault(subscribed.outgoing.client_id, []).append(subscribed)
        return (*map(_merge, by_client.values()), *shared)


def _merge(subscriptions: list[TopicSubscription]) -> MessageDelivery:
    """One copy per client, with the best QoS and every identifier (MQTT-3.3.4-2, -3)."""
    other = [item for item in subscriptions if not item.filter.no_local]
    merged = _delivery(subscriptions)
    if len(other) == len(subscriptions):
        return merged
    return replace(merged, no_local=True, own=_delivery(other) if other else None)


def _delivery(subscriptions: list[TopicSubscription]) -> MessageDelivery:
    as_published = any(item.filter.retain_as_published for item in subscriptions)
    identifiers = tuple(item.identifier for item in subscriptions if item.identifier)
    return MessageDelivery(
        subscriptions[0].outgoing,
        max(item.filter.qos for item in subscriptions),
        as_published,
        identifiers,
        not as_published and not identifiers,
    )


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
