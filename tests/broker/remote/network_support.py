"""Brokers that ask each other in one process, of what each has at home and in copies.

Owns the calls between them. Must not know links: a broker that is away is one to which no way
leads. Invariant: what a broker is asked it answers by its own desk.
"""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace

import msgspec

from broker.core.catalogue import Installed
from broker.core.messages import CancelRequested
from broker.core.standby.copies_kept import CopiesKept
from broker.core.standby.home_copy import GivenState, HomeState, InstalledRow, encoded
from broker.network.delivery.messages import HomeEntrusted
from broker.network.delivery.succession import SuccessionLog
from broker.network.overlay.calls import CallArrived, CallSent
from broker.network.placement.book import CellBook
from broker.remote.desk import CallDesk
from broker.remote.home_copies import HomeCopies
from broker.remote.question import row_of
from broker.remote.subscriptions import NetworkSubscriptions


def installed(name: str, subscriber: str = "anna", seq: int = 1) -> Installed:
    return Installed(subscriber, name, seq, "log", "task", subscriber, (), "d", 1_000)


def state_of(home: str, rows: Sequence[Installed]) -> bytes:
    """Return a home's state, as its stand-in gets it."""
    numbered = [InstalledRow(1, row) for row in rows]
    return encoded(HomeState([], numbered, CellBook(home).state(), 0, [], GivenState()))


class Neighbour:
    """One broker of `network`; what it has at home is `here`."""

    def __init__(self, network: "CallNetwork", name: str, here: Sequence[Installed]) -> None:
        self.name = name
        self.here = list(here)
        self.kept = CopiesKept()
        self.successions = SuccessionLog()
        self.core = SimpleNamespace(subscriptions=self.here)
        reach = SimpleNamespace(reaches=network.leads_to, leads=network.leads_to)
        self.calls = CallDesk(name, 1, reach, network.carry, lambda: list(network.brokers))
        self.copies = HomeCopies(name, self.calls, self.kept, self.successions)
        self.subscriptions = NetworkSubscriptions(
            name, self, lambda: [row_of(row) for row in self.here]
        )
        self.subscriptions.link(self.calls, self.copies)

    def keep(self, home: str, rows: Sequence[Installed], run: int = 5, number: int = 3) -> None:
        """Have a copy of a home."""
        self.kept.entrusted(HomeEntrusted(home, run, number, state_of(home, rows)))

    async def running(self) -> None:
        """Be told anything at once, as `HomeRunner` has it."""

    def handle(self, message: CancelRequested) -> None:
        """Cancel what is here, and say so."""
        self.here[:] = [row for row in self.here if row.name != message.name]
        answer = {"ok": True, "subscriptions": [message.name]}
        message.reply_to.set_result(msgspec.json.encode(answer))


class CallNetwork:
    """Brokers by name, each with what is at home there; `away` are those that cannot be asked."""

    def __init__(self, **homes: Sequence[Installed]) -> None:
        self.away: list[str] = []
        self.asked: list[tuple[str, str]] = []
        self.brokers: dict[str, Neighbour] = {}
        for name, here in homes.items():
            self.brokers[name] = Neighbour(self, name, here)

    def leads_to(self, broker: str) -> bool:
        """Return if a broker can be asked."""
        return broker not in self.away

    def carry(self, message: CallSent) -> None:
        """Bring a call to its broker soon."""
        call = message.call
        if not call.is_reply:
            self.asked.append((call.to, msgspec.json.decode(call.body)["verb"]))
        receive = self.brokers[call.to].calls.receive
        asyncio.get_running_loop().call_soon(receive, CallArrived(call))
