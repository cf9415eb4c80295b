"""Release events: in each direction those that are in a complete match now, and probes of them.

Owns the events and probes held, the matchers of all directions, and the bits that mark an event as
sent or told. Must not know how operators are asked of others. Invariant: an event goes in a
direction once, and exactly if a matcher of it releases it; past the greatest number the oldest are
forgotten early and sent to all neighbours that might want them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from broker.network.routing.advertisement.messages import LOCAL, Events, Results, Send
from broker.network.routing.advertisement.operator import Operator
from broker.network.routing.leads.probes import KeptEvents, Probing
from broker.network.routing.matching.matching import Compile, Matcher, Part, Released, Waiting
from broker.network.routing.matching.rows import EventKey, EventView, Held, Store
from broker.network.routing.matching.strategies import Strategy


class EventReleases:
    """Release events in the directions of one broker.

    At most `held_max` events are held; `shed_count` counts those forgotten early. `waits`: what
    stays is noted for `waiting`.
    """

    def __init__(
        self, strategy: Strategy, compile_condition: Compile, held_max: int, *, waits: bool
    ) -> None:
        self.shed_count = 0  # the status shows it
        self._strategy = strategy  # whether results share events
        self._compile = compile_condition  # of conditions in words
        self._held_max = held_max  # with probes
        self._waits = waits
        self.to_tell: list[Send] = []
        self._store = Store()  # events of all directions, each once
        self.probing = Probing(self._store, compile_condition)
        self.bits: dict[str, int] = {LOCAL: 0}
        self.matchers: dict[str, Matcher] = {LOCAL: self._matcher(LOCAL)}

    def __len__(self) -> int:
        return len(self._store) + len(self.probing.heard)

    # --- directions ------------------------------------------------------------------------

    def link(self, names: Sequence[str]) -> None:
        """Forget all neighbours and begin with these; the events held stay."""
        # Of two bits the second tells that a neighbour was told of an event.
        self.bits = {LOCAL: 0, **{name: 1 << 2 * place for place, name in enumerate(names)}}
        self.probing.link({name: self.bits[name] << 1 for name in names})
        self.matchers = {
            LOCAL: self.matchers[LOCAL],
            **{name: self._matcher(name) for name in names},
        }
        for held in self._store.everything():
            held.via = LOCAL  # where it came from is not known in the new tree
            held.spot = 0
            held.sent = 0

    def add(self, name: str) -> None:
        """Begin with one neighbour more."""
        taken, bit = 0, 1
        for other in self.bits.values():
            taken |= other
        while taken & bit:  # the lowest two that are free
            bit <<= 2
        for held in self._store.everything():
            held.sent &= ~(bit | bit << 1)
        self.bits[name] = bit
        self.probing.add(name, bit << 1)
        self.matchers[name] = self._matcher(name)

    def remove(self, name: str) -> None:
        """End with a neighbour."""
        self.probing.remove(name)
        del self.bits[name], self.matchers[name]

    def reset(self, name: str) -> None:
        """A neighbour has none of what it was sent or told."""
        bit = self.bits[name]
        for held in self._store.everything():
            if held.via != name:
                held.sent &= ~(bit | bit << 1)
        self.probing.add(name, bit << 1)

    def _matcher(self, name: str) -> Matcher:
        each = self._strategy.each or name == LOCAL
        made = Matcher(name, self.bits[name], self._compile, each=each)
        if self._waits and name != LOCAL:
            made.waiting = []
        return made

    # --- what comes ------------------------------------------------------------------------

    def match(self, name: str, operator: Operator, parts: list[Part], out: list[Send]) -> None:
        """Match an operator of a direction from now on, what is held included."""
        silent = None if self._strategy.rings else KeptEvents(self._store, self.probing.heard)
        released = self.matchers[name].add(operator, parts, self._store, silent)
        if released:
            out.append(self._sending(name, released))

    def events(self, came_from: str, events: Iterable[EventView]) -> list[Send]:
        """Take events that came from a neighbour, or entered here; return what goes for them."""
        return self._sendings(*self.take(came_from, events))

    def take(
        self, came_from: str, events: Iterable[EventView]
    ) -> tuple[list[Send], dict[str, list[Released]]]:
        """Take events likewise; return the probes of them, and by direction what is released."""
        released: dict[str, list[Released]] = {}
        probes: list[Send] = []
        bit, asked = self.bits[came_from], self.probing.asked
        keeps = not self._waits or self.keeps()
        among: dict[EventKey, Held] = self._store if keeps else {}
        for event in events:
            held = self._store.add(event, came_from, among)
            if held is None:
                continue
            held.sent |= bit | bit << 1
            if asked:
                self.probing.tell(held, probes)
            for name, matcher in self.matchers.items():
                if name != came_from or name == LOCAL:
                    going = matcher.offer(held, keeps)
                    if going:
                        released.setdefault(name, []).extend(going)
        if len(self._store) + len(self.probing.heard) > self._held_max:
            self._shed(probes, released)
        return probes, released

    def wanted(
        self, came_from: str, events: Iterable[EventView]
    ) -> dict[str, dict[int, EventView]]:
        """Return the events that go in each direction now, by their identity, of these or earlier.

        Whom they serve at LOCAL the core finds by itself.
        """
        probes, released = self.take(came_from, events)
        self.to_tell += probes
        wanted: dict[str, dict[int, EventView]] = {}
        for name in self.matchers:
            if name in released:
                wanted[name] = going = {}
                for each in released[name]:
                    going[id(each.held.event)] = each.held.event
        return wanted

    def told(self) -> list[Send]:
        """Return what neighbours are to be told since this was asked last."""
        probes, self.to_tell = self.to_tell, []
        return probes

    def waiting(self) -> dict[str, list[Waiting]]:
        """By neighbour what has come since this was asked last, and waits for a partner."""
        waiting: dict[str, list[Waiting]] = {}
        for name, matcher in self.matchers.items():
            if matcher.waiting:
                waiting[name], matcher.waiting = matcher.waiting, []
        return waiting

    def keeps(self) -> bool:
        """Tell whether a broker has events in here, or has a partner to wait for with any."""
        joins = 0
        for matcher in self.matchers.values():
            joins += matcher.joins
        return bool(joins or self._store or self.probing.asked or self.probing.heard)

    def probes(self, came_from: str, events: Iterable[EventView]) -> list[Send]:
        """Take what a neighbour tells of: what waits for it goes there, and others are told."""
        released: dict[str, list[Released]] = {}
        probes: list[Send] = []
        for held in self.probing.hear(came_from, self.bits[came_from], events):
            _gather(released, came_from, self.matchers[came_from].offer(held))
            self.probing.tell(held, probes)
        return self._sent(probes, released)

    def _sent(self, told: list[Send], released: dict[str, list[Released]]) -> list[Send]:
        if len(self) > self._held_max:
            self._shed(told, released)
        return self._sendings(told, released)

    def _sendings(self, told: list[Send], released: dict[str, list[Released]]) -> list[Send]:
        return [
            *told,
            *[self._sending(name, released[name]) for name in self.matchers if name in released],
        ]

    def _sending(self, name: str, released: list[Released]) -> Send:
        if name == LOCAL:
            return Send(name, Results(_by_event(released)))
        if not self._strategy.each:
            return Send(name, Events([each.held.event for each in released], len(released)))
        distinct = {id(each.held): each.held for each in released}
        copies = sum(each.slots.bit_count() for each in released)
        return Send(name, Events([held.event for held in distinct.values()], copies))

    # --- what is forgotten -----------------------------------------------------------------

    def expire(self, before_ms: int) -> None:
        """Forget what began before."""
        self._store.expire(before_ms)
        self.probing.expire(before_ms)
        for matcher in self.matchers.values():
            matcher.expire(before_ms)

    def _shed(self, probes: list[Send], released: dict[str, list[Released]]) -> None:
        """Forget the older half of the events; what has to go for it."""
        every = [*self._store.everything(), *self.probing.heard.everything()]
        kept = sorted(every, key=lambda held: held.start)
        gone = kept[: len(kept) - self._held_max // 2]
        before_ms = gone[-1].start + 1
        gone = [held for held in kept if held.start < before_ms]
        last_ms = max(held.end for held in gone)
        self.shed_count += len(gone)
        for name, matcher in self.matchers.items():
            _gather(released, name, matcher.shed(before_ms, last_ms))
        probes += self.probing.shed(before_ms, last_ms)
        self._store.expire(before_ms)


def _gather(released: dict[str, list[Released]], name: str, more: list[Released]) -> None:
    if more:
        released.setdefault(name, []).extend(more)


def _by_event(released: list[Released]) -> list[tuple[EventView, tuple[str, ...]]]:
    """Each event with the subscriptions that it goes to, in the order of release."""
    by_event: dict[int, tuple[Held, dict[str, None]]] = {}
    for each in released:
        _, names = by_event.setdefault(id(each.held), (each.held, {}))
        names.update(dict.fromkeys(each.names))
    return [(held.event, tuple(names)) for held, names in by_event.values()]
