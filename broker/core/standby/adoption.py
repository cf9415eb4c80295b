"""The adoption of a home by the broker that takes it over, and its giving up by the home.

Owns both, in the core. Must not know frames or hosts. Invariant: an adopted subscription is as it
was at its home, but that tasks which ran in no cell begin with nothing; what a text of the copy
needs and this broker lacks is refused with its reason, and the others are adopted all the same.

A cell keeps its name: it has the home's name in it, and from then on another home, which the
`SuccessionLog` tells. So hosts and origins go on with it, and know its terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from broker.core import messages, topics
from broker.core.broker import BrokerOptions
from broker.core.catalogue import Catalogue, Installed
from broker.core.effects import DisownResults, Emission, Outgoing, Publication
from broker.core.installer import Installer, reader_of
from broker.core.networked.activation import Activation
from broker.core.networked.actor_delivery import ActorDelivery
from broker.core.recovery.durable_state import Source
from broker.core.standby.copies_kept import CopiesKept
from broker.core.standby.home_copy import CopyRow, HomeCopy, Key, TextRow
from broker.core.standby.inheritance import Inheritances
from broker.engine.ledger import Ledger
from broker.engine.runtime.matcher import Matcher
from broker.network.delivery.messages import HomeChanged, HomeEntrusted, StandInChosen
from broker.network.delivery.succession import (
    NAMED_MAX,
    Generation,
    HomeTaken,
    Succeeded,
    SuccessionLog,
)
from broker.network.functions.register import FunctionRegister
from broker.network.placement.book import CellBook, Kept
from broker.network.placement.home_records import Row
from language import check_text

TERMS_APART = 1_000  # moves that a home may have begun, of which its stand-in had not heard

IN_THE_WAY = "{name} of {subscriber} is installed at the broker that takes over, with another text"


_decode = msgspec.json.decode


class Refusal(Struct, frozen=True):
    """Subscriptions that could not be adopted, and why."""

    subscriptions: tuple[Key, ...]
    reason: str


class Adopted(Struct, frozen=True):
    """The outcome of a take-over."""

    home: str
    subscriptions: tuple[Key, ...]
    begun: tuple[Key, ...]  # of these, those that begin with nothing
    refusals: tuple[Refusal, ...]


class Adopter(Protocol):
    """The core that takes over, or is taken over."""

    came: tuple[Key, ...]
    left: tuple[Key, ...]
    catalogue: Catalogue
    installer: Installer
    book: CellBook
    given: FunctionRegister
    options: BrokerOptions
    ledger: Ledger
    activation: Activation
    delivery: ActorDelivery
    standing_in: CopiesKept
    successions: SuccessionLog

    @property
    def now(self) -> int:
        """Return the time of the message."""


class Adoption:
    """Adopts homes and gives this one up.

    `stop_idle` ends tasks that only cells need, `cancel` ends a subscription, and `give_out`
    hands results to subscribers and actors.
    """

    def __init__(  # noqa: PLR0917  # what a part of the core is lent
        self,
        core: Adopter,
        texts: dict[Key, tuple[Installed, Source]],
        matcher: Matcher,
        stop_idle: Callable[[], None],
        cancel: Callable[[messages.CancelRequested, Outgoing], None],
        give_out: Callable[[Sequence[Row], Outgoing], None],
    ) -> None:
        self.last = Adopted("", (), (), ())
        self.inherited = Inheritances()
        self.disowns = DisownResults((), 0)  # what the last succession made this home give up
        self.next_offset: Callable[[], int] = int  # of the next result, where there is an outbox
        self.chosen = StandInChosen("", 0)  # the stand-in of this home
        self._core = core
        self._texts = texts
        self._matcher = matcher
        self._stop_idle = stop_idle
        self._cancel = cancel
        self._give_out = give_out

    def handlers(self) -> dict[type[Any], Callable[[Any, Outgoing], None]]:
        """Return what takes in the messages of homes and their stand-ins."""
        return {
            HomeEntrusted: self._core.standing_in.entrusted,
            HomeChanged: self._core.standing_in.changed,
            HomeTaken: self.adopt,
            Succeeded: self.succeeded,
            StandInChosen: self._choose,
        }

    def state(self) -> dict[str, Any]:
        """Return what is to outlast the process, copies and successions excepted."""
        chosen = [self.chosen.broker, self.chosen.lease_ms]
        return {"inherited": self.inherited.state(), "stand_in": chosen}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take it up; an earlier version had neither."""
        self.inherited.restore(state.get("inherited", ()))
        self.chosen = StandInChosen(*state.get("stand_in", ("", 0)))

    def _choose(self, chosen: StandInChosen, _out: Outgoing) -> None:
        self.chosen = chosen

    # --- taking over -----------------------------------------------------------------------

    def adopt(self, message: HomeTaken, out: Outgoing) -> None:
        """Take over a home of which there is a copy."""
        core, now = self._core, self._core.now
        copy = core.standing_in.homes.pop(message.home, None) or HomeCopy(message.home, 0, 0)
        adopted: list[Installed] = []
        refusals: list[Refusal] = []
        for text, rows in copy.by_text():
            if reason := self._install(text, rows):
                refusals.append(Refusal(tuple([row.key for row in rows]), reason))
            else:
                adopted += rows
        keys = dict.fromkeys([row.key for row in adopted])
        cells = _cells_of(copy, keys, core.book)
        for cell in cells:
            core.book.cells[cell.name] = cell
            core.book.of.update(dict.fromkeys(cell.keys, cell.name))
        begun = [row.key for row in adopted if row.key not in core.book.of and row.state != "ended"]
        self._begin(begun)
        self._stop_idle()
        for copied in copy.copies.values():
            _hand_on(copied, core, out)
        self._hand_over(copy, out)
        whole = Succeeded(message.home, core.options.name, now, 0, (), (), copy.given.end)
        for succession in _successions(whole, cells, adopted):
            core.successions.handle(succession)
        self.last = Adopted(message.home, tuple(keys), tuple(begun), tuple(refusals))
        core.came, core.left = tuple(keys), ()
        core.activation.look()

    def _hand_over(self, copy: HomeCopy, out: Outgoing) -> None:
        """Give out what the home may not have, and put what was not read into the log."""
        core, own_first = self._core, self.next_offset() + len(out.results)
        offsets: list[int] = []
        upto = self.inherited.upto(copy.epoch)  # it may have been taken over before
        # A home of an earlier release may have said void results as well.
        for row in [row for row in copy.given.rows if row.offset >= upto and row.result[3]]:
            subscriber, name, actor, payload = row.result
            own = core.catalogue.subscriptions.get((subscriber, name))
            before = len(out.results)
            if row.offset >= copy.given.delivered and own is not None:
                own.results -= 1  # it is counted once more as it is given out
                self._give_out([row.result], out)
            else:
                result = _decode(payload)
                words = (result["id"], result["end"], subscriber, name, actor, payload)
                out.results.append(Emission(*words, is_silent=True))
            offsets += [row.offset] * (len(out.results) - before)
        log = copy.epoch, copy.given.first, copy.given.end
        self.inherited.add(copy.home, log, own_first, offsets)

    def _install(self, text: TextRow, rows: Sequence[Installed]) -> str:
        """Install what a text brought and its home still has; why not, or "" where it is done."""
        core, source = self._core, text.source
        try:
            functions = core.given.of_text(source.functions)
        except LookupError as error:
            return str(error.args[0])
        tables = reader_of(source.tables)
        checked = check_text(source.text, functions=functions, tables=tables)
        if checked.specification is None:
            return checked.report()
        wanted = {row.key: row for row in rows}
        for subscriber, name in wanted:
            if (subscriber, name) in core.catalogue.subscriptions:
                return IN_THE_WAY.format(subscriber=subscriber, name=name)
        client = text.client.decode("utf-8", "surrogatepass")
        # Others of the text were cancelled, or have come with a later text that is adopted as well.
        submitted = messages.SpecificationSubmitted(
            client, "", source.text, proven=text.proven, checked=checked, only=tuple(wanted)
        )
        answer = core.installer.submit(submitted, core.now)
        if not answer.ok:
            return "; ".join([f"{trouble.code}: {trouble.message}" for trouble in answer.troubles])
        for key in answer.keys:
            self._resume_as(wanted[key])
            self._texts[key] = core.catalogue.subscriptions[key], source
        return ""

    def _resume_as(self, row: Installed) -> None:
        """Have a subscription that was just installed stand as it did at its home."""
        catalogue = self._core.catalogue
        own = catalogue.subscriptions[row.key]
        own.since, own.ends, own.results = row.since, row.ends, row.results
        own.suspended, own.resumed = row.suspended, row.resumed
        self._core.ledger.results += row.results
        if row.state != "ended":
            own.state = row.state
            return
        for task in (own.task, *catalogue.end(own)):
            if task in self._matcher:
                self._matcher.remove(task)

    def _begin(self, keys: Sequence[Key]) -> None:
        """Begin what ran in no cell: as cells where there are any, else here, with nothing."""
        core = self._core
        for key in keys:
            own = core.catalogue.subscriptions[key]
            own.state = "accepted"
            if core.options.cells and not own.clocks:
                core.book.begin([key], core.now)

    # --- giving up -------------------------------------------------------------------------

    def succeeded(self, message: Succeeded, _out: Outgoing) -> None:
        """Keep a succession; where it is this home that was taken over, give up what it names."""
        core = self._core
        is_new = not core.successions.has(message)
        core.successions.handle(message)
        given_up: list[Key] = []
        if is_new and message.home == core.options.name:
            for subscriber, name, seq, since in message.subscriptions:
                own = core.catalogue.subscriptions.get((subscriber, name))
                if own is not None and (own.seq, own.since) == (seq, since):
                    asked = messages.CancelRequested(subscriber, "", name, proven=True)
                    self._cancel(asked, Outgoing())
                    given_up.append(own.key)
            self._rename(message.cells)
        core.came, core.left = (), tuple(given_up)
        self.disowns = DisownResults(core.left, message.log_end)

    def _rename(self, names: Sequence[str]) -> None:
        """Give cells that began under names which an heir has now other ones: they begin anew.

        A home whose disk was destroyed counts its cells from the beginning.
        """
        core, book = self._core, self._core.book
        me = core.options.name
        numbers = [int(name.rpartition("/")[2]) for name in names if name.startswith(f"{me}/")]
        book.count_on(max(numbers, default=0))
        for name in names:
            cell = book.cells.get(name)
            if cell is not None:
                keys, splits = list(cell.keys), cell.splits
                book.drop(keys)
                by_text: dict[int, list[Key]] = {}
                for key in keys:  # what begins with nothing begins from one text
                    by_text.setdefault(id(self._texts[key][1]), []).append(key)
                for part in by_text.values():
                    book.begin(part, core.now, splits=splits)


def _cells_of(copy: HomeCopy, keys: Mapping[Key, None], book: CellBook) -> list[Kept]:
    """Return the cells of adopted subscriptions, without those that were refused."""
    cells = []
    for cell in copy.book.cells.values():
        cell.keys = [key for key in cell.keys if key in keys]
        cell.terms += TERMS_APART
        if cell.keys and cell.name not in book.cells:
            cells.append(cell)
    return cells


def _hand_on(row: CopyRow, core: Adopter, out: Outgoing) -> None:
    """Bring a result to its actor that the home had for it, unless it was published there."""
    delivery = core.delivery
    if row.broker != core.options.name:
        to = row.broker, delivery.version_of(row.broker)
        delivery.copies.add(to, row.actor, row.payload, (), core.now)
    elif delivery.listens(row.actor, 0, alone=True) and delivery.roaming.first(
        row.actor, row.payload
    ):
        out.publications.append(Publication(topics.actor(row.actor), row.payload))


def _successions(
    whole: Succeeded, cells: Sequence[Kept], rows: Sequence[Installed]
) -> list[Succeeded]:
    """Return a succession with what it is of, in parts that links take."""
    names = [cell.name for cell in cells]
    generations: list[Generation] = [(row.subscriber, row.name, row.seq, row.since) for row in rows]
    parts = range(0, max(len(names), len(generations), 1), NAMED_MAX)
    return [
        replace(
            whole,
            part=number,
            cells=tuple(names[first : first + NAMED_MAX]),
            subscriptions=tuple(generations[first : first + NAMED_MAX]),
        )
        for number, first in enumerate(parts)
    ]


def answer_of(adopted: Adopted) -> dict[str, Any]:
    """Return what came of a take-over, for people."""
    return {
        "ok": True,
        "home": adopted.home,
        "subscriptions": [list(key) for key in adopted.subscriptions],
        "begun": [list(key) for key in adopted.begun],
        "refused": [
            {"subscriptions": [list(key) for key in row.subscriptions], "reason": row.reason}
            for row in adopted.refusals
        ],
    }
