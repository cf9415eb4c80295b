"""The five roles that every broker knows, written as a file would write them.

Owns this table; docs/rights.md and the test of all requests read it. Must not know users.
Invariant: a role of a file never takes the name of one of these.
"""

from typing import Final

from broker.rights.requests import RIGHTS
from broker.rights.table import RoleEntry

_OWN: Final = (
    "results/{user}/#",
    "suspended/{user}/#",
    "reply/{user}/#",
    "actors/{user}/#",
)  # `#` holds its parent

BUILT_IN: Final[dict[str, RoleEntry]] = {
    # What runs and how it fares; nothing of what was measured or found.
    "look": RoleEntry(subscribe=("status/#", "reply/{user}/#"), may=frozenset(("look",))),
    # A gateway: readings of any source. One device has a role of its own, see docs/rights.md.
    "publish": RoleEntry(publish=("events/#", "sources/#")),
    # A person: all readings, own subscriptions and their results, own actors.
    "subscribe": RoleEntry(
        subscribe=("events/#", "sources/#", "late/#", "rejected", "status/#", *_OWN),
        submit_as=("{user}",),
        read_types=("*",),
        drive=("{user}", "{user}/*"),
        may=frozenset(("look",)),
    ),
    # Who keeps the brokers running; nothing of what was measured or found.
    "operate": RoleEntry(
        subscribe=("status/#", "reply/{user}/#"),
        may=frozenset(("look", "cancel_any", "consumers", "drain", "forget", "reload")),
    ),
    "administrate": RoleEntry(
        publish=("#",),
        subscribe=("#",),
        plain_publish=("#",),
        plain_subscribe=("#",),
        submit_as=("*",),
        read_types=("*",),
        drive=("*",),
        may=frozenset(RIGHTS),
    ),
}
