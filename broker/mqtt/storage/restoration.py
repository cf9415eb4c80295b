"""From the rows of a disk to the sessions, queues and retained messages of a hub that begins.

Owns that translation. Must not know SQL or sockets. Invariant: it is done before the first client
comes; what was promised is there again, and what time has ended meanwhile is ended as it would have
been, wills included.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.mqtt.application import ClientInfo
from broker.mqtt.codec.packets import Filter
from broker.mqtt.codec.topics import split_share
from broker.mqtt.codec.wire import text
from broker.mqtt.routing.message import OVERHEAD_BYTES, Message, QueuedMessage, Replay
from broker.mqtt.routing.router import TopicSubscription
from broker.mqtt.sessions.client_queue import ClientQueue
from broker.mqtt.sessions.departures import end_session, publish_will, will_at, will_delay_ms
from broker.mqtt.sessions.session import Session
from broker.mqtt.sessions.subscriptions import receiver
from broker.mqtt.storage import rows
from broker.mqtt.storage.batches import RESULTS_MARK, HubStorage
from broker.mqtt.storage.rows import MAYBE, KeptMessage, StoredRows, unpack_message, unpack_will

if TYPE_CHECKING:
    from broker.mqtt.hub import Hub


def restore(hub: "Hub", kept: StoredRows, now_ms: int) -> None:
    """Have the hub go on with what was kept. It has a `keeping`, and no session yet."""
    keeping = hub.keeping
    if keeping is None:
        raise ValueError("a hub that keeps nothing has nothing to go on with")
    _Restoring(hub, keeping, kept, now_ms).all()


class _Restoring:
    def __init__(self, hub: "Hub", keeping: HubStorage, kept: StoredRows, now_ms: int) -> None:
        self._hub = hub
        self._keeping = keeping
        self._kept = kept
        self._now_ms = now_ms
        self._wills_due_ms: dict[str, int] = {}

    def all(self) -> None:
        """In this order, as each needs what comes before it."""
        keeping, tables = self._keeping, self._kept
        for mark in tables.of(rows.MarkRow):
            if mark.name == RESULTS_MARK:
                keeping.results_mark = keeping.results_durable = mark.value
        self._retained()
        lost: list[Session] = []
        # The longest absent first: it is the first to make room.
        for row in sorted(tables.of(rows.SessionRow), key=_absence):
            session = self._session(row)
            if row.gone_ms is None:
                lost.append(session)
        self._subscriptions()
        self._queues()
        self._packets()
        for session in lost:
            self._lost(session)
        self._time()
        for session in lost:
            if session.stored:
                keeping.session(session)

    def _retained(self) -> None:
        hub, keeping = self._hub, self._keeping
        hub.router.keeping = None  # it is on disk
        for row in self._kept.of(rows.RetainedRow):
            message = self._message(unpack_message(row.body))
            if message.expires_ms and message.expires_ms <= self._now_ms:
                keeping.unretain(row.topic)
            elif not hub.router.retain(message):
                hub.counters.refuse("retained_full")  # the limit was lowered
                keeping.unretain(row.topic)
        hub.router.keeping = keeping

    def _session(self, row: rows.SessionRow) -> Session:
        hub, wall_ms = self._hub, self._keeping.wall_ms()
        client = ClientInfo(row.client_id, row.user_name, "", row.version)
        outgoing = ClientQueue(
            row.client_id, hub.limits, hub.counters, hub.router.retained, receiver(hub, client)
        )
        outgoing.room.account = hub.quotas.account(client.user)
        session = hub.sessions[row.client_id] = Session(client, outgoing)
        hub.counters.sessions = len(hub.sessions)
        session.stored = True
        self._keeping.sessions += 1
        session.expiry_ms = row.expiry_ms
        # A clock that was set back must not prolong it, nor one that is not known to be right.
        gone_ms = self._now_ms if row.gone_ms is None else row.gone_ms - wall_ms
        session.gone_ms = min(gone_ms, self._now_ms)
        if row.expiry_ms:
            outgoing.kept = self._keeping
        if row.will is not None:
            session.will = unpack_will(row.will)
            if row.will_due_ms is not None:
                self._wills_due_ms[row.client_id] = row.will_due_ms - wall_ms
        return session

    def _subscriptions(self) -> None:
        hub = self._hub
        for row in self._kept.of(rows.SubscriptionRow):
            session = hub.sessions.get(row.client_id)
            if session is None:
                continue
            wanted = split_share(row.topic_filter)[1]
            if hub.authorize is not None and not hub.authorize(session.client, wanted, "subscribe"):
                hub.counters.refuse("subscription_not_authorized")  # its rights were changed
                self._keeping.unsubscribe(row.client_id, row.topic_filter)
                continue
            filter_ = Filter(row.topic_filter, row.qos, row.no_local, row.retain_as_published)
            subscription = TopicSubscription(session.outgoing, filter_, row.identifier)
            hub.router.subscribe(subscription)
            session.subscriptions[row.topic_filter] = subscription
            hub.quotas.add("subscriptions", session.holder)
        for pending in self._kept.of(rows.ReplayRow):
            session = hub.sessions.get(pending.client_id)
            if session is not None and pending.topic_filter in session.subscriptions:
                identifiers = (pending.identifier,) if pending.identifier else ()
                replay = Replay(pending.qos, identifiers, pending.no_local)
                session.outgoing.replay(pending.topic_filter, replay)
            else:
                self._keeping.replayed(pending.client_id, pending.topic_filter)

    def _queues(self) -> None:
        hub, keeping = self._hub, self._keeping
        messages: dict[int, Message] = {}
        for row in self._kept.of(rows.MessageRow):
            message = messages[row.number] = self._message(unpack_message(row.body))
            message.number = row.number
            keeping.messages_last = max(keeping.messages_last, row.number)
        crashed = {row.client_id for row in self._kept.of(rows.SessionRow) if row.gone_ms is None}
        for place in self._kept.of(rows.QueueRow):
            keeping.places_last = max(keeping.places_last, place.place)
            session = hub.sessions.get(place.client_id)
            if session is None:
                continue
            message = messages[place.message]
            message.keepers += 1
            held = QueuedMessage(
                message,
                place.retain,
                tuple(map(int, place.identifiers.split())),
                hub.router.share(place.shared) if place.shared else None,
                place.qos,
                place.place,
                place.packet_id == MAYBE,
            )
            if place.qos == 1 and not place.packet_id and place.client_id in crashed:
                # Nothing is written when it is sent, but when the client goes, which was not seen.
                held.known = True
                keeping.sent(place.client_id, held, MAYBE)
            session.outgoing.restore(0 if held.known else place.packet_id, held)

    def _packets(self) -> None:
        for row in self._kept.of(rows.PacketRow):
            session = self._hub.sessions.get(row.client_id)
            if session is None:
                continue
            if row.sender == "client":
                session.unreleased[row.packet_id] = None
            else:
                session.outgoing.restore(row.packet_id, None)

    def _lost(self, session: Session) -> None:
        """Its connection ended with the process."""
        if session.will is not None:
            delay_ms = will_delay_ms(self._hub, session.will)
            if delay_ms:
                self._wills_due_ms[session.outgoing.client_id] = self._now_ms + delay_ms
            else:
                publish_will(self._hub, session, self._now_ms)

    def _time(self) -> None:
        """Set the timers of wills and ends; run what is due by now, in its order."""
        hub = self._hub
        for session in list(hub.sessions.values()):
            due_ms = self._wills_due_ms.get(session.outgoing.client_id)
            if due_ms is not None:
                will_at(hub, session, due_ms)
            if session.expiry_ms:
                session.expiry_timer = hub.timers.at(
                    session.gone_ms + session.expiry_ms, _end(hub, session)
                )
            else:
                end_session(hub, session, "ended_with_connection", self._now_ms)
        hub.wake(self._now_ms)

    def _message(self, kept: KeptMessage) -> Message:
        head = text(kept.topic)
        size_bytes = len(kept.payload) + len(head) + OVERHEAD_BYTES
        expires_ms = max(1, kept.expires_ms - self._keeping.wall_ms()) if kept.expires_ms else 0
        return Message(
            kept.topic,
            head,
            kept.payload,
            kept.qos,
            kept.retain,
            size_bytes,
            kept.sender,
            kept.properties,
            expires_ms,
        )


def _absence(row: rows.SessionRow) -> tuple[bool, int, str]:
    return row.gone_ms is None, row.gone_ms or 0, row.client_id


def _end(hub: "Hub", session: Session) -> Callable[[int], None]:
    return lambda now_ms: end_session(hub, session, "expired", now_ms)
