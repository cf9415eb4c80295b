"""What brokers ask each other of subscriptions, and what of it their homes make.

Owns these shapes, the row of a subscription and the pages of a list. Must not know the event loop
or who asks. Invariant: a question names one subscription as it was installed once; a later one of
the same name is another.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from broker.core.catalogue import Installed
from broker.core.messages import CancelRequested, Done, ResumeRequested
from broker.network.replication.cancellations import Generation

PAGE_ROWS: Final = 500
PAGE_BYTES: Final = 131_072

Row = dict[str, Any]
Key = tuple[str, str]


class EndQuestion(msgspec.Struct, frozen=True):
    """End or resume this subscription, as this client; the rights of the asker were judged.

    A call may be under way for long, while the subscription is ended otherwise and comes back: so
    it also goes by when it was installed.
    """

    done: Done
    client: str
    proven: bool
    subscriber: str
    subscription: str
    seq: int
    since: int

    def request(self, installed: Iterable[Generation], reply_to: Any) -> CancelRequested | None:
        """Return the request to the core of the home; None where that has it no more."""
        meant = self.subscriber, self.subscription, self.seq, self.since
        if all((had.subscriber, had.name, had.seq, had.since) != meant for had in installed):
            return None
        kind = ResumeRequested if self.done == "resumed" else CancelRequested
        return kind(
            self.client, "network", self.subscription, reply_to=reply_to, proven=self.proven
        )


class ListPage(msgspec.Struct):
    """A part of a home's list, in the order of names; `more`: there are rows behind it."""

    rows: list[Row]
    more: bool = False


class _Listed(msgspec.Struct):
    subscriber: str
    subscription: str
    client: str
    seq: int
    since: int


def row_of(subscription: Installed) -> Row:
    """Return a subscription as lists have it."""
    return {
        "subscription": subscription.name,
        "subscriber": subscription.subscriber,
        "actor": subscription.actor,
        "seq": subscription.seq,
        "state": "suspended" if subscription.suspended else subscription.state,
        "results": subscription.results,
        "client": subscription.client,
        "since": subscription.since,
        **({} if subscription.ends is None else {"ends": subscription.ends}),
        **({"suspended": subscription.suspended} if subscription.suspended else {}),
    }


def page_of(rows: Sequence[Row], after: Key | None) -> ListPage:
    """Return the rows behind a key, as many as one message takes; at least one if there is any."""
    behind = sorted(
        [row for row in rows if after is None or key_of(row) > after],
        key=key_of,
    )
    size_bytes = taken = 0
    for row in behind[:PAGE_ROWS]:
        size_bytes += len(msgspec.json.encode(row))
        if taken and size_bytes > PAGE_BYTES:
            break
        taken += 1
    return ListPage(behind[:taken], taken < len(behind))


def read_page(reply: Row) -> ListPage:
    """Return the page that another broker sent. Raises ValidationError where it is none."""
    page = msgspec.convert(reply, ListPage)
    for row in page.rows:
        msgspec.convert(row, _Listed)
    return page


def key_of(row: Row) -> Key:
    """Return the subscriber and name of a row."""
    return row["subscriber"], row["subscription"]
