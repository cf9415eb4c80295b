"""One content: what tasks want of the events of a type.

Owns the content, and what becomes of the events found for contents. Must not know how they are
found or who wants them. Invariant: a content gets each of its events once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from broker.engine.event.event import Event
from broker.engine.filter.scale import says_all
from language.tree import Expression

if TYPE_CHECKING:
    from broker.engine.filter.contents import Row

# Each makes something of an event: from its start, its end, no group, and itself.
Makers = tuple[Callable[[int, int, tuple[Any, ...], Event], Any], ...]


# Collected here and not returned: most events of a batch hit a handful of contents among thousands,
# and a list of pairs for each event would be merged again at once.
class Found:
    """Collect what becomes of a batch: the contents that have hits, and what was made at once."""

    __slots__ = ("made", "touched")

    def __init__(self, made: list[Any]) -> None:
        self.touched: list[Content] = []
        self.made = made

    def give(self, contents: Iterable[Content], event: Event) -> None:
        """The event is one of each content's."""
        made = self.made
        for content in contents:
            if content.at_once:
                start, end = event.start, event.end
                for make in content.at_once:
                    made.append(make(start, end, (), event))
                continue
            hits = content.hits
            if hits is None:
                content.hits = [event]
                self.touched.append(content)
            # Events come one after the other, so a repeat is always the last; a set of identities
            # would cost more than all comparisons.
            elif hits[-1] is not event:  # another alternative of the content may have held
                hits.append(event)


class Content:
    """Hold what tasks want of one type: a conjunction, wanted `uses` times over."""

    __slots__ = (
        "args", "at_once", "conditions", "hits", "id", "key", "makers", "rows", "says_all", "test",
        "uses",
    )  # fmt: skip

    def __init__(self, content_id: int, key: Any, conditions: tuple[Expression, ...]) -> None:
        self.id = content_id
        self.key = key
        self.conditions = conditions
        self.uses = 1
        self.test: Callable[..., bool]
        self.args: tuple[Any, ...]
        self.hits: list[Event] | None = None  # while a batch is routed
        self.rows: tuple[Row, ...] = ()
        # A content whose ranges say all is found by the index alone, as the interest content of
        # paper 003 (3.3.1) is found by its hash item: nothing is left to test.
        self.says_all = says_all(conditions)  # its rows hold exactly where it does
        self.makers: Makers = ()  # what may be made of each event at once, as that is all
        self.at_once: Makers = ()  # the same where no event is found twice

    def settle(self) -> None:
        """Know what is made at once, the rows or the makers being others."""
        self.at_once = self.makers if len(self.rows) == 1 else ()
