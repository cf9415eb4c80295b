"""The types of what subscriptions assign, from the texts that they were installed with.

Owns the memory of types. Must not know where texts are kept or how they are checked. Invariant:
types are those of the subscription as it is installed at the moment of the question.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from broker.store import CatalogueEntry
from language import Checked

KNOWN_MAX: Final = 1000  # subscriptions; a text is checked in milliseconds
Standing = tuple[tuple[str, int], ...]  # (subscriber, seq) of each subscription of one name


class ValueTypes:
    """Types by the name of a subscription; where two of one name differ, "any".

    `standing` tells who is installed under a name, `entries` all texts, and `check` checks one.
    """

    def __init__(
        self,
        standing: Callable[[str], Standing],
        entries: Callable[[], Awaitable[Sequence[CatalogueEntry]]],
        check: Callable[[str], Checked],
    ) -> None:
        self._standing = standing
        self._entries = entries
        self._check = check
        self._known: dict[str, tuple[Standing, dict[str, str]]] = {}

    async def of(self, subscription: str) -> Mapping[str, str] | None:
        """Return the types of what it assigns; None where none of that name is installed.

        Raises StoreError.
        """
        standing = self._standing(subscription)
        if not standing:
            return None
        remembered = self._known.get(subscription)
        if remembered is not None and remembered[0] == standing:
            return remembered[1]
        types: dict[str, str] = {}
        for entry in await self._entries():
            if entry.subscription != subscription:
                continue
            checked = await asyncio.to_thread(self._check, entry.text)
            if checked.specification is None:  # as functions that it needs were taken away
                continue
            for name, of_one in checked.specification.assigned[
                entry.subscriber, subscription
            ].items():
                types[name] = of_one if types.get(name, of_one) == of_one else "any"
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[subscription] = standing, types
        return types
