"""Subscriptions that become active once all whom they need have answered.

Owns what happens between *accepted* and *active*. Must not know who is waited for. Invariant: of a
subscription that is not active a part of its events may be missing, so that nothing it finds is
given out; its tasks begin anew when it becomes active, as if it were installed then.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from broker.core.effects import Outgoing
from broker.core.refusals import Answer

if TYPE_CHECKING:
    from broker.core.catalogue import Catalogue
    from broker.core.messages import SpecificationSubmitted
    from broker.engine.event.agent import Result

Key = tuple[str, str]
Finish: TypeAlias = "Callable[[SpecificationSubmitted, Answer, Outgoing], None]"


class Activation:
    """Activate subscriptions; `finish` tells who asked that all are, `elsewhere` runs no task here.

    To look again is due where subscriptions have gone.
    """

    def __init__(self, catalogue: Catalogue, elsewhere: Container[Key], finish: Finish) -> None:
        self.dormant = False  # whether any subscription is not active yet
        self._catalogue, self._elsewhere, self._finish = catalogue, elsewhere, finish
        self._waiting: dict[Key, tuple[SpecificationSubmitted, Answer]] = {}

    def begin(self, message: SpecificationSubmitted, answer: Answer, out: Outgoing) -> None:
        """Tell at once that all of a text is active, or wait until it is."""
        subscriptions = self._catalogue.subscriptions
        if all(subscriptions[key].state != "accepted" for key in answer.keys):
            self._finish(message, answer, out)
        else:
            self._waiting.update(dict.fromkeys(answer.keys, (message, answer)))
        self.look()

    def activate(self, keys: Iterable[Key], out: Outgoing) -> None:
        """These are active from now on, and whoever asked for them is told."""
        subscriptions = self._catalogue.subscriptions
        done: dict[int, tuple[SpecificationSubmitted, Answer]] = {}
        for key in keys:
            installed = subscriptions.get(key)
            if installed is not None and installed.state == "accepted":
                installed.state = "active"
            waiting = self._waiting.pop(key, None)
            if waiting is not None:
                done[id(waiting[1])] = waiting
        for message, answer in done.values():
            left = [key for key in answer.keys if key in subscriptions]
            if left and all(subscriptions[key].state != "accepted" for key in left):
                self._finish(message, replace(answer, keys=tuple(left)), out)
        self.look()

    def look(self) -> None:
        """Note whether any subscription is not active yet, and wait for none that is gone."""
        self.dormant = bool(self.inactive())
        for key in [key for key in self._waiting if key not in self._catalogue.subscriptions]:
            del self._waiting[key]

    def of_active(self, results: Sequence[Result]) -> Sequence[Result]:
        """Return those results that are given out."""
        subscriptions, rows = self._catalogue.subscriptions, [each.to_dict() for each in results]
        keys = [(row["subscriber"], row["subscription"]) for row in rows]
        return list(compress(results, [subscriptions[key].state == "active" for key in keys]))

    def inactive(self) -> list[Key]:
        """The subscriptions that are accepted and not yet active, of those that run here."""
        return [
            key
            for key, installed in self._catalogue.subscriptions.items()
            if installed.state == "accepted" and key not in self._elsewhere
        ]
