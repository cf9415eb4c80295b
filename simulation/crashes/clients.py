"""Clients who mean it: what they send comes again until it is answered.

Owns sensors that keep what is not acknowledged and send it again, and clients who install and
cancel. Must not know what the core makes of it. Invariant: a client draws all that it does from the
world's generator; what it asks for next waits for the answer to what it asked for before.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from broker.core.messages import (
    CancelRequested,
    EventsReceived,
    Message,
    Payload,
    SourceAdvertised,
    SourceWithdrawn,
    SpecificationSubmitted,
)
from simulation.account import CheckFailedError
from simulation.crashes.site import CrashingSite

Said = dict[str, Any]
NET_MS = 30  # the most that a message is under way


class SimulatedConnection:
    """A client's way to the broker: in order, with delays, and gone at any moment."""

    def __init__(self, site: CrashingSite) -> None:
        self.site = site
        self.world = site.world
        self._number: int | None = None
        self._arrives = 0
        self._returns = 0
        self._serial = 0

    @property
    def open(self) -> bool:
        """Tell whether there is one."""
        return self._number is not None

    def connect(self) -> bool:
        """Try to reach the broker."""
        if self.site.process is None:
            return False
        self._number = self.site.connection
        self._serial += 1
        return True

    def close(self) -> None:
        """The client or the broker is gone."""
        self._number = None

    def under_way(self, arrive: Any) -> None:
        """Have something arrive at the broker, after all that went before, unless it is cut."""
        serial, number = self._serial, self._number
        self._arrives = max(self._arrives, self.world.now + self.world.random.randint(0, NET_MS))

        def there() -> None:
            if self.open and (serial, number) == (self._serial, self.site.connection):
                arrive()

        self.world.at(self._arrives, there)

    def back(self, arrive: Any) -> Any:
        """Return what brings an answer to the client, unless the connection is cut meanwhile."""
        serial = self._serial

        def there() -> None:
            if self.open and serial == self._serial:
                arrive()

        def leave(_: Any) -> None:
            back_ms = self.world.now + self.world.random.randint(0, NET_MS)
            self._returns = max(self._returns, back_ms)
            self.world.at(self._returns, there)

        return leave


class Packet(Struct):
    """Hold what a sensor publishes; `events` are what is in it."""

    message: str
    data: bytes
    events: list[Said]
    sent: bool = False


class PublishingSensor:
    """A source that keeps what was not acknowledged, unless it loses its own memory."""

    def __init__(self, site: CrashingSite, name: str, type_name: str, window: int) -> None:
        self.name = name
        self.acknowledged: list[Said] = []
        self.place: bytes | None = None  # what it advertises
        self.type_name = type_name
        self._window = window
        self._site = site
        self._world = site.world
        self._way = SimulatedConnection(site)
        self._packets: deque[Packet] = deque()
        self._tokens = 0
        self.begun = False
        site.clients.append(self)

    @property
    def idle(self) -> bool:
        """Tell whether all that it has to say was taken."""
        return not self._packets

    def publish(self, events: list[Said]) -> None:
        """Publish readings, alone or as a batch."""
        data = json.dumps(events[0] if len(events) == 1 else events).encode()
        self._add(Packet("events", data, events))

    def advertise(self, place: Said) -> None:
        """Say what it is."""
        advertisement = {"source": self.name, "types": [self.type_name], **place}
        self._add(Packet("advertised", json.dumps(advertisement).encode(), []))

    def withdraw(self) -> None:
        """Say that it leaves."""
        self._add(Packet("withdrawn", b"", []))

    def again(self) -> None:
        """Publish something once more that was taken long ago."""
        if self.acknowledged:
            recent = self.acknowledged[-8:]
            self.publish([self._world.random.choice(recent)])

    def vanish(self, away_ms: int, *, forget: bool) -> None:
        """Lose the connection for a while, and perhaps all that it had to say."""
        self.lost()
        if forget:
            self._packets.clear()
        self._world.after(away_ms, self.reached)

    def reached(self) -> None:
        """Connect once it has begun, and send what waits."""
        if self.begun and not self._way.open and self._way.connect():
            self._pump()

    def lost(self) -> None:
        """Close the connection, and count all packets as not sent."""
        self._way.close()
        for packet in self._packets:
            packet.sent = False

    def _add(self, packet: Packet) -> None:
        self._packets.append(packet)
        self._pump()

    def _pump(self) -> None:
        if not self._way.open:
            return
        for index, packet in enumerate(self._packets):
            if index >= self._window:
                return
            if not packet.sent:
                packet.sent = True
                self._send(packet)

    def _send(self, packet: Packet) -> None:
        self._tokens += 1
        token = f"{self.name} {self._tokens}"
        answer = self._way.back(lambda: self._taken(packet))
        self._way.under_way(lambda: self._site.tell(self._message(packet, token), {token: answer}))

    def _message(self, packet: Packet, token: str) -> Message:
        match packet.message:
            case "events":
                payload = Payload(self.type_name, self.name, packet.data, token)
                return EventsReceived((payload,))
            case "advertised":
                return SourceAdvertised(self.name, packet.data, token)
            case _:
                return SourceWithdrawn(self.name, token)

    def _taken(self, packet: Packet) -> None:
        if self._packets and self._packets[0] is packet:
            self._packets.popleft()
        elif packet in self._packets:
            raise CheckFailedError(f"{self.name} was answered out of order")
        self.acknowledged += packet.events
        self._pump()


class Wish(Struct, frozen=True):
    """State what a client wants next: a text, or an end for a name; and what holds after it."""

    what: str
    text: str
    holds: dict[str, int | None]  # name → seq, None where it is gone


class AskingClient:
    """A client who installs and cancels, one wish after the other."""

    def __init__(self, site: CrashingSite, name: str, wishes: list[Wish]) -> None:
        self.name = name
        self.holds: dict[str, int | None] = {}
        self.satisfied: Callable[[], None] = lambda: None  # called when nothing is left to wish
        self._wishes = deque(wishes)
        self._site = site
        self._way = SimulatedConnection(site)
        self._asked = 0
        self._sent = False
        self._tries = 0
        site.clients.append(self)

    @property
    def idle(self) -> bool:
        """Tell whether it has all that it wants."""
        return not self._wishes

    def wish(self, wish: Wish) -> None:
        """Want this besides, behind all else."""
        self._wishes.append(wish)
        self._ask()

    def reached(self) -> None:
        """Connect, and ask."""
        if not self._way.open and self._way.connect():
            self._ask()

    def lost(self) -> None:
        """Close the connection, and count the wish as not sent."""
        self._way.close()
        self._sent = False

    def vanish(self, away_ms: int) -> None:
        """Lose the connection for a while."""
        self.lost()
        self._site.world.after(away_ms, self.reached)

    def _ask(self) -> None:
        if not self._wishes or self._sent or not self._way.open:
            return
        self._sent = True
        self._tries += 1
        self._asked += 1
        wish, tries = self._wishes[0], self._tries
        request, token = f"{self.name} {self._asked}", f"{self.name} token {self._asked}"
        payload: list[bytes] = []
        back = self._way.back(lambda: self._answered(wish, json.loads(payload[0]), tries))

        def answer(said: bytes) -> None:
            payload.append(said)
            back(said)

        message = self._message(wish, request, token)
        answers = {request: answer, token: lambda _: None}
        self._way.under_way(lambda: self._site.tell(message, answers))

    def _message(self, wish: Wish, request: str, token: str) -> Message:
        if wish.what == "submit":
            return SpecificationSubmitted(self.name, request, wish.text, request, token)
        return CancelRequested(self.name, request, wish.text, request, token)

    def _answered(self, wish: Wish, said: Said, tries: int) -> None:
        if not self._wishes or self._wishes[0] is not wish:
            return
        done_before = wish.what == "cancel" and tries > 1  # and the answer was lost
        if not (said["ok"] or done_before):
            raise CheckFailedError(f"{self.name} wanted {wish.text}, and is told {said}")
        self._wishes.popleft()
        self.holds |= wish.holds
        listed = {
            subscription.key: subscription.seq for subscription in self._site.machine.outbox.listed
        }
        for name, seq in wish.holds.items():
            if listed.get((self.name, name)) != seq:
                raise CheckFailedError(f"{name} of {self.name} is answered, and not listed so")
        self._sent, self._tries = False, 0
        if not self._wishes:
            self.satisfied()
        world = self._site.world
        world.after(world.random.randint(0, 6_000), self._ask)
