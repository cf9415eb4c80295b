"""What is told of sources here, and when: operators go only where a source is known to be.

Owns what others were told of each source, which are new to whom, and which leave. Must not know how
a question is answered. Invariant: operators stand for what is on its way, and what they may not
have been there for is not claimed.

Of a new source whoever asks for it, or its place, alone hears too late for its first event. Such a
host sees a gap instead of a claim, and asks for what is kept. When it has stored something that was
said behind the advertisement, its operators have come before. Of one that leaves, or goes to
another place, the last events may still be on their way, behind what is said of it: as long as a
host that is to be reached has not stored them, others are told what holds of before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from broker.core.networked.local_origin import Fresh
from broker.core.networked.networked import NetworkedBroker
from broker.engine.event.event import Event
from broker.network.frames import frames
from broker.network.neighbours.ways import Ways
from broker.network.operators.heard import judge
from broker.network.routing.advertisement.messages import LOCAL, Send
from broker.network.routing.advertisement.operator import Advertisement, Key
from broker.network.routing.advertisement.sources import joined
from broker.network.routing.growing import GrowingRouter

_END = 2**62
Wants = Callable[[Event], bool]


class SourceDisplay:
    """Keep what others know of sources here; `routed` sends what the router wants sent.

    `leaving` are sources of which less is to be told, behind these positions; `hurries`: hosts are
    to say what they have stored, as one leaves.
    """

    def __init__(
        self,
        network: NetworkedBroker,
        router: GrowingRouter,
        ways: Ways,
        routed: Callable[[Sequence[Send]], None],
        *,
        correlates: bool,
    ) -> None:
        self.leaving: dict[str, int] = {}
        self.hurries = False
        self._network = network
        self._router = router
        self._ways = ways
        self._routed = routed
        self._correlates = correlates
        self._shown: dict[str, int] = {}  # sources, with the position when they were told of last
        self._said: dict[str, Advertisement] = {}  # what others were told of each source
        self._narrow: dict[str, Wants] = {}  # by host: what is asked only where it is known to be

    def show(self, source: str) -> None:
        """Say what a source here is by now, if it has not gone."""
        advertised, known = self._network.origin.advertisement(source), self._said.get(source)
        self.leaving.pop(source, None)
        if known is not None:
            both = known if advertised is None else joined([known, advertised])
            if both != advertised:
                self.leaving[source] = self._network.own.position
                self.hurries = True
            advertised = both
        self._say_of(source, advertised)

    def _say_of(self, source: str, one: Advertisement | None) -> None:
        if one is None:
            self._said.pop(source, None)
            self._routed(self._router.withdrawn(LOCAL, source))
            return
        self._said[source] = one
        sends = self._router.advertised(LOCAL, one)
        if sends:
            self._shown[source] = self._network.own.position
        self._routed(sends)

    def let_leave(self) -> None:
        """Have others ask for no more than what may still come.

        Where events wait for partners, those of a source that has gone come from nowhere from then
        on: first all that it sent has to be where it is needed, also where nobody is to be reached.
        """
        network = self._network
        hosts = network.own.hosts
        if not self._correlates:
            claims = self._ways.claims(network.options.name)
            hosts = {name: hosts[name] for _, one in claims for name in one.hosts if name in hosts}
        least = min([one.position for one in hosts.values()], default=_END)
        for source in [source for source, at in self.leaving.items() if at <= least]:
            del self.leaving[source]
            self._say_of(source, network.origin.advertisement(source))

    def asked(self, one: frames.Reoffer) -> None:
        """Take up what a host asks of this origin."""
        if not one.quiet:
            hosts = self._network.own.hosts  # without terms of cells that are over
            self._narrow = {name: some for name, some in self._narrow.items() if name in hosts}
            self._narrow.pop(one.host, None)
            if one.types:
                self._narrow[one.host] = narrowly(one.keys)

    def forget(self, broker: str) -> None:
        """Forget what a broker has asked."""
        self._narrow.pop(broker, None)

    def lacks(self, fresh: list[Fresh]) -> bool:
        """Tell whether somebody may want some of this who could not ask for it yet."""
        hosts = self._network.own.hosts
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
