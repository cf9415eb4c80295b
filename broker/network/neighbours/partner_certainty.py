"""Certainty toward each neighbour that a partner that has not come here is not there.

Owns what follows for neighbours from what sessions, ways, operators and answers do to `Certainty`,
and when hosts are to ask anew. Must not know events, claims or the broker that it is a part of.
Invariant: whatever happens that `certainty` names as a reason to be uncertain is told it before
anything else is kept back; what waits then travels.

    unsure --all who may send partners have answered all hosts beyond--> sure
    sure --a way, a source is another; something was lost; a host waits in vain--> unsure
    sure --one more operator--> sure, but for what that one asks for --answered--> sure
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple, Protocol, cast

from msgspec import Struct, field
from msgspec.structs import replace

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Event
from broker.network.frames import frames
from broker.network.neighbours.certainty import Certainty
from broker.network.neighbours.ways import Ways
from broker.network.operators.heard import judge
from broker.network.placement.cell_view import is_cell
from broker.network.routing.advertisement import messages as routing
from broker.network.routing.advertisement.messages import LOCAL
from broker.network.routing.advertisement.operator import Key, Operator
from broker.network.routing.matching.matching import Joined, Waiting

Wants = Callable[[Event], bool]
Unknown = Callable[[Waiting], bool]

ASK_MS = 1_000  # hosts are asked to ask again, if that could make something certain, …
ASK_MS_MAX = 64_000  # … each time twice as late as before


class LetsTravel(Protocol):
    """Has events travel that wait for partners."""

    def send_unsure(self) -> None:
        """Let all travel that waits before neighbours toward whom nothing is sure any more."""

    def send_wanted(self, toward: str, wanted: Unknown) -> None:
        """Let travel what of that which waits before a neighbour is wanted there now."""

    def ask_less(self, toward: str) -> None:
        """Note that a neighbour takes operators back."""

    def let_go(self, now: int) -> None:
        """Let go of what can find no partner any more."""


class CertaintyTools(NamedTuple):
    """Parts of a broker that `PartnerCertainty` uses.

    `standing` returns the neighbours with whom a session stands, `types` what sources here send,
    `joined` what a neighbour asks for only with partners, `operators` all that it asks for, each
    with what covers it; nothing is kept back from those `inside`. `ask_quietly` has this broker
    itself ask an origin, `withheld` returns what waits for partners.
    """

    me: str
    ways: Ways  # which way origins are
    standing: Callable[[], Iterable[str]]  # neighbours with a session
    inside: Collection[str]
    types: Callable[[], tuple[str, ...]]  # of own sources
    joined: Callable[[str], Joined]  # what a neighbour wants together
    operators: Callable[[str], Iterable[tuple[Operator, object]]]  # all that a neighbour wants
    say: Callable[[str, frames.Doubted], object]
    ask_quietly: Callable[[str], None]
    withheld: Callable[[], LetsTravel]
    asked_silent: Callable[[str], None]  # a neighbour tells of what it does not ask for


class _Fresh(Struct):
    """Hold the operators of a neighbour that nothing is certain of yet: what they ask for."""

    wants: list[Wants] = field(default_factory=list)  # what a neighbour added
    types: dict[str, None] = field(default_factory=dict)  # of partners among it

    def add(self, keys: Iterable[Key], wants: Wants) -> None:
        """Take one more."""
        self.wants.append(wants)
        self.types |= _types_of(keys)

    def want(self, event: Event) -> bool:
        """Tell whether one of them asks for an event."""
        return any(wants(event) for wants in self.wants)


class PartnerCertainty:
    """Keep what is certain toward each neighbour; where not `correlates` nothing ever is."""

    def __init__(self, tools: CertaintyTools, *, correlates: bool) -> None:
        self.changes = 0  # how often something may have become certain, or no more so
        self.asks_at: int | None = None  # when hosts are to be asked to ask again
        self._tools = tools
        self._correlates = correlates
        self._certainty = Certainty()  # what hosts and origins said
        self._bounds: dict[str, int | None] = {}  # by neighbour, until something changes
        self._joined: dict[str, Joined] = {}  # likewise
        self._fresh: dict[str, _Fresh] = {}  # by neighbour: not yet settled
        self._ask_ms = ASK_MS  # grows while nobody answers

    # --- what is certain -------------------------------------------------------------------

    def bound(self, toward: str) -> int | None:
        """Return behind which end partners of an event are heard of here; None: nothing is sure."""
        if toward not in self._bounds:
            self._bounds[toward] = self._certain_after(toward)
        return self._bounds[toward]

    def bound_of(self, toward: str, waiting: Waiting) -> int | None:
        """Return the same for an event: as its neighbour's operators that ask for it have it."""
        fresh, bound = self._fresh.get(toward), self.bound(toward)
        if fresh is None or bound is None:
            return bound
        after = self._fresh_after(toward, fresh)
        if after is not None and waiting.held.end - waiting.delta_t_ms >= after:
            # Events have come as far: there is nothing left that tells these from the others.
            del self._fresh[toward]
            self._certainty.settle(toward)
            self._bounds.pop(toward, None)
            return self.bound(toward)
        if not fresh.want(cast("Event", waiting.held.event)):
            return bound
        return None if after is None else max(bound, after)

    def is_sure(self, toward: str) -> bool:
        """Return if anything may be kept back from a neighbour, whatever it asks for."""
        fresh = self._fresh.get(toward)
        if self.bound(toward) is None:
            return False
        return fresh is None or self._fresh_after(toward, fresh) is not None

    def _fresh_after(self, toward: str, fresh: _Fresh) -> int | None:
        return self._certainty.fresh_after(toward, fresh.types, self.origins(toward))

    def _certain_after(self, toward: str) -> int | None:
        if not self._correlates or toward == LOCAL or toward in self._tools.inside:
            return None
        return self._after(toward)

    def _after(self, toward: str) -> int | None:
        reachable = {self._tools.me: None, **self._tools.ways.via}
        types, origins = self.joined(toward).types, self.origins(toward)
        return self._certainty.certain_after(toward, types, origins, reachable)

    def joined(self, toward: str) -> Joined:
        """Return what a neighbour's operators join."""
        if toward not in self._joined:
            self._joined[toward] = self._tools.joined(toward)
        return self._joined[toward]

    def origins(self, toward: str) -> dict[str, tuple[str, ...]]:
        """Return the origins that are not beyond a neighbour, with their types."""
        tools, ways = self._tools, self._tools.ways
        others = {name: ways.types[name] for name, via in ways.via.items() if via != toward}
        return {tools.me: tools.types(), **others}

    def doubt(self) -> None:
        """Take in that something has changed."""
        self.changes += 1
        self._bounds.clear()
        self._tools.withheld().send_unsure()

    # --- what happens ----------------------------------------------------------------------

    def operators_changed(self) -> None:
        """Take in that a neighbour may be asking for something else."""
        self._joined.clear()

    def wants(self, peer: str, message: routing.Message) -> None:
        """Take in what a neighbour's router says, before this one's hears it."""
        if isinstance(message, routing.Want) and message.operator.silent:
            self._tools.asked_silent(peer)
        if isinstance(message, routing.Want) and message.operator.correlated:
            self._joins(peer, message.operator, covered=message.covered)
        # One that is wanted may take the place of another of its id.
        self._tools.withheld().ask_less(peer)

    def _joins(self, peer: str, operator: Operator, *, covered: bool) -> None:
        """Take in that a neighbour asks for something else; it is `covered` by what it asked for.

        What waits that this asks for travels: partners may have passed that nobody has looked for.
        """
        fresh, wants = self._fresh.get(peer), _wants(operator)
        if covered:
            if fresh is not None:
                fresh.add(operator.keys, wants)  # what covers it may be one of these
            return
        # What waits already does not wait for what is told.
        since = None if operator.silent else self._known_since(peer, operator)
        certainty = self._certainty
        if self._certain_after(peer) is None:
            self._fresh.pop(peer, None)
            if self.joined(peer).types:  # with what it asked for before
                since = _later(certainty.since(peer), since)
            certainty.changed(peer, since=since)
            self.doubt()
            return
        if fresh is not None and self._fresh_after(peer, fresh) is not None:
            certainty.settle(peer)
            fresh = None
        if fresh is None:
            fresh = self._fresh[peer] = _Fresh()
        else:
            since = _later(certainty.since(peer, settled=True), since)
        fresh.add(operator.keys, wants)
        certainty.changed(peer, settled=True, since=since)
        self.doubt()
        self._tools.withheld().send_wanted(peer, _unknown(operator, wants, since))

    def _known_since(self, peer: str, operator: Operator) -> int | None:
        """Return since when all partners that an operator of a neighbour asks for come here anyhow.

        Somebody in another direction asks for the same with the same keys, and maybe others, whose
        sources are beyond that neighbour then: so each other neighbour is asked for nothing more.
        """
        tools = self._tools
        sure = [
            self.sure_since(other)
            for other in dict.fromkeys([*tools.standing(), *tools.inside])
            if other != peer and any(_asks(each, operator) for each, _ in tools.operators(other))
        ]
        return min([since for since in sure if since is not None], default=None)

    def sure_since(self, other: str) -> int | None:
        """Return behind which end all partners of what another asks for are heard of here."""
        if not self._correlates:
            return None
        since = self._after(other)
        fresh = self._fresh.get(other)
        return since if fresh is None else _later(since, self._fresh_after(other, fresh))

    def look_again(self, now: int) -> None:
        """Look anew what is certain when that is asked next; and have hosts ask, if that helps."""
        self.changes += 1
        self._bounds.clear()
        if self._correlates and self.asks_at is None:
            self.asks_at, self._ask_ms = now + ASK_MS, ASK_MS

    def left(self, peer: str) -> None:
        """Take in that the session with a neighbour has ended."""
        self._fresh.pop(peer, None)
        self._certainty.left(peer)

    def here(self, origin: str) -> None:
        """Take in that there is a way to an origin, before it is taken."""
        self._certainty.here(origin)
        if not is_cell(origin):  # a cell sends nothing
            self._certainty.distrust()

    def gone(self, origin: str) -> None:
        """Take in that there is no way to an origin any more, before that is forgotten."""
        ways = self._tools.ways
        types = () if is_cell(origin) else ways.types.get(origin, ())
        claims = ways.claims(origin)
        hosts = [(toward, claim.hosts) for toward, claim in claims if toward != LOCAL]
        self._certainty.gone(origin, types, hosts)

    def forget(self, broker: str) -> None:
        """Take in that nobody waits for a broker any more."""
        self._certainty.forget(broker)
        self._tools.ways.promises.forget(broker)
        self.doubt()

    def missed(self, origin: str) -> None:
        """Take in that something of an origin did not come here."""
        self._certainty.missed(origin)
        self.doubt()

    # --- questions and answers -------------------------------------------------------------

    def asked(self, peer: str, question: frames.Reoffer) -> None:
        """Take in that a host beyond a neighbour asks an origin."""
        tools = self._tools
        reachable = question.origin == tools.me or question.origin in tools.ways.via
        self._certainty.asked(peer, question, reachable=reachable)
        self.doubt()

    def passes(self, came_from: str, answer: frames.Offered, now: int) -> None:
        """Take in an answer to a host that is neither here nor where it came from."""
        via = self._tools.ways.via.get(answer.host)
        if answer.host != self._tools.me and via is not None and via != came_from:
            self.answered(via, answer, now)

    def answered(self, peer: str, answer: frames.Offered, now: int) -> None:
        """Take in that an origin answers a host beyond a neighbour."""
        self._certainty.answers(peer, answer)
        what, ways = answer.what, self._tools.ways
        if what.origin != self._tools.me and what.origin in ways.came:
            came = ways.came[what.origin]
            came.life = what.life
            for name, time in what.watermarks.items():
                if time != WATERMARK_NONE:
                    came.watermarks[name] = time
                else:
                    # The host waits for the type from now on, so its events may wait here: else all
                    # of the first minute would travel, until progress is due.
                    came.watermarks.setdefault(name, time)
        self.look_again(now)
        self.bound(peer)  # what is certain now stays so whoever asks next

    def doubted(self, peer: str, doubted: frames.Doubted) -> None:
        """Have hosts ask quietly, as a broker nearer to the origin is not sure."""
        if self._tools.ways.via.get(doubted.origin) == peer:
            for toward, _ in self._tools.ways.claims(doubted.origin):
                if toward == LOCAL:
                    self._tools.ask_quietly(doubted.origin)
                else:
                    self._tools.say(toward, doubted)

    def ask_for_questions(self, now: int) -> None:
        """Have hosts ask where a neighbour's operators join events and nothing is certain.

        Who asks anew says whom it waits for, and the answers say how far they have come.
        """
        tools = self._tools
        if self.asks_at is None or self.asks_at > now:
            return
        self.asks_at = None
        tools.withheld().let_go(now)
        for peer in tools.standing():
            if peer in tools.inside or not self.joined(peer).types:
                continue
            self._bounds.pop(peer, None)
            if self.is_sure(peer):
                continue
            self.asks_at = now + self._ask_ms
            if self._certainty.may_ask(peer, [tools.me, *tools.ways.via]):
                for origin, _ in tools.ways.toward(peer):
                    tools.say(peer, frames.Doubted(origin))
        self._ask_ms = min(2 * self._ask_ms, ASK_MS_MAX)  # as questions are not free


def _asks(other: Operator, operator: Operator) -> bool:
    """Tell whether an operator asks for all of another's keys, and joins them as that one does."""
    as_other = replace(operator, id=other.id, keys=other.keys)
    return as_other == other and set(operator.keys) <= set(other.keys)


def _later(one: int | None, other: int | None) -> int | None:
    """Return since when both hold; None: one of them never did."""
    return None if one is None or other is None else max(one, other)


def _unknown(operator: Operator, wants: Wants, since: int | None) -> Unknown:
    """Return a test of what waits: whether it may have a partner that nobody has looked for."""

    def test(waiting: Waiting) -> bool:
        if not wants(cast("Event", waiting.held.event)):
            return False
        apart_ms = max(waiting.delta_t_ms, operator.delta_t_ms or 0)
        return since is None or waiting.held.end - apart_ms < since

    return test


def _wants(operator: Operator) -> Wants:
    """Return a test of events: whether an operator asks for one, with whatever partners."""
    types, wanted = _types_of(operator.keys), judge(operator.keys)
    return lambda event: event.event_type in types and wanted(event)


def _types_of(keys: Iterable[Key]) -> dict[str, None]:
    return dict.fromkeys([key.type_name for key in keys])
