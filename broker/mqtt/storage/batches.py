"""What has to outlast the process is gathered here, and what promises it waits here for the disk.

Owns the batch that gathers, and the connections whose bytes wait. Must not know SQL, files, threads
or a clock: whoever drives it takes batches, and says when they are durable. Invariant: bytes that
promise something leave only when it is durable; batches become so in the order of their numbers.

Changes are of two kinds. Some promise (a message is queued, a subscription made): `promises` counts
them, and whoever asked for one hears nothing before it is durable. Others only spare work after a
restart (a client has confirmed): nobody waits for these.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.mqtt.routing.message import Message, QueuedMessage, Replay
from broker.mqtt.storage.rows import (
    Batch,
    KeptMessage,
    MarkRow,
    MessageRow,
    PacketRow,
    QueueRow,
    ReplayRow,
    RetainedRow,
    SessionRow,
    SubscriptionRow,
    pack,
)

if TYPE_CHECKING:
    from broker.mqtt.routing.router import TopicSubscription
    from broker.mqtt.sessions.connection import Connection
    from broker.mqtt.sessions.session import Session

RESULTS_MARK = "results"


class HubStorage:
    """Of one hub. `wall_ms` tells what is added to its moments to get those of the wall clock.

    It is asked anew whenever a moment is kept: clocks are set right, soon after a start above all.
    """

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        self.wall_ms = wall_ms
        self.batch = Batch()
        self.number = 1  # of the batch that gathers
        self.durable = 0  # the greatest number of a batch that is durable
        self.awaited = 0  # the greatest number of a batch for which somebody waits
        self.promises = 0
        self.waiting: dict[Connection, None] = {}  # connections with bytes that wait
        self.messages_last = 0  # the greatest number of a message
        self.places_last = 0
        self.sessions = 0  # that are on disk, or will be with the batch that gathers
        self.results_mark = 0
        self.results_durable = 0  # the mark as it is on disk

    # --- batches ------------------------------------------------------------------------------

    def take(self) -> tuple[int, Batch]:
        """The batch that has gathered, with its number; another begins."""
        taken = self.number, self.batch
        self.number += 1
        self.batch = Batch()
        return taken

    def put_back(self, batch: Batch) -> None:
        """A batch that could not be written: it becomes durable with the one that gathers."""
        self.batch = batch.before(self.batch)

    def done(self, number: int) -> list["Connection"]:
        """All batches up to this one are durable; the connections that waited for one of them."""
        self.durable = number
        waited = list(self.waiting)
        for connection in waited:
            connection.let_go(number)
            if not connection.waits:
                del self.waiting[connection]
        return waited

    def written(self, batch: Batch) -> None:
        """A batch is on disk."""
        row = batch.rows.get((MarkRow, (RESULTS_MARK,)))
        if isinstance(row, MarkRow):
            self.results_durable = row.value

    def keep_mark(self) -> None:
        """Store the results' mark in one transaction with all that was changed just before.

        Without a session on disk nobody needs it: the first one brings it along.
        """
        self.batch.put(MarkRow(RESULTS_MARK, self.results_mark))

    # --- sessions -----------------------------------------------------------------------------

    def session(self, session: "Session") -> None:
        """A session as it is now."""
        if not session.stored:
            session.stored = True
            self.sessions += 1
            if self.results_mark != self.results_durable:  # it missed none of these
                self.keep_mark()
        client, will = session.client, session.will
        due_ms = session.will_timer.when_ms if session.will_timer is not None else None
        self.promises += 1
        self.batch.put(
            SessionRow(
                client.client_id,
                client.user,
                client.version,
                session.expiry_ms,
                None if session.connection is not None else session.gone_ms + self.wall_ms(),
                None if will is None else pack(will),
                None if due_ms is None else due_ms + self.wall_ms(),
            )
        )

    def forget(self, session: "Session") -> None:
        """A session that is over, or is not to be kept any longer."""
        if not session.stored:
            return
        session.stored = False
        self.sessions -= 1
        client_id = session.outgoing.client_id
        self.promises += 1
        self.batch.remove(SessionRow, client_id)
        if session.outgoing.kept is None:
            return  # it was its will alone
        session.outgoing.stop_keeping()
        for topic_filter in session.subscriptions:
            self.batch.remove(SubscriptionRow, client_id, topic_filter)
        for packet_id in session.unreleased:
            self.batch.remove(PacketRow, client_id, "client", packet_id)

    def subscribe(self, subscription: "TopicSubscription") -> None:
        """A subscription that is new or changed."""
        wanted = subscription.filter
        self.promises += 1
        self.batch.put(
            SubscriptionRow(
                subscription.outgoing.client_id,
                wanted.topic_filter,
                wanted.qos,
                wanted.no_local,
                wanted.retain_as_published,
                subscription.identifier,
            )
        )

    def unsubscribe(self, client_id: str, topic_filter: str) -> None:
        """A subscription that is no more."""
        self.promises += 1
        self.batch.remove(SubscriptionRow, client_id, topic_filter)

    def replay(self, client_id: str, topic_filter: str, replay: Replay) -> None:
        """A subscription that is to get what is retained."""
        identifier = replay.identifiers[0] if replay.identifiers else 0
        row = ReplayRow(client_id, topic_filter, replay.qos, replay.no_local, identifier)
        self.batch.put(row)

    def replayed(self, client_id: str, topic_filter: str) -> None:
        """A subscription that has got it, or is no more."""
        self.batch.remove(ReplayRow, client_id, topic_filter)

    # --- queues -------------------------------------------------------------------------------

    def queue(self, client_id: str, held: QueuedMessage) -> None:
        """A message that a client is to get."""
        message = held.message
        self.promises += 1
        if not message.keepers:
            self.messages_last += 1
            message.number = self.messages_last
            self.batch.add(MessageRow(message.number, self._body(message)), message.size_bytes)
        message.keepers += 1
        self.places_last += 1
        held.place = self.places_last
        self.batch.add(_queue_row(client_id, held, 0))

    def sent(self, client_id: str, held: QueuedMessage, packet_id: int) -> None:
        """A message that is sent under this identifier, now or before."""
        self.batch.put(_queue_row(client_id, held, packet_id))

    def unqueue(self, held: QueuedMessage) -> None:
        """A message that is not in its queue any longer."""
        message = held.message
        self.batch.remove(QueueRow, held.place)
        held.place = 0
        message.keepers -= 1
        if not message.keepers:
            self.batch.remove(MessageRow, message.number)

    def releasing(self, client_id: str, packet_id: int) -> None:
        """A message of this broker at QoS 2 that a client has."""
        self.batch.put(PacketRow(client_id, "broker", packet_id))

    def completed(self, client_id: str, packet_id: int) -> None:
        """One that the client knows to be over."""
        self.batch.remove(PacketRow, client_id, "broker", packet_id)

    def received(self, client_id: str, packet_id: int) -> None:
        """A message of a client at QoS 2 that was taken."""
        self.promises += 1
        self.batch.put(PacketRow(client_id, "client", packet_id))

    def released(self, client_id: str, packet_id: int) -> None:
        """One that the client will not send again."""
        self.promises += 1
        self.batch.remove(PacketRow, client_id, "client", packet_id)

    # --- retained messages --------------------------------------------------------------------

    def retain(self, message: Message) -> None:
        """A message that is its topic's from now on."""
        self.promises += 1
        self.batch.put(RetainedRow(message.topic, self._body(message)), message.size_bytes)

    def unretain(self, topic: str) -> None:
        """A topic that has none any longer."""
        self.promises += 1
        self.batch.remove(RetainedRow, topic)

    def _body(self, message: Message) -> bytes:
        return pack(
            KeptMessage(
                message.topic,
                message.payload,
                message.qos,
                message.retain,
                message.sender,
                message.properties,
                message.expires_ms + self.wall_ms() if message.expires_ms else 0,
            )
        )


def _queue_row(client_id: str, held: QueuedMessage, packet_id: int) -> QueueRow:
    return QueueRow(
        held.place,
        client_id,
        held.message.number,
        held.qos,
        held.retain,
        " ".join(map(str, held.identifiers)),
        held.share.name if held.share is not None else "",
        packet_id,
    )
