"""Who is interested in an event: the filterer of paper 003, section 3.3.1.

Owns contents by type and their reference counts. Must not know tasks: who wants a content keeps its
id. Invariant: an event goes to a content exactly if the content's conditions hold for it; what goes
to none is counted as filtered.

A type with few contents runs one comprehension over a whole batch for what any of them wants, and
one for each over that. With more, each event is looked up (see `contents`): the cost of one that
nobody wants does not grow with the number of contents. What is done at once with each event of a
content may be done there and then, which spares many contents a list of one event. What changes is
put into the index when the next event of the type comes, so that installing costs no more than
compiling as long as nothing is routed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from broker.engine.event.event import ByClass, Detected, Event
from broker.engine.event.expressions import AtomScope, Writer, children
from broker.engine.event.source import Constants, build
from broker.engine.filter.content import Content, Found, Makers
from broker.engine.filter.contents import Shapes, TypeIndex
from broker.engine.ledger import Ledger
from broker.engine.limits import LimitReachedError, Limits
from language.tree import Comparison, Constant, Expression, Membership, Name, SetLiteral

KINDS_MAX = 1_024  # lists of constants' types that contents share
# Of `x > 3` and `x > 5` whoever passes one passes `x > 3`.
WEAKER: dict[str, Callable[..., Any]] = {">": min, ">=": min, "<": max, "<=": max}
# One compiled comprehension over the batch beats any index here: hashing alone costs more than
# eight comparisons.
FEW = 8  # contents of a type that are asked one after the other


_id = itemgetter(0)
_Key = tuple[str, tuple[Expression, ...], tuple[str, ...]]


class Filterer:
    """The contents of one broker."""

    def __init__(self, limits: Limits | None = None, ledger: Ledger | None = None) -> None:
        self._limits = limits or Limits()
        self._ledger = ledger or Ledger()
        self._shapes = Shapes()
        self._by_id: dict[int, Content] = {}
        self._by_key: dict[_Key, Content] = {}
        self._kinds: dict[tuple[str, ...], tuple[str, ...]] = {}  # each kept once
        self._types: dict[str, _TypeContents] = {}
        self._of_class: dict[type[Event], _TypeContents | None] = {}  # filled as classes come
        self._next_id = 0

    def __len__(self) -> int:
        return len(self._by_id)

    @property
    def filtered_count(self) -> int:
        """Events, detected ones among them, that no content wanted."""
        return self._ledger.events.filtered + self._ledger.detected.filtered

    def add(self, type_name: str, conditions: tuple[Expression, ...]) -> int:
        """Want the events of a type for which all conditions hold; the content's id.

        Equal contents share one id; each `add` needs its `remove`. Raises LimitReachedError.
        """
        kinds = _kinds(conditions)
        key = (type_name, conditions, self._kinds.get(kinds, kinds))
        content = self._by_key.get(key)
        # Two tasks that want the same are one content (paper 003, 3.3.1: a pseudo-source for each);
        # the event is looked up and handed over once.
        if content is not None:
            content.uses += 1
            return content.id
        if len(self._by_id) >= self._limits.contents_max:
            raise LimitReachedError("contents_max", self._limits.contents_max, "contents")
        content = Content(self._next_id, key, conditions)
        content.test, content.args = self._shapes.test(conditions)
        self._next_id += 1
        self._by_key[key] = content
        self._by_id[content.id] = content
        if len(self._kinds) < KINDS_MAX:
            self._kinds.setdefault(kinds, kinds)
        kept = self._types.get(type_name)
        if kept is None:
            kept = self._types[type_name] = _TypeContents(self._limits.filter_cells_max)
            self._of_class.clear()
        kept.add(content)
        return content.id

    def remove(self, content_id: int) -> None:
        """Want a content once less. Raises KeyError for an id that is not in use."""
        content = self._by_id[content_id]
        type_name = content.key[0]
        content.uses -= 1
        if content.uses:
            return
        del self._by_id[content_id], self._by_key[content.key]
        kept = self._types[type_name]
        kept.remove(content)
        if not kept.contents:
            del self._types[type_name]
            self._of_class.clear()

    def make_at_once(self, content_id: int, makers: Makers) -> None:
        """Make this of each event of a content when it is found, as nothing else is done with them.

        It is no more than leave to do so. Without makers its events are told again.
        """
        content = self._by_id[content_id]
        content.makers = makers
        content.settle()

    def route(
        self,
        events: Sequence[Event],
        by_class: ByClass | None = None,
        made: list[Any] | None = None,
        outlet: str = "",
    ) -> list[tuple[int, list[Event]]]:
        """The events of each content that has any: ids ascending, events in the order given.

        All are primitive events, or all are detected ones. `by_class`: the same events, sorted so.
        What is made of events at once goes to `made`; their contents are not told then. With an
        `outlet` they are all of one class and wanted under that name, not under their type's.
        """
        if not events:
            return []
        if by_class is None:
            by_class = sorted_by_class(events)
        found: list[tuple[int, list[Event]]] = []
        made = [] if made is None else made
        missed = 0
        for kind, same in by_class.items():
            if outlet:
                kept = self._types.get(outlet)
            else:
                try:
                    kept = self._of_class[kind]
                except KeyError:
                    kept = self._of_class[kind] = self._types.get(kind.event_type)
            if kept is None:
                missed += len(same)
            else:
                missed += kept.route(same, found, made)
        if len(found) > 1:
            found.sort(key=_id)
        account = self._ledger.detected if issubclass(kind, Detected) else self._ledger.events
        account.filtered += missed
        account.out += len(events) - missed
        return found


def sorted_by_class(events: Sequence[Event]) -> dict[type[Event], list[Event]]:
    """Events by their class, each list in the order given."""
    # A publication by itself is the common batch of a live broker; it needs no default dict.
    if len(events) == 1:
        return {events[0].__class__: list(events)}
    by_class: dict[type[Event], list[Event]] = defaultdict(list)
    for event in events:
        by_class[type(event)].append(event)
    return by_class


def _any_of(wanted: Sequence[tuple[Expression, ...]]) -> list[tuple[Expression, ...]]:
    """Conjunctions of which one holds exactly where one of those given does.

    Of thresholds on one attribute, as `x > 3` and `x > 5` are, the weakest stands for all.
    """
    weakest: dict[tuple[str, Any], int | float] = {}
    others = []
    for conditions in wanted:
        match conditions:
            case (Comparison((Name(name), Constant(int() | float() as value)), (operator,)),) if (
                operator in WEAKER and not isinstance(value, bool)
            ):
                key = (name, operator)
                weakest[key] = WEAKER[operator](weakest.get(key, value), value)
            case _:
                others.append(conditions)
    thresholds: list[tuple[Expression, ...]] = [
        (Comparison((Name(name), Constant(value)), (operator,)),)
        for (name, operator), value in weakest.items()
    ]
    return thresholds + others


def _kinds(conditions: tuple[Expression, ...]) -> tuple[str, ...]:
    """The constants' types in order: 1, 1.0 and true are equal to Python, but not in a text."""
    kinds: list[str] = []
    waiting: list[Expression] = list(conditions)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Constant):
            kinds.append(type(node.value).__name__)
        elif isinstance(node, Membership) and isinstance(node.container, SetLiteral):
            waiting += [node.item, *node.container.members]
        else:
            waiting += children(node)
    return tuple(kinds)


class _TypeContents:
    """The contents of one type, and the way that they are asked now."""

    def __init__(self, cells_max: int) -> None:
        self._cells_max = cells_max
        self.contents: dict[int, Content] = {}
        self._index: TypeIndex | None = None
        self._waiting: dict[int, Content] = {}  # not in the index yet
        self._select: Callable[[list[Event]], tuple[list[Event], ...]] | None = None

    def add(self, content: Content) -> None:
        self.contents[content.id] = content
        self._waiting[content.id] = content
        self._select = None

    def remove(self, content: Content) -> None:
        del self.contents[content.id]
        if len(self.contents) <= FEW:
            self._index = None
            self._waiting = dict(self.contents)
        elif self._waiting.pop(content.id, None) is None and self._index is not None:
            self._index.remove(content)
        self._select = None

    def route(
        self, events: list[Event], found: list[tuple[int, list[Event]]], made: list[Any]
    ) -> int:
        """Add content ids with their events to `found`; how many events no content wanted."""
        if len(self.contents) <= FEW:
            return self._selected(events, found)
        if self._waiting:
            self._enter()
        index = self._index
        assert index is not None
        hits = Found(made)
        try:
            return index.route(events, hits)
        finally:
            for content in hits.touched:
                assert content.hits is not None
                found.append((content.id, content.hits))
                content.hits = None

    def _enter(self) -> None:
        if self._index is None:
            self._index = TypeIndex(self._cells_max)
        for content in self._waiting.values():
            self._index.add(content)
        self._waiting = {}

    def _selected(self, events: list[Event], found: list[tuple[int, list[Event]]]) -> int:
        if self._select is None:
            self._select = self._comprehensions()
        wanted, *lists = self._select(events)
        if not wanted:
            return len(events)
        if lists:
            found += [hit for hit in zip(self.contents, lists, strict=True) if hit[1]]
        else:
            found.append((next(iter(self.contents)), wanted))
        return len(events) - len(wanted)

    def _comprehensions(self) -> Callable[[list[Event]], tuple[list[Event], ...]]:
        """Compile the choice of what any content wants and, of several, what each one wants."""
        constants = Constants()
        writer = Writer(AtomScope("e"), constants)
        codes = [writer.conditions(content.conditions) for content in self.contents.values()]
        parts = ["wanted"]
        if len(codes) > 1:
            parts += [f"[e for e in wanted if {code}]" for code in codes]
        any_of = _any_of([content.conditions for content in self.contents.values()])
        union = [f"({writer.conditions(conditions)})" for conditions in any_of]
        some = "" if "True" in codes else " if " + " or ".join(union)
        text = (
            f"def select(events):\n    wanted = [e for e in events{some}]\n"
            f"    if not wanted: return (wanted,)\n    return ({', '.join(parts)},)\n"
        )
        return build(text, "select", constants)
