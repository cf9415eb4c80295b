"""What a broker keeps of one client beyond its connection: subscriptions, queues, will, expiry.

Owns the session's state. Must not know sockets or packets' bytes. Invariant: a session has at most
one connection, and belongs to the user who made it.
"""

from typing import TYPE_CHECKING

from broker.mqtt.codec.packets import Will
from broker.mqtt.sessions.client_queue import ClientQueue
from broker.mqtt.sessions.logins import host_of
from broker.mqtt.sessions.timers import Timer
from broker.rights.quotas import Holder

if TYPE_CHECKING:
    from broker.mqtt.application import ClientInfo, Token
    from broker.mqtt.routing.router import TopicSubscription
    from broker.mqtt.sessions.connection import Connection


def holder_of(client: "ClientInfo") -> Holder:
    """Return against whose quotas counts what a client takes."""
    return Holder(client.user, host_of(client.address))


class Session:
    """One client's session, by its client identifier."""

    __slots__ = (
        "arriving",
        "client",
        "connection",
        "expiry_ms",
        "expiry_timer",
        "gone_ms",
        "holder",
        "outgoing",
        "stored",
        "subscriptions",
        "unreleased",
        "will",
        "will_timer",
    )

    def __init__(self, client: "ClientInfo", outgoing: ClientQueue) -> None:
        self.client = client
        self.holder = holder_of(client)  # of its subscriptions, wherever its client is later
        self.outgoing = outgoing
        self.connection: Connection | None = None
        self.expiry_ms = 0  # how long it outlives its connection
        self.expiry_timer: Timer | None = None
        self.gone_ms = 0  # when it lost its last connection
        self.stored = False  # it is, or its will is, on disk
        self.subscriptions: dict[str, TopicSubscription] = {}
        self.unreleased: dict[int, None] = {}  # QoS 2 messages that were taken, by packet id
        self.arriving: dict[int, Token] = {}  # those that the application has not completed
        self.will: Will | None = None
        self.will_timer: Timer | None = None

    def take(self, packet_id: int) -> None:
        """A QoS 2 message of the client was taken: its repetitions are not."""
        self.unreleased[packet_id] = None
        kept = self.outgoing.kept
        if kept is not None:
            kept.received(self.outgoing.client_id, packet_id)

    def release(self, packet_id: int) -> bool:
        """The client will not repeat it; whether it was known."""
        released = self.unreleased.pop(packet_id, 0) is None
        kept = self.outgoing.kept
        if released and kept is not None:
            kept.released(self.outgoing.client_id, packet_id)
        return released

    def still_timers(self) -> None:
        """Neither the session's end nor its will is waited for any more."""
        for timer in (self.expiry_timer, self.will_timer):
            if timer is not None:
                timer.cancel()
        self.expiry_timer = self.will_timer = None
