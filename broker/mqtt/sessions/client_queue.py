"""What is on its way to one client: in flight, waiting for room, and retained ones still to come.

Owns packet identifiers, the client's receive maximum and the bounds of its queues. Must not know
who published. Invariant: a message at QoS 1 or 2 is sent and confirmed, or waits, or the whole
session ends and says so; a QoS 0 message that finds no room is dropped and counted.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.mqtt.codec.packets import V5
from broker.mqtt.codec.topics import TopicTree
from broker.mqtt.counters import Counters
from broker.mqtt.limits import MqttLimits
from broker.mqtt.routing.message import (
    Message,
    MessageDelivery,
    Pipe,
    QueuedMessage,
    Replay,
    encode_aliased,
    encode_message,
    encode_plain,
    held_for,
    plain_5,
    plain_311,
)
from broker.mqtt.routing.retained_replay import Replays
from broker.rights.quotas import QueueAccount

if TYPE_CHECKING:
    from broker.mqtt.storage.batches import HubStorage
AWAY, BEHIND, READY = range(3)
# What a step through the retained messages takes of a connection's room, beside what it sends: a
# client could else have the broker look through all of them for a few bytes, over and over.
STEP_BYTES = 64
PUBREL = b"\x62\x02"


class Room:
    """The account of what the queues of one session hold, a part of that of all sessions."""

    __slots__ = ("_counters", "_limits", "account", "given_up", "held_bytes")

    def __init__(self, limits: MqttLimits, counters: Counters) -> None:
        self._limits = limits
        self._counters = counters
        self.held_bytes = 0
        self.account: QueueAccount | None = None  # of all sessions of its user
        self.given_up = False  # publishers were slowed for it long enough

    def charge(self, size_bytes: int) -> None:
        """So much more is held; or less."""
        self.held_bytes += size_bytes
        self._counters.queued_bytes += size_bytes
        if self.account is not None:
            self.account.held_bytes += size_bytes

    def takes(self, size_bytes: int, waiting: int) -> bool:
        """Return whether one more message at QoS 0 may wait behind so many."""
        limits = self._limits
        return (
            waiting < limits.queue_messages_max
            and self.held_bytes + size_bytes <= limits.queue_bytes_max
            and self._counters.queued_bytes + size_bytes <= limits.queue_bytes_total_max
            and self._in_quota(size_bytes)
        )

    def _in_quota(self, size_bytes: int) -> bool:
        account = self.account
        return account is None or account.held_bytes + size_bytes <= account.bytes_max

    def admit(self, size_bytes: int, waiting: int) -> bool:
        """Charge one at QoS 1 or 2 unless it is too much; whether it was taken.

        By itself it may be as large as it likes. `waiting` is -1 for one that need not wait.
        """
        limits, counters = self._limits, self._counters
        held_bytes = self.held_bytes + size_bytes
        total_bytes = counters.queued_bytes + size_bytes
        if (
            total_bytes > limits.queue_bytes_total_max
            or waiting >= limits.queue_messages_max
            or (self.held_bytes and held_bytes > limits.queue_bytes_max)
            or (self.account is not None and not self._in_quota(size_bytes))
        ):
            return False
        if self.account is not None:
            self.account.held_bytes += size_bytes
        self.held_bytes = held_bytes
        counters.queued_bytes = total_bytes
        return True

    def takes_retained(self, size_bytes: int) -> bool:
        """Return whether a retained message may be under way too, or has to wait for others.

        It may where nothing else is, else nothing would make it leave.
        """
        return not self.held_bytes or self.takes(size_bytes, -1)

    def crowded(self, waiting: int) -> bool:
        """Return whether publishers are to be slowed: from half of the room down to a quarter.

        Not again, once that was in vain, until it has been at a quarter.
        """
        limits = self._limits
        part = max(
            4 * waiting / max(1, limits.queue_messages_max),
            4 * self.held_bytes / max(1, limits.queue_bytes_max),
        )
        if part <= 1:
            self.given_up = False
        return part > 2 and not self.given_up

    def eased(self, waiting: int) -> bool:
        """Return whether it is down to a quarter."""
        limits = self._limits
        return (
            4 * waiting <= limits.queue_messages_max
            and 4 * self.held_bytes <= limits.queue_bytes_max
        )


class ClientQueue:
    """The queues of one session towards its client."""

    __slots__ = (
        "_again",
        "_counters",
        "_inflight",
        "_last_id",
        "_loose",
        "_overflowed",
        "_releasing",
        "_replays",
        "_waiting",
        "client_id",
        "kept",
        "pipe",
        "receives",
        "room",
    )

    def __init__(
        self,
        client_id: str,
        limits: MqttLimits,
        counters: Counters,
        retained: TopicTree[Message],
        receives: Callable[[str], bool],
    ) -> None:
        self.client_id = client_id
        self.receives = receives  # whether the client may have messages of a topic
        self.pipe: Pipe | None = None
        self.kept: HubStorage | None = None  # where its messages are kept on disk, if they are
        self._counters = counters
        self._inflight: dict[
            int, QueuedMessage
        ] = {}  # QoS 1 and 2, sent at least once, not confirmed
        self._again: deque[int] = deque()  # of these, to be sent again on this connection
        self._releasing: dict[int, None] = {}  # QoS 2, received; by packet id until PUBCOMP
        self._waiting: deque[QueuedMessage] = deque()  # QoS 1 and 2, not sent yet
        self._loose: deque[QueuedMessage] = deque()  # QoS 0, waiting for room
        self._replays = Replays(retained)
        self.room = Room(limits, counters)
        self._last_id = 0
        self._overflowed = False  # the session is about to end

    @property
    def held_messages(self) -> int:
        """Copies that were routed and not sent yet."""
        return len(self._waiting) + len(self._loose)

    def readiness(self) -> int:
        """Tell whether a message would be sent at once, would wait, or wait for the client."""
        pipe = self.pipe
        if pipe is None:
            return AWAY
        free = pipe.room > 0 and not self._waiting and self._under_way() < pipe.receive_max
        return READY if free else BEHIND

    def offer(self, message: Message, delivery: MessageDelivery, now_ms: int) -> bool:
        """Send or queue a message; False, once: one at QoS 1 or 2 found the queue full."""
        self._counters.routed += 1
        if message.qos and delivery.qos:
            return self._offer_firm(message, delivery, now_ms)
        pipe = self.pipe
        if pipe is None:
            self._counters.drop("offline")
        elif pipe.room > 0 and not self._loose:
            if delivery.plain and message.properties is None and pipe.sent_aliases is None:
                # The commonest case; encoded once for all who get it.
                if pipe.version == V5:
                    data = message.plain_5 or plain_5(message)
                else:
                    data = message.plain_311 or plain_311(message)
                if len(data) <= pipe.packet_bytes_max:
                    pipe.send(data)
                    self._counters.sent += 1
                else:
                    self._counters.drop("too_large_for_client")
            else:
                self._send(pipe, held_for(message, delivery), 0, now_ms)
        else:
            self._keep_loose(held_for(message, delivery))
        return True

    def _offer_firm(self, message: Message, delivery: MessageDelivery, now_ms: int) -> bool:
        """`offer` at QoS 1 or 2."""
        if self._overflowed:
            self._counters.drop("queue_overflow")
            return True
        pipe = self.pipe
        free = (
            pipe is not None
            and pipe.room > 0
            and len(self._inflight) + len(self._releasing) < pipe.receive_max
            and not self._waiting
            and not self._again
        )
        if not self.room.admit(message.size_bytes, -1 if free else len(self._waiting)):
            self._counters.drop("queue_overflow")
            self._overflowed = True
            return False
        bare = delivery.plain and message.properties is None and self.kept is None
        if bare and free and pipe is not None and pipe.sent_aliases is None:
            self._send_plain(pipe, message, min(message.qos, delivery.qos))
            return True
        held = held_for(message, delivery)
        if self.kept is not None:
            self.kept.queue(self.client_id, held)
        if free and pipe is not None:
            self._send_first(pipe, held, now_ms)
        else:
            self._waiting.append(held)
        return True

    def replay(self, topic_filter: str, replay: Replay) -> None:
        """Have the client get what is retained under this filter, as it will stand then."""
        if self.kept is not None:
            self.kept.replay(self.client_id, topic_filter, replay)
        self._replays.put(topic_filter, replay)

    def forget_replay(self, topic_filter: str) -> None:
        """That subscription is gone."""
        self._replays.remove(topic_filter)
        if self.kept is not None:
            self.kept.replayed(self.client_id, topic_filter)

    def confirm(self, packet_id: int, now_ms: int) -> bool:
        """The client has this QoS 1 message; whether such a message was on its way."""
        held = self._inflight.get(packet_id)
        expected = held is not None and held.qos == 1 and self._forget(packet_id)
        if self._waiting or self._again or self._replays or self._loose:
            self.pump(now_ms)
        return expected

    def received(self, packet_id: int, *, good: bool, now_ms: int) -> bool:
        """The client has this QoS 2 message, or will not have it; whether it is known.

        One that it has is released: it may come no more, whatever happens (section 4.3.3).
        """
        held = self._inflight.get(packet_id)
        expected = held is not None and held.qos == 2
        if expected:
            self._forget(packet_id)
            self._counters.confirmed += 1
            if good:
                self._releasing[packet_id] = None
            else:
                self.pump(now_ms)
        if packet_id in self._releasing and self.pipe is not None:
            self.pipe.send(PUBREL + packet_id.to_bytes(2, "big"))
            if self.kept is not None:
                # Were this forgotten, the message would be sent once more.
                self.kept.releasing(self.client_id, packet_id)
                self.pipe.hold_back(self.kept.number)
        return expected or packet_id in self._releasing

    def completed(self, packet_id: int, now_ms: int) -> None:
        """The client knows that a QoS 2 message comes no more: its identifier is free."""
        if self._releasing.pop(packet_id, 0) is None:
            if self.kept is not None:
                self.kept.completed(self.client_id, packet_id)
            self.pump(now_ms)

    def _under_way(self) -> int:
        return len(self._inflight) + len(self._releasing)

    def _forget(self, packet_id: int) -> bool:
        held = self._inflight.pop(packet_id, None)
        if held is None:
            return False
        if self._again and packet_id in self._again:
            self._again.remove(packet_id)
        self.room.charge(-held.message.size_bytes)
        if held.place and self.kept is not None:
            self.kept.unqueue(held)
        return True

    def attach(self, pipe: Pipe) -> None:
        """The client is there: what it did not confirm is to be sent again (MQTT-4.4.0-1)."""
        self.pipe = pipe
        self._again = deque(self._inflight)
        for packet_id in self._releasing:
            pipe.send(PUBREL + packet_id.to_bytes(2, "big"))

    def detach(self) -> None:
        """The client is gone: QoS 0 messages go with it."""
        if self.kept is not None:
            for packet_id, held in self._inflight.items():
                if held.qos == 1:  # others are known to be on their way since they were sent
                    self.kept.sent(self.client_id, held, packet_id)
        self._unplug()

    def _unplug(self) -> None:
        self.pipe = None
        self._again.clear()
        self._replays.rewind()
        if self._loose:
            self._counters.drop("connection_lost", len(self._loose))
            for held in self._loose:
                self.room.charge(-held.message.size_bytes)
            self._loose.clear()

    def discard(self, reason: str) -> list[QueuedMessage]:
        """The session is over: count what it never sent; what others of its group are to get.

        It is no member any more, so a group that is empty has nobody else.
        """
        self._unplug()
        self.stop_keeping()
        # What was sent at QoS 2 nobody else may get (MQTT-4.8.2-5).
        passed_on = [held for held in self._inflight.values() if held.share and held.qos == 1]
        for held in self._waiting:
            self._counters.drop("passed_on" if held.share else reason)
            if held.share:
                passed_on.append(held)
        self.room.charge(-self.room.held_bytes)
        for messages in (self._waiting, self._inflight, self._releasing, self._replays):
            messages.clear()
        return passed_on

    def stop_keeping(self) -> None:
        """Stop keeping on disk what is in its queues."""
        kept, self.kept = self.kept, None
        if kept is None:
            return
        for held in (*self._inflight.values(), *self._waiting):
            kept.unqueue(held)
        for packet_id in self._releasing:
            kept.completed(self.client_id, packet_id)
        for topic_filter in self._replays.filters():
            kept.replayed(self.client_id, topic_filter)

    def restore(self, packet_id: int, held: QueuedMessage | None) -> None:
        """Take back what was on its way before a restart.

        With an identifier it was sent; without a message the client had it already.
        """
        if held is None:
            self._releasing[packet_id] = None
            return
        self.room.charge(held.message.size_bytes)
        if packet_id:
            self._inflight[packet_id] = held
        else:
            self._counters.routed += 1
            self._waiting.append(held)

    def pump(self, now_ms: int) -> None:
        """Send what waits, as far as there is room."""
        pipe = self.pipe
        if pipe is None:
            return
        while self._again and pipe.room > 0 and self._free(pipe) > 0:
            packet_id = self._again.popleft()
            held = self._inflight[packet_id]
            self._send(pipe, held, 0b1000 | held.qos << 1, now_ms, packet_id)
        while self._loose and pipe.room > 0:
            held = self._loose.popleft()
            self.room.charge(-held.message.size_bytes)
            self._send(pipe, held, 0, now_ms)
        if self._replays:
            self._replay(pipe, now_ms)
        while self._waiting and pipe.room > 0 and not self._again and self._free(pipe) > 0:
            self._send_first(pipe, self._waiting.popleft(), now_ms)

    def _replay(self, pipe: Pipe, now_ms: int) -> None:
        """Go on with what is retained."""
        replays = self._replays
        while replays and pipe.room > 0 and not self._again and self._free(pipe) > 0:
            message = replays.step()
            pipe.spend(STEP_BYTES)
            if message is None:
                if replays.finished and self.kept is not None:
                    self.kept.replayed(self.client_id, replays.finished)
                continue
            firm = message.qos and replays.replay.qos
            if firm and not self.room.takes_retained(message.size_bytes):
                replays.keep(message.topic)
                break
            self._send_retained(pipe, message, replays.replay, now_ms)

    def behind(self) -> bool:
        """Tell whether something waits for room in the connection, not for the client's PUBACKs."""
        if self._loose:
            return True
        waits = self._waiting or self._again or self._replays
        return bool(waits and self.pipe is not None and self._free(self.pipe) > 0)

    def _free(self, pipe: Pipe) -> int:
        return pipe.receive_max - self._under_way() + len(self._again)

    def _keep_loose(self, held: QueuedMessage) -> None:
        size_bytes = held.message.size_bytes
        if self.room.takes(size_bytes, len(self._loose)):
            self.room.charge(size_bytes)
            self._loose.append(held)
        else:
            self._counters.drop("queue_full")

    def _send(
        self, pipe: Pipe, held: QueuedMessage, bits: int, now_ms: int, packet_id: int = 0
    ) -> bool:
        """Send, unless it has expired or is larger than the client takes."""
        again = bits & 8
        expires_ms = held.message.expires_ms
        # One at QoS 2 has begun: its receiver may know its identifier, which has to be released.
        if expires_ms and expires_ms <= now_ms and not (again and held.qos == 2):
            reason = "expired"
        else:
            aliases, size_max = pipe.sent_aliases, pipe.packet_bytes_max
            if aliases is None:
                data = encode_message(held, pipe.version, bits, packet_id, now_ms)
            else:
                data = encode_aliased(held, aliases, bits, packet_id, now_ms, size_max=size_max)
            if len(data) <= size_max:
                pipe.send(data)
                if again:
                    self._counters.resent += 1
                else:
                    self._counters.sent += 1
                return True
            reason = "too_large_for_client"
        if again:
            self._forget(packet_id)  # it was sent before: nothing that is owed is lost
        else:
            self._counters.drop(reason)
        return False

    def _next_id(self) -> int:
        """A packet identifier that is free."""
        packet_id = self._last_id % 0xFFFF + 1
        while packet_id in self._inflight or packet_id in self._releasing:
            packet_id = packet_id % 0xFFFF + 1
        self._last_id = packet_id
        return packet_id

    def _send_plain(self, pipe: Pipe, message: Message, qos: int) -> None:
        """The commonest case of `_send_first`: not retained, without properties."""
        packet_id = self._next_id()
        data = encode_plain(message, pipe.version, packet_id, qos)
        if len(data) > pipe.packet_bytes_max:
            self._counters.drop("too_large_for_client")
            self.room.charge(-message.size_bytes)
            return
        self._inflight[packet_id] = QueuedMessage(message, False, (), None, qos)
        self._counters.sent += 1
        pipe.send(data)

    def _send_first(self, pipe: Pipe, held: QueuedMessage, now_ms: int) -> None:
        """Send a message at QoS 1 or 2 for the first time."""
        packet_id = self._next_id()
        kept = self.kept
        if self._send(pipe, held, held.qos << 1, now_ms, packet_id):
            self._inflight[packet_id] = held
            if kept is not None and held.qos == 2:
                # Under another identifier it would be another message to the client.
                kept.sent(self.client_id, held, packet_id)
                pipe.hold_back(kept.number)
        else:
            self.room.charge(-held.message.size_bytes)
            if kept is not None:
                kept.unqueue(held)

    def _send_retained(self, pipe: Pipe, message: Message, replay: Replay, now_ms: int) -> None:
        if replay.no_local and message.sender == self.client_id:
            return
        if not self.receives(message.topic):
            return
        qos = min(message.qos, replay.qos)
        held = QueuedMessage(message, True, replay.identifiers, None, qos)
        self._counters.routed += 1
        if not qos:
            self._send(pipe, held, 0, now_ms)
        else:
            self.room.charge(message.size_bytes)
            if self.kept is not None:
                self.kept.queue(self.client_id, held)
            self._send_first(pipe, held, now_ms)
