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
from broker.remote.home_copies import HomeCopies
from broker.remote.question import EndQuestion, key_of, page_of, read_page
from broker.rights.homes import EndRequest, meant, visible
from broker.rights.judge import Principal, RightsJudge

LIST_S: Final = 5.0  # for all pages of one broker
UNREACHED_MAX: Final = 20  # brokers that one refusal names


class Unreached(NamedTuple):
    """A broker that gave no answer, and why."""

    broker: str
    reason: str
    stand_in: str = ""  # which has a copy of it
    taken_over_by: str = ""

    def row(self) -> dict[str, str]:
        """Return it for people."""
        return {name: value for name, value in self._asdict().items() if value}


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
        self._copies: HomeCopies | None = None

    def link(self, calls: CallDesk, copies: HomeCopies) -> None:
        """Ask the other brokers from now on, and answer them."""
        self._calls, self._copies = calls, copies
        answers = {"list": self._list_page, "copied": self._copied_page, "end": self._asked_end}
        calls.answers |= answers

    # --- what is asked here --------------------------------------------------------------------

    async def listing(self, judge: RightsJudge, asker: Principal) -> Reply:
        """List the subscriptions of which `asker` may know, and the brokers that gave no list.

        Of such a broker its stand-in lists the copy that it has, each row marked as `away`.
        """
        if self._calls is None:
            return {"subscriptions": [r for r in self._listed() if visible(judge, asker, r)]}
        rows, silent = await self._rows(self._others())
        silent = await self._remarked(silent)
        # What a copy of before a take-over lists, and its heir as well, is at home there.
        listed = {_generation(row) for row in rows}
        rows += [row for row in await self._copied(silent) if _generation(row) not in listed]
        return {
            "subscriptions": [row for row in rows if visible(judge, asker, row)],
            "unreached": [row.row() for row in silent],
        }

    async def end(
        self, judge: Callable[[], RightsJudge], request: EndRequest, done: Done, home: str = ""
    ) -> Reply:
        """End or resume a subscription by its name, at `home` or wherever its home is.

        `judge` is asked when all lists are there: the rights may have been read again meanwhile.
        """
        asked = self._others() if not home else [] if home == self._me else [home]
        rows, silent = await self._rows(asked)
        listed = [row for row in rows if not home or row["home"] == home]
        try:
            row, client = meant(judge(), request, listed)
        except RefusedError as error:
            unknown = bool(home and silent)  # whether it has such a one
            silent = await self._remarked(silent)
            return _refusal(() if unknown else error.troubles, silent)
        proven = request.asker.user is not None or client != request.client
        question = EndQuestion(done, client, proven, *_generation(row))
        reply = await self._end_at(row["home"], question)
        if _code_of(reply) == refusals.UNKNOWN_SUBSCRIPTION and not home:
            # Another broker may have taken the home over since it was listed there.
            rows, _ = await self._rows(asked)
            heirs = [other["home"] for other in rows if _generation(other) == _generation(row)]
            if heirs:
                reply = await self._end_at(heirs[0], question)
        return reply

    async def _end_at(self, home: str, question: EndQuestion) -> Reply:
        if home == self._me:
            reply = await self._end(question)
        else:
            reply = await self._asked_to_end(home, question)
        if self._calls is None or reply["ok"] is not True:
            return reply
        return reply | {"home": home}

    async def _asked_to_end(self, home: str, question: EndQuestion) -> Reply:
        assert self._calls is not None
        words = {"home": f"`{home}`"}
        try:
            reply = await self._calls.ask(home, "end", **msgspec.structs.asdict(question))
        except UnansweredError as error:
            words["why"] = str(error)
            if not error.was_sent:
                return _refusal([trouble(refusals.UNREACHED, **words)])
        else:
            if isinstance(reply.get("ok"), bool):
                return reply
            words["why"] = "its reply cannot be read"
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

    async def _remarked(self, silent: Sequence[Unreached]) -> list[Unreached]:
        """Return these with who stands in for them, or has taken them over."""
        away = [row.broker for row in silent]
        remarks = {} if self._copies is None else await self._copies.remarks(away)
        return [row._replace(**remarks.get(row.broker, {})) for row in silent]

    async def _copied(self, silent: Sequence[Unreached]) -> list[dict[str, Any]]:
        """Return what the stand-ins of these have of them."""
        copied = [row for row in silent if row.stand_in]
        lists = await asyncio.gather(*[self._copy_of(row.broker, row.stand_in) for row in copied])
        return [
            {**row, "home": home.broker, "away": True, "stand_in": home.stand_in}
            for home, listed in zip(copied, lists, strict=True)
            for row in listed
        ]

    async def _copy_of(self, home: str, stand_in: str) -> list[dict[str, Any]]:
        if stand_in == self._me and self._copies is not None:
            return self._copies.rows(home)
        rows = await self._rows_of(stand_in, "copied", home=home)
        return [] if isinstance(rows, Unreached) else rows

    async def _rows_of(
        self, broker: str, verb: str = "list", **words: str
    ) -> list[dict[str, Any]] | Unreached:
        if self._calls is None or broker not in self._calls.others():
            return Unreached(broker, "no broker of that name is known here")
        rows: list[dict[str, Any]] = []
        try:
            async with asyncio.timeout(LIST_S):
                after = None
                while True:
                    page = read_page(await self._calls.read(broker, verb, after=after, **words))
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

    async def _copied_page(self, question: Mapping[str, Any]) -> Reply:
        after = msgspec.convert(question.get("after"), tuple[str, str] | None)
        home = msgspec.convert(question.get("home"), str)
        rows = [] if self._copies is None else self._copies.rows(home)
        return msgspec.structs.asdict(page_of(rows, after))

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


def _generation(row: Mapping[str, Any]) -> tuple[str, str, int, int]:
    return row["subscriber"], row["subscription"], row["seq"], row["since"]


def _code_of(reply: Reply) -> str:
    """Return the code by which a reply refuses; "" if it has none."""
    errors = reply.get("errors") or [{}]
    return str(errors[0].get("code", ""))


def _reason(row: Unreached) -> str:
    """Return why a broker gave no answer, and who else may."""
    if row.stand_in:
        word = f"headwater take-over {row.broker}"
        return f"{row.reason}; `{row.stand_in}` has a copy of it, and goes on with it by `{word}`"
    heir = row.taken_over_by
    return f"{row.reason}; `{heir}` has taken it over" if heir else row.reason


def _refusal(troubles: Sequence[Trouble], silent: Sequence[Unreached] = ()) -> Reply:
    """Return the refusal, which also names who could not be asked."""
    unreached = [
        trouble(refusals.UNREACHED, home=f"`{row.broker}`", why=_reason(row))
        for row in silent[:UNREACHED_MAX]
    ]
    return msgspec.json.decode(refused([*troubles, *unreached]).payload(), type=dict[str, Any])
