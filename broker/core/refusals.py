"""What a running broker refuses that no checking of a text could find, and its replies.

Owns the codes (HW5xx, behind those of `language.messages`), their sentences, and the form of a
reply. Must not know who decides. Invariant: a reply is `{"ok": true, …}` with names or
`{"ok": false, "errors": […]}` with at least one error, and what it echoes is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType

from broker.core.catalogue import State
from language.diagnostics import Diagnostic, shorten
from language.tree import Span

if TYPE_CHECKING:
    from broker.core.preview import CellChange, SubscriptionPreview

ECHO_CHARS_MAX = 200

LOWER_SEQ: Final = "HW501"
NOT_THE_SUBSCRIBER: Final = "HW502"
CONFLICT: Final = "HW503"
LIMIT: Final = "HW504"
UNKNOWN_SUBSCRIPTION: Final = "HW505"
AMBIGUOUS: Final = "HW506"
NOT_TEXT: Final = "HW507"
BUSY: Final = "HW508"
DEFECT: Final = "HW509"
NOT_SUSPENDED: Final = "HW510"
UNBOUNDED: Final = "HW511"
NOT_GRANTED: Final = "HW512"
ANSWER_ELSEWHERE: Final = "HW513"
QUOTA: Final = "HW514"
SEVERAL_HOMES: Final = "HW515"
UNREACHED: Final = "HW516"
UNCONFIRMED: Final = "HW517"
NO_COPY: Final = "HW518"
REACHABLE: Final = "HW519"
ITSELF: Final = "HW520"
LATER_COPY: Final = "HW521"
LEASED: Final = "HW522"


class Sentence(NamedTuple):
    """Say what is wrong, and what would be right; both are format strings."""

    message: str
    hint: str


TABLE: Final[dict[str, Sentence]] = {
    LOWER_SEQ: Sentence(
        "subscription {name} of {subscriber} is installed with seq {installed} and another text,"
        " found seq {found}",
        "give it a seq above {installed} to replace it, or cancel it first",
    ),
    NOT_THE_SUBSCRIBER: Sentence(
        "subscription {name} belongs to {subscriber}, and {client} does not speak for it",
        "ask as {subscriber} or as who submitted it, logged in where that one was",
    ),
    CONFLICT: Sentence("{found}", "what is installed stays as it is"),
    LIMIT: Sentence("{found}", "cancel what is not needed, or raise the limit under [limits]"),
    UNKNOWN_SUBSCRIPTION: Sentence(
        "there is no subscription {name} of {client}",
        "a subscription is cancelled by the name of its subscriber (`from`) or of the client that"
        " submitted it",
    ),
    AMBIGUOUS: Sentence(
        "{client} has submitted {count} subscriptions called {name}, for {subscribers}",
        "cancel it as one of these",
    ),
    NOT_TEXT: Sentence("found bytes that are no UTF-8", "send the text as UTF-8"),
    BUSY: Sentence(
        "too many requests wait already", "ask again when the answers to earlier ones are there"
    ),
    DEFECT: Sentence("the broker failed on this request", "its log says more; please report it"),
    NOT_SUSPENDED: Sentence(
        "subscription {name} is not suspended", "what runs goes on; `headwater ls` shows its state"
    ),
    UNBOUNDED: Sentence(
        "what {name} holds has no limit by its text: {why}",
        "bound it with `within`, a context such as `[recent]`, or a window",
    ),
    NOT_GRANTED: Sentence(
        "{client} may not {what}", "the broker's rights file grants that by {key} of a role"
    ),
    ANSWER_ELSEWHERE: Sentence(
        "the answer would go to a topic that this client may not subscribe to",
        "name another response topic, or ask under the name of the user",
    ),
    QUOTA: Sentence(
        "{found}, and the quota `contents` is {count}",
        "cancel what is not needed, or have `contents` raised under [quotas] of the rights file",
    ),
    SEVERAL_HOMES: Sentence(
        "there are subscriptions {name} at several homes: {homes}",
        "name one of these homes: `headwater cancel --home NAME`, or `home` in a request",
    ),
    UNREACHED: Sentence(
        "{home} cannot be asked: {why}",
        "ask again once there is a way to it, as `headwater ls` and `headwater topology` show",
    ),
    UNCONFIRMED: Sentence(
        "{home} has not confirmed that {name} is {done}: {why}",
        "it may have been done all the same: see `headwater ls`, and ask again where it was not",
    ),
    NO_COPY: Sentence(
        "{me} has no copy of {home}, so it cannot take it over",
        "no broker that can be reached has one either; was `links.stand_in` set at {home}?",
    ),
    REACHABLE: Sentence(
        "{home} can be reached, and goes on by itself",
        "end it first, or say `--force`: it then hears of it and gives its subscriptions up",
    ),
    ITSELF: Sentence(
        "{home} is the broker that was asked",
        "ask the broker that is to take it over: its stand-in",
    ),
    LATER_COPY: Sentence(
        "{holder} has a later copy of {home} than {me}",
        "ask {holder}: `headwater take-over` with its address as `--broker`",
    ),
    LEASED: Sentence(
        "{home} may count on its lease, and give out results, for {left_s} s more",
        "wait: {me} then takes it over by itself; `--force` does so now, if {home} has ended",
    ),
}


class Trouble(Struct, frozen=True):
    """One thing that is wrong; `line` and `column` count from 1 (None: it has no place).

    `seq` is that of the subscription that stays as it is, where that is in the way.
    """

    code: str
    message: str
    line: int | None = None
    column: int | None = None
    hint: str = ""
    seq: int | UnsetType = UNSET


class RefusedError(Exception):
    """A request that is refused; nothing was changed."""

    def __init__(self, *troubles: Trouble) -> None:
        super().__init__("; ".join(trouble.message for trouble in troubles))
        self.troubles = troubles


def trouble(code: str, span: Span | None = None, /, **words: object) -> Trouble:
    """The trouble of this code, with its sentence filled in; `span` is its place in the text."""
    shown = {name: shorten(str(word), ECHO_CHARS_MAX) for name, word in words.items()}
    message, hint = (part.format(**shown) for part in TABLE[code])
    if span is None:
        return Trouble(code, message, hint=hint)
    return Trouble(code, message, span.line, span.column, hint)


def of_diagnostic(diagnostic: Diagnostic) -> Trouble:
    """Return what checking a text found."""
    one = diagnostic
    return Trouble(one.code, one.message, one.line, one.column, one.hint or "")


class Answer(Struct, frozen=True):
    """Hold what a client is told, before it is written down.

    `changed` counts what was not so before, and `begun` tells whether any task of that began with
    nothing.

    `state` is what all of the subscriptions have reached, None where they end; `keys` are theirs
    in the catalogue.
    """

    subscriptions: tuple[str, ...] = ()
    definitions: tuple[str, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    changed: int = 0
    begun: bool = False
    state: State | None = None
    keys: tuple[tuple[str, str], ...] = ()
    changes: tuple[SubscriptionPreview, ...] = ()  # of subscriptions that had another text
    cells: tuple[CellChange, ...] = ()  # that go on with the text

    @property
    def ok(self) -> bool:
        """Tell whether it was done."""
        return not self.troubles

    def payload(self) -> bytes:
        """The answer as JSON."""
        if self.troubles:
            return msgspec.json.encode({"ok": False, "errors": self.troubles})
        done: dict[str, object] = {"ok": True, "subscriptions": self.subscriptions}
        done["definitions"] = self.definitions
        if self.state is not None:
            done["state"] = self.state
        if self.changes:
            done["changes"] = self.changes
        return msgspec.json.encode(done)


def refused(troubles: Iterable[Trouble]) -> Answer:
    """The answer that tells of troubles."""
    return Answer(troubles=tuple(troubles))
