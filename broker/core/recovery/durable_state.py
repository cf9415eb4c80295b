"""A broker whose whole state can be told as plain data and taken up again.

Owns what belongs to that state, and from which texts tasks are made anew. Must not know journals,
numbers or offsets. Invariant: a broker that has taken up another's state does on every further
message what that one would have done.

Not in the state is what no result depends on: which causes the log has told of.

A task is not written down but made again from the text that it came with, checked with the tables
of that time: so a subscription means what it meant when it was submitted, whatever the tables of
the broker hold by now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from broker.core import messages
from broker.core.broker import Broker, BrokerOptions
from broker.core.catalogue import Installed
from broker.core.effects import Entry, Outgoing, Reply
from broker.core.frontiers import Frontiers
from broker.core.installer import reader_of
from broker.engine.ledger import Account
from broker.engine.limits import Limits
from broker.engine.runtime.budget import Slices
from broker.network.functions.register import FunctionRegister
from language import Task, check_text

Key = tuple[str, str]


class StateError(Exception):
    """A state cannot be taken up; the sentence tells why."""


class Source(Struct, frozen=True):
    """A text from which something was installed, and the tables that it could name.

    `functions` are those of given files that it calls, with the digests of the files.
    """

    text: str
    tables: dict[str, str]
    functions: dict[str, str] = {}


class RestorableBroker(Broker):
    """Offer a broker's whole state as plain data, and take such a state up again."""

    def __init__(self, options: BrokerOptions | None = None, limits: Limits | None = None) -> None:
        super().__init__(options, limits)
        self._texts: dict[Key, tuple[Installed, Source]] = {}
        self.given = FunctionRegister({})
        self.came: tuple[Key, ...] = ()  # subscriptions that the last request installed
        self.left: tuple[Key, ...] = ()  # and those that it ended
        parts = self._intake, self._matcher, self.catalogue, self._notes, lambda: self.now
        self.frontiers = Frontiers(*parts)
        self._handlers[messages.Settling] = self._settling
        self._handlers[messages.FunctionsChanged] = self._functions_changed
        self._end_over = self.frontiers.end_what_is_over

    def _settling(self, _message: messages.Settling, out: Outgoing) -> Slices[None]:
        """Decide what is due, and promise."""
        yield from self._feed((), out)
        self.frontiers.settle()

    # --- which text what came from ---------------------------------------------------------

    def _specification_submitted(
        self, message: messages.SpecificationSubmitted, out: Outgoing
    ) -> None:
        self.came, self.left = (), ()
        super()._specification_submitted(message, out)
        source: Source | None = None
        came: list[Key] = []
        for one in reversed(self.catalogue.subscriptions.values()):
            known = self._texts.get(one.key)
            if known is not None and known[0] is one:
                break  # what is new stands at the end
            source = source or source_of(message.text, self.options.tables, self.given)
            self._texts[one.key] = (one, source)
            came.append(one.key)
        self.came = tuple(reversed(came))
        self.frontiers.forget(came)

    def _functions_changed(self, message: messages.FunctionsChanged, out: Outgoing) -> None:
        self.know(self.given.change(message.files, self.callers()))
        for file, reason in self.given.faults.items():
            self._notes.once("warning", "functions_unusable", reason, file=file, reason=reason)
        if message.reply_to is not None:
            out.replies.append(Reply(message.reply_to, "", "functions", b'{"ok":true}'))

    def callers(self) -> dict[str, list[str]]:
        """The subscriptions that call functions of given files, by the file's digest."""
        subscriptions: dict[str, list[str]] = {}
        for installed, source in self._texts.values():
            for digest in dict.fromkeys(source.functions.values()):
                label = f"{installed.subscriber}/{installed.name}"
                subscriptions.setdefault(digest, []).append(label)
        return subscriptions

    def _cancel_requested(self, message: messages.CancelRequested, out: Outgoing) -> None:
        self.came, self.left = (), ()
        meant = [key for key in self.catalogue.subscriptions if key[1] == message.name]
        super()._cancel_requested(message, out)
        self.left = tuple([key for key in meant if key not in self.catalogue.subscriptions])
        for key in self.left:
            del self._texts[key]
        self.frontiers.forget(self.left)

    def entries(self, keys: Iterable[Key] | None = None) -> list[Entry]:
        """Return what the catalogue on disk is to hold of these subscriptions, or all, in order."""
        found = []
        for key in self.catalogue.subscriptions if keys is None else keys:
            one, source = self._texts[key]
            who = (one.seq, one.actor, one.client, one.proven, one.since)
            found.append(Entry(one.subscriber, one.name, *who, source.text))
        return found

    # --- the state -------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Plain data; it is to be encoded before the next message, since it is not all copied."""
        texts, tables, installed = _catalogue_state(
            [(one, self._texts[key][1]) for key, one in self.catalogue.subscriptions.items()]
        )
        return {
            "now": self.now,
            "texts": texts,
            "tables": tables,
            "functions": self.given.state(),
            "installed": installed,
            "declared": self.installer.state(),
            "tasks": self._matcher.state(),
            "instances": self.installer.shared.state(),
            "shared": self._matcher.shared_state(),
            "intake": self._intake.state(),
            "lives": self._lives.state(),
            "actors": self._actors.state(),
            "settled": self.frontiers.state(),
            "ledger": {
                "events": _account_state(self.ledger.events),
                "detected": _account_state(self.ledger.detected),
                "results": self.ledger.results,
                "notes": self.ledger.notes,
            },
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a state, in a broker that was told nothing yet. Raises StateError."""
        if self.now or len(self.catalogue):
            raise ValueError("a broker that was told something takes up no state")
        self.now = state["now"]
        self._overdue = True
        self._matcher.restore_shared(state["shared"])
        self.installer.restore(state["declared"])
        self.know(self.given.restore(state.get("functions", ((), ()))))
        self._restore_tasks(state)
        self._intake.restore(state["intake"])
        self._lives.restore(state["lives"])
        self._actors.restore(state.get("actors", ()))
        self.frontiers.restore(state.get("settled", ()))
        ledger = state["ledger"]
        _restore_account(self.ledger.events, ledger["events"])
        _restore_account(self.ledger.detected, ledger["detected"])
        self.ledger.results, self.ledger.notes = ledger["results"], dict(ledger["notes"])

    def resume(self, now: int) -> None:
        """A process goes on where another ended: the time between is nobody's silence.

        What would have ended or been passed over in that time is waited for from now on, for as
        long as was left: sources may send what they could not.
        """
        before, self.now = self.now, max(now, self.now)
        if before:
            self._intake.resume(before, self.now)
            self._lives.resume(before, self.now)

    def _restore_tasks(self, state: Mapping[str, Any]) -> None:
        sources = _sources(state)
        tasks: dict[str, Task] = {}
        for source in sources:
            for key, task in tasks_of(source, self.given).items():
                tasks.setdefault(key, task)
        instances = {name: wired for name, *wired in state.get("instances", ())}
        for name in state["tasks"]:
            key, needs, *_ = instances.get(name, (name, None))
            if key not in tasks:
                raise StateError(
                    f"a task of the snapshot ({key}) is in none of the texts that it was made of:"
                    " this version of Headwater understands one of them otherwise, or a function of"
                    " one's own that it calls has another version"
                )
            self._matcher.install(tasks[key], None, name, needs)
        self._matcher.restore(state["tasks"])
        self.installer.shared.restore(instances)
        for number, said in state["installed"]:
            one = msgspec.convert(said, Installed)
            self.catalogue.add(one)
            self._texts[one.key] = (one, sources[number])


def _sources(state: Mapping[str, Any]) -> list[Source]:
    """Return the texts of a state, with their tables and functions."""
    return [
        Source(
            text.decode("utf-8", "surrogatepass"),
            {name: state["tables"][at] for name, at in named.items()},
            *functions,
        )
        for text, named, *functions in state["texts"]
    ]


def source_of(text: str, tables: Mapping[str, str], given: FunctionRegister) -> Source:
    """Return a text with the tables and functions that it names."""
    named = {name: tables[name] for name in tables if name in text}
    return Source(text, named, given.called(text))


def _catalogue_state(
    sources: Iterable[tuple[Installed, Source]],
) -> tuple[list[Any], list[str], list[Any]]:
    """(texts, tables' texts, subscriptions), each with numbers of those before it."""
    texts: dict[int, int] = {}
    contents: dict[str, int] = {}
    rows: list[Any] = []
    subscriptions = []
    for installed, source in sources:
        number = texts.get(id(source))
        if number is None:
            number = texts[id(source)] = len(rows)
            named = {
                name: contents.setdefault(content, len(contents))
                for name, content in source.tables.items()
            }
            row: list[Any] = [source.text.encode("utf-8", "surrogatepass"), named]
            rows.append([*row, source.functions] if source.functions else row)
        subscriptions.append([number, msgspec.to_builtins(installed)])
    return rows, list(contents), subscriptions


def tasks_of(source: Source, given: FunctionRegister) -> Mapping[str, Task]:
    """Return the tasks that a text is made of, by key. Raises StateError."""
    try:
        functions = given.of_text(source.functions)
    except LookupError as error:
        raise StateError(f"a text that was installed cannot be taken up: {error.args[0]}") from None
    checked = check_text(source.text, functions=functions, tables=reader_of(source.tables))
    if checked.specification is None:
        raise StateError(
            "a text that was installed is refused by this version of Headwater, or calls a function"
            " of one's own that is there no more (broker.functions):\n" + checked.report()
        )
    return checked.specification.graph.tasks


def _account_state(account: Account) -> list[Any]:
    return [account.received, account.out, account.filtered, account.dropped]


def _restore_account(account: Account, state: list[Any]) -> None:
    account.received, account.out, account.filtered, dropped = state
    account.dropped = dict(dropped)
