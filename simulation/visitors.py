"""Clients who come, submit, change their mind and go, and those who ask for what they may not.

Owns who asks for what and when, and what each is to be told. Must not know what a subscription
finds. Invariant: each request is answered as it must be, or the run ends there; no request
disturbs another client's subscriptions.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from broker.core.messages import CancelRequested, RequestRefused, SpecificationSubmitted
from broker.core.refusals import NOT_TEXT
from simulation import texts
from simulation.account import ArrivalAccount, CheckFailedError
from simulation.site import SimulatedBroker
from simulation.world import World

STAYS = "anna"
FAULTY = (
    "subscription",
    "detect",
    texts.DECLARATIONS + "subscription X from a to b detect Nothing",
    texts.DECLARATIONS + "define X(v) detect X assign v = X.v\nsubscription Y from a to b detect X",
    texts.DECLARATIONS + 'subscription X from a to b detect Temp(val = "warm")',
    'event Temp(val: text)\nsubscription X from a to b detect Temp(val = "warm")',  # it is a float
)


class Visit(Struct):
    """One version of a subscription: installed in a step, and gone in another, if it is."""

    client: str
    name: str
    seq: int
    from_step: int
    to_step: int | None = None
    gone_at: int | None = None


class Visitors:
    """All requests of a run."""

    def __init__(self, world: World, broker: SimulatedBroker, account: ArrivalAccount) -> None:
        self.visits: list[Visit] = []
        self._world = world
        self._broker = broker
        self._account = account
        self._requests = 0

    def submit(self, client: str, text: str, *, good: bool) -> None:
        """Submit a text that must be taken, or refused."""
        request = self._next()
        checked = texts.checked(text)
        token = self._account.token()
        self._broker.tell(
            SpecificationSubmitted(client, request, text, request, token, checked=checked)
        )
        self._demand(request, good=good, what=text)

    def cancel(self, client: str, name: str, *, good: bool) -> None:
        """Cancel what must be there, or not."""
        request = self._next()
        token = self._account.token()
        self._broker.tell(CancelRequested(client, request, name, request, token))
        self._demand(request, good=good, what=f"cancelling {name}")

    def unreadable(self, client: str) -> None:
        """Send a request that is refused before it is read."""
        request = self._next()
        token = self._account.token()
        self._broker.tell(RequestRefused(client, request, NOT_TEXT, request, token))
        self._demand(request, good=False, what="a request that is no text")

    def plan_visits(self, begin_ms: int, end_ms: int, stays: str) -> None:
        """Plan all that these clients do; `stays` is the text of those who stay."""
        draw = self._world.random
        for number in range(draw.randint(0, 3)):
            self._plan_visit(f"client-{number}", draw.randint(begin_ms, end_ms))
        others: tuple[Callable[[], None], ...] = (
            lambda: self.submit("bob", stays, good=True),  # again: nothing changes
            lambda: self.submit(STAYS, stays, good=True),
            lambda: self.cancel("bob", "Nobody's", good=False),
            lambda: self.unreadable("fool"),
        )
        for other in others:
            self._world.at(draw.randint(begin_ms, end_ms), other)
        faulty = draw.choice(FAULTY)
        self._world.at(
            draw.randint(begin_ms, end_ms), lambda: self.submit("fool", faulty, good=False)
        )

    def _plan_visit(self, client: str, begin_ms: int) -> None:
        """Come with one subscription; perhaps replace it, ask for nonsense, and go."""
        draw = self._world.random
        name = draw.choice(list(texts.SUBSCRIPTIONS))
        schedule = self._world.at
        schedule(begin_ms, lambda: self._come(client, name, 1))
        if draw.random() < 0.5:
            schedule(begin_ms + 2_000, lambda: self._come_too_low(client, name))
        if draw.random() < 0.5:
            schedule(begin_ms + 5_000, lambda: self._come(client, name, 2))
        if draw.random() < 0.7:
            schedule(begin_ms + 10_000, lambda: self._go(client, name))
            if draw.random() < 0.5:
                schedule(begin_ms + 12_000, lambda: self.cancel(client, name, good=False))

    def _come(self, client: str, name: str, seq: int) -> None:
        self._end(client, name)
        self.submit(client, texts.text_of([name], client, seq), good=True)
        self.visits.append(Visit(client, name, seq, self._account.step))

    def _come_too_low(self, client: str, name: str) -> None:
        """Another text of a number that is there is refused, and what is there stays."""
        text = texts.text_of([name], client, 1).replace(" to alerts", " to others")
        self.submit(client, text, good=False)

    def _go(self, client: str, name: str) -> None:
        self.cancel(client, name, good=True)
        self._end(client, name)

    def _end(self, client: str, name: str) -> None:
        for visit in self.visits:
            if (visit.client, visit.name, visit.to_step) == (client, name, None):
                visit.to_step = self._account.step
                visit.gone_at = self._world.now

    def _next(self) -> str:
        self._requests += 1
        self._account.next_step()
        return f"request {self._requests}"

    def _demand(self, request: str, *, good: bool, what: str) -> None:
        reply = self._broker.replies[request]
        if reply["ok"] is not good:
            raise CheckFailedError(f"the answer was {reply} to {what}")
