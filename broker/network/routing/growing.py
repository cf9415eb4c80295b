"""A router among brokers that come and go, where any of them may be away for a while.

Owns what is said when a neighbour comes or goes while all others stay as they are, and what differs
where a source that is not heard of may be back any moment. Must not know who such neighbours are.
Invariant: the others are told only what the one that came or went asks for or says itself; what is
asked of one neighbour depends on no source being known elsewhere; nothing that came is kept from
the broker's own tasks.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.network.routing.advertisement.messages import LOCAL, Advertise, Send
from broker.network.routing.advertisement.operator import Operator
from broker.network.routing.advertisement.sources import without_silent
from broker.network.routing.asking import Asking
from broker.network.routing.covering.covering import Check
from broker.network.routing.covering.covers import Covers
from broker.network.routing.matching.matching import Matcher, Part, plain
from broker.network.routing.matching.strategies import Plan, asked_of_all
from broker.network.routing.router import RoutedOperator, Router


class GrowingRouter(Router):
    """Route among brokers that come and go; a change of the tree itself is `neighbours_changed`."""

    waits = True
    tells: Callable[[str], bool] = staticmethod(lambda _: False)
    """Tells who may be asked with silent keys, and told of them."""

    def led(self, neighbour: str) -> dict[str, dict[str, bool]]:
        """Return the types that are silent for a neighbour, with the directions they are asked for.

        True: they are silent in what that direction asks for, too.
        """
        silent: dict[str, dict[str, bool]] = {}
        for entry in self._all():
            for operator in entry.plan.get(neighbour, {}).values():
                for key in [key for key in operator.keys if key.name in operator.silent]:
                    askers = silent.setdefault(key.type_name, {})
                    is_silent = key.name in entry.operator.silent
                    askers[entry.came_from] = askers.get(entry.came_from, False) or is_silent
        return silent

    def matcher(self, name: str) -> Matcher:
        """Return what is asked for by a neighbour."""
        return self.releases.matchers[name]

    def _parts(self, operator: Operator, came_from: str) -> list[Part]:
        if came_from == LOCAL:
            return [Part(((plain(key), False),)) for key in operator.keys]
        return super()._parts(operator, came_from)

    def _plan(self, entry: RoutedOperator) -> Plan:
        """Also where a key has no source: the only one of it may be away."""
        if entry.covered:
            return {}
        directions = self._directory.directions
        others = [name for name in directions if name not in (entry.came_from, LOCAL)]
        knowing = [name for name in others if self.tells(name)]
        asked = asked_of_all(entry.operator, knowing, self._directory, entry.leads)
        others = [name for name in others if name not in knowing]
        return asked | asked_of_all(without_silent(entry.operator), others, self._directory, ())

    def neighbour_added(self, name: str) -> list[Send]:
        """A neighbour more, behind the others: what it has to be told."""
        if name in self._asking:
            return self.neighbour_reset(name)
        sent, received = self._strategy.sent, self._strategy.received
        self.releases.add(name)
        self._entries[name] = {}
        self._received[name] = Covers(received if sent is Check.NONE else Check.NONE)
        self._asking[name] = Asking(sent)
        self._directory.add(name)
        return [Send(name, Advertise(each)) for each in self._directory.around(name)]

    def neighbour_removed(self, name: str) -> list[Send]:
        """A neighbour less; one that is none changes nothing."""
        if name not in self._asking:
            return []
        out = [send for send in self.neighbour_reset(name) if send.to != name]
        for entry in self._all():
            entry.plan.pop(name, None)
        self.releases.remove(name)
        for known in (self._entries, self._received, self._asking):
            del known[name]
        self._directory.remove(name)
        return out
