"""Shared subscriptions (MQTT 5, section 4.8.2): each message goes to one member of a group.

Owns the choice. Must not know topics or connections. Invariant: a message goes to exactly one
member, to one that can take it at once where there is any; those who can take turns.
"""

from broker.mqtt.routing.message import Message, MessageDelivery, Taker
from broker.mqtt.sessions.client_queue import READY, ClientQueue


class Share:
    """The members of one group at one topic filter; to the router it looks like one client."""

    __slots__ = ("_members", "_overflowed", "client_id", "delivery", "name")

    def __init__(self, name: str, overflowed: list[Taker]) -> None:
        """`overflowed` is told which member's session has to end for its full queue."""
        self.name = name  # as its members subscribe to it
        self.client_id = ""  # nobody's
        self.delivery = MessageDelivery(self, 1, False, (), plain=False)
        self._members: dict[
            str, tuple[ClientQueue, MessageDelivery]
        ] = {}  # whose turn it is comes first
        self._overflowed = overflowed

    def __len__(self) -> int:
        return len(self._members)

    def members(self) -> list[ClientQueue]:
        """Whom a message may go to."""
        return [outgoing for outgoing, _ in self._members.values()]

    def put(self, outgoing: ClientQueue, delivery: MessageDelivery) -> bool:
        """Add or replace a member; whether it is new."""
        new = outgoing.client_id not in self._members
        self._members[outgoing.client_id] = (outgoing, delivery)
        return new

    def remove(self, client_id: str) -> bool:
        """Take a member away; whether there was one."""
        return self._members.pop(client_id, None) is not None

    def offer(self, message: Message, _delivery: MessageDelivery, now_ms: int) -> bool:
        """Give the message to one member that may have it, whose own delivery says how.

        Always True: `overflowed` is told. Where no member may have it, nobody gets it.
        """
        chosen, best = "", -1
        for client_id, (outgoing, _) in self._members.items():
            if not outgoing.receives(message.topic):
                continue
            rank = outgoing.readiness()
            if rank > best:
                chosen, best = client_id, rank
            if rank == READY:
                break
        if best < 0:
            return True
        outgoing, delivery = self._members[chosen] = self._members.pop(chosen)
        if not outgoing.offer(message, delivery, now_ms):
            self._overflowed.append(outgoing)
        return True
