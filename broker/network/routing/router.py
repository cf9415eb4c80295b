"""The router of one broker: what its neighbours are asked for and sent (paper 002).

Owns advertisements, operators and events held, per neighbour. Must not know links, clocks, or how
results are made of events. Invariant: over each link goes, once, every event that belongs to a
complete match of an operator that was asked for there, and nothing is asked for that what was
asked before covers.

All calls are pure: what comes in, what has to go out (`Send`) in the order in which it has to go.
Nothing is taken back before what takes its place has been asked for. The router acts on what it
was told in the order in which it was told: a message of a neighbour is handled before the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from broker.network.routing.advertisement.messages import (
    LOCAL,
    Advertise,
    Events,
    LeadEvents,
    Message,
    Send,
    Unwant,
    Want,
    Withdraw,
)
from broker.network.routing.advertisement.operator import Advertisement, Operator
from broker.network.routing.advertisement.sources import SEPARATOR, Directory, simplest
from broker.network.routing.asking import Asking
from broker.network.routing.covering.covering import Check
from broker.network.routing.covering.covers import Covers
from broker.network.routing.leads.rates import RateNews, SourceRates, leads_of
from broker.network.routing.leads.releases import EventReleases
from broker.network.routing.matching.matching import Compile, Part, parts_of
from broker.network.routing.matching.rows import Condition, EventView
from broker.network.routing.matching.strategies import (
    FILTER_SPLIT_FORWARD,
    Plan,
    Strategy,
    plan,
)

HELD_MAX = 200_000  # events, some 100 MB with their places in indexes; a busy minute of a Pi


def no_conditions(text: str) -> Condition:
    """For a router whose keys are all exact."""
    raise ValueError(f"no way to ask whether events meet {text!r}")


class RoutedOperator:
    """An operator and what it makes the broker ask of others; others wait for its `leads`."""

    __slots__ = ("came_from", "covered", "leads", "operator", "plan")

    def __init__(self, operator: Operator, came_from: str) -> None:
        self.operator = operator  # as it was asked for
        self.came_from = came_from  # where its events go
        self.covered = False  # nothing is asked of others on its behalf
        self.leads: tuple[str, ...] = ()  # the keys that go first
        self.plan: Plan = {}  # what was asked of whom for it


class Router:
    """One broker's router. `neighbours` are those of the tree, in the order they are visited in.

    `compile_condition` makes a test of the canonical text of a key that is not exact. At most
    `held_max` events are held: past it the oldest are forgotten early and sent to whoever might
    want them, as is what could be correlated with them; `shed_count` counts those forgotten.
    """

    waits = False  # whether what stays is noted for who asks

    def __init__(
        self,
        neighbours: Sequence[str],
        strategy: Strategy = FILTER_SPLIT_FORWARD,
        compile_condition: Compile = no_conditions,
        *,
        held_max: int = HELD_MAX,
    ) -> None:
        if strategy.central:
            raise ValueError("centralised propagation needs a CentralRouter")
        self._strategy = strategy
        self.releases = EventReleases(strategy, compile_condition, held_max, waits=self.waits)
        self.rates = SourceRates()  # of own sources alone
        self._rate_news = RateNews()
        self._entries: dict[str, dict[str, RoutedOperator]] = {LOCAL: {}}  # by direction, id
        self._received: dict[str, Covers] = {LOCAL: Covers(strategy.received, strategy.sampler)}
        self._asking: dict[str, Asking] = {}  # by neighbour
        self._directory = Directory([LOCAL])  # who is where
        self._link(neighbours)

    # --- what it holds ---------------------------------------------------------------------

    @property
    def neighbours(self) -> list[str]:
        """The neighbours in the order in which they are visited."""
        return list(self._asking)

    @property
    def shed_count(self) -> int:
        """Events that were forgotten early, as there were too many."""
        return self.releases.shed_count

    def operators(self, came_from: str) -> list[tuple[Operator, tuple[str, ...]]]:
        """The operators that came from a neighbour or LOCAL, each with the ids that cover it."""
        covers, entries = self._received[came_from], self._entries[came_from].values()
        return [(each.operator, covers.coverers(each.operator.id)) for each in entries]

    def asked(self, neighbour: str) -> list[tuple[Operator, tuple[str, ...]]]:
        """Return what is wanted of a neighbour; what others cover, by these ids, is not sent."""
        return self._asking[neighbour].wanted()

    def advertisements(self, came_from: str) -> list[Advertisement]:
        """Return what came from a neighbour, or LOCAL, in the order in which it came."""
        return self._directory.of(came_from)

    # --- what comes in ---------------------------------------------------------------------

    def receive(self, came_from: str, message: Message) -> list[Send]:
        """Handle what a neighbour's router gave out for this broker."""
        if isinstance(message, Events):
            return self.events(came_from, message.events)
        if isinstance(message, LeadEvents):
            return self.probes(came_from, message.events)
        if isinstance(message, Want):
            return self.operator_added(came_from, message.operator)
        if isinstance(message, Unwant):
            return self.operator_removed(came_from, message.id)
        if isinstance(message, Advertise):
            return self.advertised(came_from, message.advertisement)
        if isinstance(message, Withdraw):
            return self.withdrawn(came_from, message.source)
        raise TypeError("results go by way of a centre alone")

    def advertised(self, came_from: str, advertisement: Advertisement) -> list[Send]:
        """A source is there, or says something else than before.

        What is told again unchanged changes nothing and goes no further.
        """
        if came_from == LOCAL and self._strategy.leads:
            advertisement = self.rates.rated(advertisement)
        old, moved = self._directory.put(came_from, advertisement)
        if old == advertisement:
            return []
        out = self._directory.news(came_from, old, advertisement)
        if old is not None and replace(old, rates=advertisement.rates) == advertisement:
            out = self._rate_news.sift(out, lambda name: self._entries[name].values())
        self._plan_anew(self._concerned(moved, old, advertisement), out)
        return out

    def withdrawn(self, came_from: str, source: str) -> list[Send]:
        """A source is there no longer; one that is not known changes nothing.

        What waits for its events is then not asked for any more. So say it only when its last event
        can match with none that may still come: δt and the allowed lateness behind it.
        """
        if came_from == LOCAL:
            self.rates.forget(source)
        old, moved = self._directory.drop(came_from, source)
        if old is None:
            return []
        out = self._directory.news(came_from, old, None)
        self._plan_anew(self._concerned(moved, old), out)
        return out

    def operator_added(self, came_from: str, operator: Operator) -> list[Send]:
        """A neighbour, or a subscription of its own at LOCAL, wants something.

        An operator takes the place of an earlier one of its id from there. Events still held that
        it wants are released at once.
        """
        operator = simplest(operator)
        entries = self._entries[came_from]
        entry = entries.get(operator.id)
        if entry is not None and entry.operator == operator:
            return []
        covers = self._received[came_from]
        bare: list[Operator] = []
        if entry is None:
            entry = entries[operator.id] = RoutedOperator(operator, came_from)
            entry.covered = covers.add(operator)
        else:
            entry.operator, entry.leads = operator, ()
            entry.covered, bare = covers.replace(operator)
            if operator.id in self.releases.matchers[came_from]:
                self.releases.matchers[came_from].remove(operator.id)
        out: list[Send] = []
        self._match(entry, out)
        self._uncover(came_from, bare, out)
        self._adopt(entry, self._plan(entry), out)
        return [*out, *self._rate_news.due(came_from, operator, self._directory)]

    def operator_removed(self, came_from: str, name: str) -> list[Send]:
        """Something is wanted no longer; an id that is not known changes nothing."""
        entry = self._entries[came_from].pop(name, None)
        if entry is None:
            return []
        matcher = self.releases.matchers[came_from]
        out: list[Send] = []
        self._uncover(came_from, self._received[came_from].remove(name), out)
        if name in matcher:
            matcher.remove(name)
        self._adopt(entry, {}, out)
        return out

    def events(self, came_from: str, events: Iterable[EventView]) -> list[Send]:
        """Events that came from a neighbour or entered here (LOCAL).

        Repeats fall by type, id, end and source, as long as the first is held.

        Each goes once to every other direction in which it completes, or is completed by, what is
        wanted there; so what was held back before may go with it.
        """
        if came_from == LOCAL and self._strategy.leads:
            events = list(events)
            self.rates.count(events)
        return self.releases.events(came_from, events)

    def probes(self, came_from: str, events: Iterable[EventView]) -> list[Send]:
        """Events that a neighbour tells of: what waits for them goes, and others are told."""
        return self.releases.probes(came_from, events)

    def look_at_rates(self, now: int) -> list[Send]:
        """Say how often sources here send, and have what comes often wait for what is rare.

        `now` is in milliseconds, of any clock.
        """
        out: list[Send] = []
        if not self._strategy.leads:
            return out
        directory = self._directory
        sources = [each.source for name in directory.directions for each in directory.of(name)]
        own = {each.source: each for each in directory.of(LOCAL)}
        for source in self.rates.look(sources, now):
            if source in own:
                out += self.advertised(LOCAL, own[source])
        for entry in self._all():
            if not entry.covered:
                leads = leads_of(entry.operator, entry.leads, self.rates, directory)
                changes, entry.leads = leads != entry.leads, leads
                if changes:
                    self._adopt(entry, self._plan(entry), out)
        return out

    def expire(self, before_ms: int) -> None:
        """Forget events that began before: no event that comes from now on can match with them.

        That is so for what lies by more than the largest δt behind the earliest event that may
        still come, with the allowed lateness.
        """
        self.releases.expire(before_ms)

    def neighbours_changed(self, neighbours: Sequence[str]) -> list[Send]:
        """The tree is another one: forget what neighbours said and tell these everything anew.

        Its own sources and subscriptions stay, and the events held. Operators go out as
        advertisements come in.
        """
        self._link(neighbours)
        out = [
            Send(name, Advertise(each))
            for name in self._asking
            for each in self._directory.of(LOCAL)
        ]
        self._plan_anew(None, out)
        return out

    def neighbour_reset(self, neighbour: str) -> list[Send]:
        """A neighbour has forgotten everything: forget it too, and tell it everything anew.

        What others were asked for on its behalf is taken back; it asks anew if it wants. One that
        is no neighbour changes nothing.
        """
        if neighbour not in self._asking:
            return []
        out: list[Send] = []
        for name in list(self._entries[neighbour]):
            out += self.operator_removed(neighbour, name)
        for advertisement in self._directory.of(neighbour):
            out += self.withdrawn(neighbour, advertisement.source)
        out = [send for send in out if send.to != neighbour]
        self.releases.reset(neighbour)
        self._rate_news.forget(neighbour)
        self._asking[neighbour] = Asking(self._strategy.sent, self._strategy.sampler)
        out += [Send(neighbour, Advertise(each)) for each in self._directory.around(neighbour)]
        for entry in self._all():
            entry.plan.pop(neighbour, None)
        self._plan_anew(None, out)
        return out

    # --- how ---------------------------------------------------------------------------------

    def _link(self, neighbours: Sequence[str]) -> None:
        names = [name for name in dict.fromkeys(neighbours) if name != LOCAL]
        self.releases.link(names)
        strategy = self._strategy
        # What is never sent covered need not be compared again where it arrives.
        received = strategy.received if strategy.sent is Check.NONE else Check.NONE
        self._entries = {LOCAL: self._entries[LOCAL], **{name: {} for name in names}}
        self._received = {
            LOCAL: self._received[LOCAL],
            **{name: Covers(received, strategy.sampler) for name in names},
        }
        self._asking = {name: Asking(strategy.sent, strategy.sampler) for name in names}
        own = self._directory.of(LOCAL)
        self._directory = Directory([LOCAL, *names])
        for advertisement in own:
            self._directory.put(LOCAL, advertisement)
        self._rate_news = RateNews()
        for entry in self._all():
            entry.plan = {}

    def _all(self) -> list[RoutedOperator]:
        return [entry for some in self._entries.values() for entry in some.values()]

    def _plan(self, entry: RoutedOperator) -> Plan:
        if entry.covered:
            return {}
        operator, came_from = entry.operator, entry.came_from
        return plan(self._strategy, operator, came_from, self._directory, entry.leads)

    def _parts(self, operator: Operator, _came_from: str) -> list[Part]:
        return parts_of(operator)

    def _concerned(self, moved: set[str] | None, *said: Advertisement | None) -> set[str] | None:
        """The types whose operators may have to be asked for otherwise; None: all."""
        if not self._strategy.clip:
            return moved
        kinds = [each.types for each in said if each is not None]
        return {name for some in kinds for name in some} if all(kinds) else None

    def _plan_anew(self, types: set[str] | None, out: list[Send]) -> None:
        """Ask what must be asked now that sources of these types have changed; None: of any."""
        if types is not None and not types:
            return
        for entry in self._all():
            keys = entry.operator.keys
            if entry.covered or (types is not None and not any(k.type_name in types for k in keys)):
                continue
            if self._strategy.rings and entry.came_from != LOCAL:
                self.releases.matchers[entry.came_from].remove(entry.operator.id)
                self._match(entry, out)
            self._adopt(entry, self._plan(entry), out)

    def _match(self, entry: RoutedOperator, out: list[Send]) -> None:
        """Match an operator from now on, if its events are not a part of what others' are."""
        name = entry.came_from
        if entry.covered and not self._strategy.each and name != LOCAL:
            return
        parts_wanted = self._parts(entry.operator, name)
        self.releases.match(name, entry.operator, parts_wanted, out)

    def _uncover(self, came_from: str, bare: list[Operator], out: list[Send]) -> None:
        """Ask for what is not covered any more."""
        for operator in bare:
            entry = self._entries[came_from][operator.id]
            entry.covered = False
            if operator.id not in self.releases.matchers[came_from]:
                self._match(entry, out)
            self._adopt(entry, self._plan(entry), out)

    def _adopt(self, entry: RoutedOperator, wanted: Plan, out: list[Send]) -> None:
        """Ask for what is newly wanted on behalf of an operator, then take back what is not."""
        owner = (entry.came_from, entry.operator.id)
        old, entry.plan = entry.plan, wanted
        label = SEPARATOR.join(owner)
        for name, some in wanted.items():
            for operator in some.values():
                asks_anew = old.get(name, {}).get(operator.id) != operator
                out.extend(Send(name, one) for one in self._asking[name].want(owner, operator))
                if asks_anew:  # a probe that comes before what waits for it may be forgotten
                    self.releases.probing.release(name, label, operator.id)
                    out += self.releases.probing.ask(name, label, operator)
        for name, some in old.items():
            for gone in some:
                if gone not in wanted.get(name, {}):
                    self.releases.probing.release(name, label, gone)
                    out.extend(Send(name, one) for one in self._asking[name].release(owner, gone))
