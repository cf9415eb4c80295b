"""Which subscription of a whole network is meant by its name, and as whom the asker ends it.

Owns that choice. Must not know how subscriptions are listed or ended. Invariant: nobody ends at
another broker what the rights of this one would not let him end here; where a name fits more than
one subscription, none is chosen.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from broker.core import refusals, topics
from broker.core.refusals import RefusedError, trouble
from broker.rights.judge import Principal, RightsJudge

Row = Mapping[str, Any]
"""A subscription as lists have it, with its `home`."""


class EndRequest(NamedTuple):
    """Whom a request to end or resume a subscription comes from, and its name."""

    asker: Principal
    client: str
    name: str


def visible(judge: RightsJudge, asker: Principal, row: Row) -> bool:
    """Return if `asker` may know of a subscription."""
    if asker.user is not None and row["client"] == asker.user:
        return True
    result = topics.result(row["subscriber"], row["subscription"])
    return judge.may_see(asker, row["subscriber"], result)


def meant(judge: RightsJudge, request: EndRequest, rows: Iterable[Row]) -> tuple[Row, str]:
    """Return the subscription that is meant, and the name as which the asker ends it.

    Raises RefusedError.
    """
    asker, client, name = request
    named = [row for row in rows if row["subscription"] == name]
    own = [row for row in named if row["subscriber"] == client]
    candidates = own or [row for row in named if _may_end(judge, asker, client, row)]
    words = {"client": f"`{client}`", "name": f"`{name}`"}
    if not candidates:
        listed = [row for row in named if visible(judge, asker, row)]
        if listed:
            subscriber = f"`{listed[0]['subscriber']}`"
            code = refusals.NOT_THE_SUBSCRIBER
            raise RefusedError(trouble(code, **words, subscriber=subscriber))
        raise RefusedError(trouble(refusals.UNKNOWN_SUBSCRIPTION, **words))
    homes = dict.fromkeys(row["home"] for row in candidates)
    if len(homes) > 1:
        places = ", ".join(f"`{home}`" for home in homes)
        raise RefusedError(trouble(refusals.SEVERAL_HOMES, **words, homes=places))
    if len(candidates) > 1:
        subscribers = ", ".join(f"`{row['subscriber']}`" for row in candidates)
        raise RefusedError(
            trouble(refusals.AMBIGUOUS, **words, count=len(candidates), subscribers=subscribers)
        )
    row = candidates[0]
    is_own = client in {row["subscriber"], row["client"]}
    return row, client if is_own else row["subscriber"]


def _may_end(judge: RightsJudge, asker: Principal, client: str, row: Row) -> bool:
    if client in {row["subscriber"], row["client"]}:
        return True
    if judge.table.is_open:  # names are taken on trust, and this is another's
        return False
    return judge.allows(asker, "cancel_any") or judge.may_submit_as(asker, row["subscriber"])
