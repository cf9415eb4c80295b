"""The catalogue on disk and the core: how the one is kept in step, and the other made of it.

Owns what is compared, and the way from entries to subscriptions where there is no journal. Must not
know databases. Invariant: after a recovery the catalogue on disk lists what is installed, or
nothing was begun; a subscription that it lists is never given up in silence.

The journal is what counts. The catalogue comes behind it: a crash may keep the last changes from
it, which are made up for at the next start. It is what is left of subscriptions where journal and
snapshot are gone: then they are submitted again by those who submitted them, and begin anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Protocol

from msgspec import Struct, json

from broker.core.effects import Effect, Enlist, Entry, Reply
from broker.core.messages import CancelRequested, Message, SpecificationSubmitted
from broker.network.effects import Note


class RecoveryError(Exception):
    """Report that what is on disk does not fit together; the sentence tells what."""


class _Broker(Protocol):
    def handle(self, message: Message, now: int) -> list[Effect]:
        """Return what is to be done because of the message."""


class _Trouble(Struct):
    code: str
    message: str


class _Answer(Struct):
    ok: bool
    errors: list[_Trouble] = []


def in_step(installed: Sequence[Entry], listed: Iterable[Entry], after: int) -> Enlist | None:
    """Return what makes the catalogue list what is installed; None if it does."""
    known = {one.key: one for one in listed}
    coming = tuple([one for one in installed if known.pop(one.key, None) != one])
    return Enlist(coming, tuple(known), after) if coming or known else None


def installed_again(broker: _Broker, listed: Sequence[Entry], now: int) -> list[Effect]:
    """Install what the catalogue lists in a broker that knows nothing; in the order of listing.

    A text may have brought more than is left of it: the rest is cancelled at once, so that what
    came later under the same name finds it free. Raises RecoveryError.
    """
    effects: list[Effect] = []
    for (text, client, proven), some in groupby(listed, _submission):
        wanted = {one.key: one for one in some}
        submitted = SpecificationSubmitted(client, "", text, proven=proven)
        done = broker.handle(submitted, now)
        _check(done, next(iter(wanted.values())))
        came = [one for effect in done if isinstance(effect, Enlist) for one in effect.coming]
        for one in came:
            if one.key not in wanted:
                ask = CancelRequested(one.subscriber, "", one.subscription, proven=proven)
                done += broker.handle(ask, now)
        effects += [one for one in done if not isinstance(one, Reply)]
    told: dict[str, str | int] = {"subscriptions": len(listed)}
    effects.append(Note("warning", "installed_again", told))
    return effects


def refuse(number: int, effects: Iterable[Effect]) -> None:
    """Raise RecoveryError for a text that the journal has as installed, and that is refused now."""
    answers = [effect for effect in effects if isinstance(effect, Reply)]
    errors = json.decode(answers[0].payload, type=_Answer).errors if answers else []
    why = f" ({errors[0].code}: {errors[0].message})" if errors else ""
    raise RecoveryError(
        f"record {number} of the journal: a text that was installed is refused now{why}; give the"
        " broker back what the text needs, such as a file of functions (broker.functions) or"
        " broker.run_given_functions, or the version of Headwater that it was installed with"
    )


def _submission(one: Entry) -> tuple[str, str, bool]:
    return one.text, one.client, one.proven


def _check(effects: Iterable[Effect], one: Entry) -> None:
    answers = [effect for effect in effects if isinstance(effect, Reply)]
    said = json.decode(answers[0].payload, type=_Answer)
    if not said.ok:
        first = said.errors[0]
        raise RecoveryError(
            f"the journal is gone, and the subscription `{one.subscription}` of {one.subscriber},"
            f" which the catalogue lists, cannot be installed again ({first.code}:"
            f" {first.message}); mend that, or delete its row from the table `catalogue`"
        )
