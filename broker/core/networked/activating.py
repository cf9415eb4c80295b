"""Subscriptions that become active once all whom they need have answered.

Owns what happens between *accepted* and *active*. Must not know who is waited for. Invariant: of a
subscription that is not active a part of its events may be missing, so that nothing it finds is
given out; its tasks begin anew when it becomes active, as if it were installed then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from broker.core import messages
from broker.core.broker import BrokerOptions
from broker.core.effects import Emission, Outgoing
from broker.core.recovery.durable_state import RestorableBroker
from broker.core.refusals import Answer
from broker.engine.event.agent import Result
from broker.engine.limits import Limits
from broker.network.frames import told

if TYPE_CHECKING:
    from language import Task

Key = tuple[str, str]


class ActivatingBroker(RestorableBroker):
    """Activate subscriptions once all whom they need have answered."""

    def __init__(self, options: BrokerOptions | None = None, limits: Limits | None = None) -> None:
        super().__init__(options, limits)
        self.dormant = False  # whether any subscription is not active yet
        self._waiting: dict[Key, tuple[messages.SpecificationSubmitted, Answer]] = {}
        self._elsewhere: Mapping[Key, str] = {}  # subscriptions whose tasks do not run here

    def tasks(self) -> dict[str, Task]:
        """The tasks that run here, by key."""
        return self._matcher.tasks()

    def _activate(
        self, message: messages.SpecificationSubmitted, answer: Answer, out: Outgoing
    ) -> None:
        if all(self.catalogue.subscriptions[key].state != "accepted" for key in answer.keys):
            super()._activate(message, answer, out)
            return
        for key in answer.keys:
            self._waiting[key] = (message, answer)

    def _activated(self, one: told.Activated, out: Outgoing) -> None:
        subscriptions = self.catalogue.subscriptions
        subs = [subscriptions[key] for key in one.subscriptions if key in subscriptions]
        self.installer.begin_anew(subs, self._intake.time_of_day(self.now), apart=one.apart)
        # Types without a source are waited for from now on.
        self._matcher.due(self._watermark_of, ends=True)
        self._now_active(one.subscriptions, out)

    def _now_active(self, keys: Sequence[Key], out: Outgoing) -> None:
        """These are active from now on, and whoever asked for them is told."""
        subscriptions = self.catalogue.subscriptions
        done: dict[int, tuple[messages.SpecificationSubmitted, Answer]] = {}
        for key in keys:
            found = subscriptions.get(key)
            if found is not None and found.state == "accepted":
                found.state = "active"
            waiting = self._waiting.pop(key, None)
            if waiting is not None:
                done[id(waiting[1])] = waiting
        for message, answer in done.values():
            left = [key for key in answer.keys if key in subscriptions]
            if left and all(subscriptions[key].state != "accepted" for key in left):
                super()._activate(message, replace(answer, keys=tuple(left)), out)
        self.dormant = bool(self.inactive())

    def _emissions(self, results: Sequence[Result]) -> list[Emission]:
        if self.dormant:
            catalogue, rows = self.catalogue.subscriptions, [each.to_dict() for each in results]
            keys = [(row["subscriber"], row["subscription"]) for row in rows]
            is_active = [catalogue[key].state == "active" for key in keys]
            results = list(compress(results, is_active))
        return super()._emissions(results)

    def _specification_submitted(
        self, message: messages.SpecificationSubmitted, out: Outgoing
    ) -> None:
        super()._specification_submitted(message, out)
        self.dormant = bool(self.inactive())

    def _cancel_requested(self, message: messages.CancelRequested, out: Outgoing) -> None:
        super()._cancel_requested(message, out)
        for key in [key for key in self._waiting if key not in self.catalogue.subscriptions]:
            del self._waiting[key]
        self.dormant = bool(self.inactive())

    def inactive(self) -> list[Key]:
        """The subscriptions that are accepted and not yet active, of those that run here."""
        return [
            key
            for key, one in self.catalogue.subscriptions.items()
            if one.state == "accepted" and key not in self._elsewhere
        ]

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a state, and note whether any subscription is not active yet."""
        super().restore(state)
        self.dormant = bool(self.inactive())
