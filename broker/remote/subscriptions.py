"""Subscriptions of the whole network: listed, ended and resumed from any broker.

Owns the collecting of lists, and the way of a cancellation to its home. Must not know how brokers
are asked or how a subscription ends there. Invariant: a cancellation names the very subscription
that was listed, by when it was installed, and is confirmed only once the journal of its home holds
it; a home that is another is never asked to end what this broker's rights do not let the asker end.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from broker.core import refusals
from broker.core.catalogue import Installed
from broker.core.messages import CancelRequested, Done
from broker.core.refusals import RefusedError, Trouble, refused, trouble
from broker.remote.desk import CallDesk, Reply, UnansweredError
from broker.remote.question import EndQuestion, key_of, page_of, read_page
from broker.rights.homes import EndRequest, meant, visible
from broker.rights.judge import Principal, RightsJudge

LIST_S: Final = 5.0  # for all pages of one broker
UNREACHED_MAX: Final = 20  # brokers that one refusal names


class Unreached(NamedTuple):
    """A broker that gave no answer, and why."""

    broker: str
    reason: str


class Installation(Protocol):
    """The subscriptions at home here, and who ends them."""

    @property
    def subscriptions(self) -> Sequence[Installed]:
        """Return them in the order of their installation."""


class HomeRunner(Protocol):
    """Has the core handle a message."""

    @property
    def core(self) -> Installation:
        """Return what is installed."""

    async def running(self) -> None:
        """Return when the core may be told anything."""

    def handle(self, message: CancelRequested) -> None:
        """Have a message handled at once."""


class NetworkSubscriptions:
    """The subscriptions of a network, as broker `me` sees them; `listed` returns its own."""

    def __init__(
        self, me: str, runner: HomeRunner, listed: Callable[[], list[dict[str, Any]]]
    ) -> None:
        self._me = me
        self._runner = runner
        self._listed = listed
        self._calls: CallDesk | None = None

    def link(self, calls: CallDesk) -> None:
        """Ask the other brokers from now on, and answer them."""
        self._calls = calls
        calls.answers |= {"list": self._list_page, "end": self._asked_end}

    # --- what is asked here --------------------------------------------------------------------

    async def listing(self, judge: RightsJudge, asker: Principal) -> Reply:
        """List the subscriptions of which `asker` may know, and the brokers that gave no list."""
        if self._calls is None:
            return {"subscriptions": [r for r in self._listed() if visible(judge, asker, r)]}
        rows, silent = await self._rows(self._others())
        return {
            "subscriptions": [row for row in rows if visible(judge, asker, row)],
            "unreached": [row._asdict() for row in silent],
        }

    async def end(
        self, judge: Callable[[], RightsJudge], request: EndRequest, done: Done, home: str = ""
    ) -> Reply:
        """End or resume a subscription by its name, at `home` or wherever its home is.

        `judge` is asked when all lists are there: the rights may have been read again meanwhile.
        """
        asked = self._others() if not home else [] if home == self._me else [home]
        rows, silent = await self._rows(asked)
        try:
            listed = [row for row in rows if not home or row["home"] == home]
            row, client = meant(judge(), request, listed)
        except RefusedError as error:
            unknown = bool(home and silent)  # whether it has such a one
            return _refusal(() if unknown else error.troubles, silent)
        proven = request.asker.user is not None or client != request.client
        names = (row[name] for name in ("subscriber", "subscription", "seq", "since"))
        question = EndQuestion(done, client, proven, *names)
        if row["home"] == self._me:
            reply = await self._end(question)
        else:
            reply = await self._asked_to_end(row["home"], question)
        if self._calls is None or reply.get("ok") is not True:
            return reply
        return reply | {"home": row["home"]}

    async def _asked_to_end(self, home: str, question: EndQuestion) -> Reply:
        assert self._calls is not None
        try:
            return await self._calls.ask(home, "end", **msgspec.structs.asdict(question))
        except UnansweredError as error:
            words = {"home": f"`{home}`", "why": error}
            if not error.was_sent:
                return _refusal([trouble(refusals.UNREACHED, **words)])
            words |= {"name": f"`{question.subscription}`", "done": question.done}
            return _refusal([trouble(refusals.UNCONFIRMED, **words)])

    def _others(self) -> list[str]:
        return [] if self._calls is None else self._calls.others()

    async def _rows(self, brokers: Sequence[str]) -> tuple[list[dict[str, Any]], list[Unreached]]:
        """Return the rows of this broker and of these, and who of them gave none."""
        lists = await asyncio.gather(*[self._rows_of(broker) for broker in brokers])
        rows = [{**row, "home": self._me} for row in self._listed()]
        silent = []
        for broker, listed in zip(brokers, lists, strict=True):
            if isinstance(listed, Unreached):
                silent.append(listed)
            else:
                rows += [{**row, "home": broker} for row in listed]
        return rows, silent

    async def _rows_of(self, broker: str) -> list[dict[str, Any]] | Unreached:
        if self._calls is None or broker not in self._calls.others():
            return Unreached(broker, "no broker of that name is known here")
        rows: list[dict[str, Any]] = []
        try:
            async with asyncio.timeout(LIST_S):
                after = None
                while True:
                    page = read_page(await self._calls.ask(broker, "list", after=after))
                    rows += page.rows
                    if not page.more or not page.rows:
                        return rows
                    after = key_of(page.rows[-1])
        except TimeoutError:
            return Unreached(broker, f"its list did not come in {LIST_S:g} s")
        except UnansweredError as error:
            return Unreached(broker, str(error))
        except msgspec.ValidationError:
            return Unreached(broker, "its list cannot be read")

    # --- what others ask -----------------------------------------------------------------------

    async def _list_page(self, question: Mapping[str, Any]) -> Reply:
        after = msgspec.convert(question.get("after"), tuple[str, str] | None)
        return msgspec.structs.asdict(page_of(self._listed(), after))

    async def _asked_end(self, question: Mapping[str, Any]) -> Reply:
        return await self._end(msgspec.convert(question, EndQuestion))

    async def _end(self, question: EndQuestion) -> Reply:
        """End or resume a subscription at home here; the answer waits for the journal."""
        await self._runner.running()
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        request = question.request(self._runner.core.subscriptions, future)
        if request is None:
            words = {"name": f"`{question.subscription}`", "client": f"`{question.subscriber}`"}
            return _refusal([trouble(refusals.UNKNOWN_SUBSCRIPTION, **words)])
        self._runner.handle(request)
        return msgspec.json.decode(await future, type=Reply)


def _refusal(troubles: Sequence[Trouble], silent: Sequence[Unreached] = ()) -> Reply:
    """Return the refusal, which also names who could not be asked."""
    unreached = [
        trouble(refusals.UNREACHED, home=f"`{row.broker}`", why=row.reason)
        for row in silent[:UNREACHED_MAX]
    ]
    return msgspec.json.decode(refused([*troubles, *unreached]).payload(), type=dict[str, Any])
