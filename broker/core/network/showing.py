"""Sources that others have just heard of: whoever asks for them alone may not have been asked yet.

Owns which sources here are new to whom. Must not know how a question is answered. Invariant: no
frame claims an event of such a source as passed to a host that may want it, before that host's
operators can lead to it; it sees a gap instead, and asks for what is kept.

An operator that names a source, a place or a region leads only to where such a source is known. A
host that has stored something said behind the advertisement has said its operators before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from broker.core.event import Event
from broker.core.network import frames
from broker.core.network.networked import Fresh
from broker.core.network.relaying import Relaying
from broker.core.operators.heard import judge
from broker.core.routing.messages import LOCAL
from broker.core.routing.operator import Advertisement, Key

Wants = Callable[[Event], bool]


class Showing(Relaying):
    """See the module."""

    def _begin_relaying(self) -> None:
        super()._begin_relaying()
        self._shown: dict[str, int] = {}  # sources, with the position when they were told of last
        self._narrow: dict[str, Wants] = {}  # by host: what is asked only where it is known to be

    def _advertise(self) -> None:
        """Say what sources here have come, gone or changed."""

    def _show(self, one: Advertisement) -> None:
        """Tell others of a source here."""
        sends = self.router.advertised(LOCAL, one)
        if sends:
            self._shown[one.source] = self.durable.network.own.position
        self._routed(sends)

    def _asked_of(self, peer: str, one: frames.Reoffer) -> None:
        super()._asked_of(peer, one)
        if one.origin == self.me and not one.quiet:
            self._narrow.pop(one.host, None)
            if one.types:
                self._narrow[one.host] = narrowly(one.keys)

    def _forget(self, broker: str) -> None:
        super()._forget(broker)
        self._narrow.pop(broker, None)

    def _spread_own(self, fresh: list[Fresh]) -> None:
        if self.durable.network.sources_changed:
            self._advertise()  # ahead of what they send
        super()._spread_own(fresh)

    def _lacking(self, fresh: list[Fresh]) -> bool:
        """Whether somebody may want some of this who could not ask for it yet."""
        hosts = self.durable.network.own.hosts
        least = min([one.position for one in hosts.values()], default=0)
        for source in [source for source, at in self._shown.items() if at < least or not hosts]:
            del self._shown[source]
        if not self._shown:
            return False
        for event in (event for one in fresh for event in one.events):
            at = self._shown.get(event.source or "")
            if at is not None:
                for name, host in hosts.items():
                    wants = self._narrow.get(name) if host.position <= at else None
                    if wants is not None and event.event_type in host.types and wants(event):
                        return True
        return False


def narrowly(keys: Sequence[Key] | None) -> Wants:
    """Which events a host wants by such keys alone as need not lead to where the type is sent."""
    if keys is None:
        return lambda _: True
    narrow = [one for one in keys if _is_narrow(one)]
    wide = [one for one in keys if not _is_narrow(one)]
    known, anyhow = {one.type_name for one in narrow}, {one.type_name for one in wide}
    by_narrow, by_wide = judge(narrow), judge(wide)

    def wanted(event: Event) -> bool:
        name = event.event_type
        return name in known and by_narrow(event) and not (name in anyhow and by_wide(event))

    return wanted


def _is_narrow(key: Key) -> bool:
    return key.source is not None or key.location is not None or key.region is not None
