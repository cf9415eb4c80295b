"""Who wants an event: the keys of many operators, asked at once.

Owns which keys share a content of the filterer. Must not know how operators are correlated.
Invariant: an event is told to an operator exactly if it passes one of its keys; an event that
passes none costs as much with ten thousand operators as with ten.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from broker.core.operators.conditions import conditions_of
from broker.core.routing.operator import Operator
from broker.engine.event.event import Event
from broker.engine.filter.filterer import Filterer
from broker.engine.limits import Limits


class Passed(NamedTuple):
    """The events of a batch that pass some keys alike, in the order given.

    `keys` are (id of the operator, name of the key), in the order in which they were added.
    """

    keys: tuple[tuple[str, str], ...]
    events: list[Event]


class Wanted:
    """Operators of this broker's own tasks, and which of their keys an event passes.

    What they ask was checked against the types that are declared here, and events are of these. It
    is not for operators of others, which may take an attribute to be of another type: these are
    asked by `conditions.compile_condition`, which no text and no event makes fail.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._filterer = Filterer(limits)
        self._operators: dict[str, list[int]] = {}
        self._keys: dict[int, dict[tuple[str, str], None]] = {}

    def __len__(self) -> int:
        return len(self._operators)

    def __contains__(self, operator_id: str) -> bool:
        return operator_id in self._operators

    def add(self, operator: Operator) -> None:
        """Take an operator; one that is there already changes nothing.

        Raises LimitReachedError (`contents_max`), or ValueError where a key's condition is none;
        then nothing of the operator is left.
        """
        if operator.id in self._operators:
            return
        taken: list[int] = []
        self._operators[operator.id] = taken
        try:
            for key in operator.keys:
                content = self._filterer.add(key.type_name, conditions_of(key))
                taken.append(content)
                self._keys.setdefault(content, {})[operator.id, key.name] = None
        except BaseException:
            self.remove(operator.id)
            raise

    def remove(self, operator_id: str) -> None:
        """Let an operator go. Raises KeyError for one that is not there."""
        for content in self._operators.pop(operator_id):
            left = {key: None for key in self._keys[content] if key[0] != operator_id}
            if left:
                self._keys[content] = left
            else:
                self._keys.pop(content)
            self._filterer.remove(content)

    def push(self, events: Sequence[Event]) -> list[Passed]:
        """What is wanted of a batch of primitive events, each key with all that pass it."""
        return [
            Passed(tuple(self._keys[content]), passed)
            for content, passed in self._filterer.route(events)
        ]

    def wanting(self, events: Sequence[Event], operators: Iterable[str]) -> list[Event]:
        """The events of a batch that pass a key of one of these operators, in the order given."""
        contents = {content for name in operators for content in self._operators[name]}
        found = {
            id(event)
            for content, passed in self._filterer.route(events)
            if content in contents
            for event in passed
        }
        return [event for event in events if id(event) in found]
