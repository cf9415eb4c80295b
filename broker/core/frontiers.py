"""How far subscriptions are settled, and which of them are over.

Owns the times up to which no result comes any more. Must not know journals or links. Invariant: of
a subscription in `reached` no result comes later that ends at or before the time there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from broker.core.catalogue import Catalogue, Installed
from broker.core.effects import Notes
from broker.core.intake import Intake
from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.ingest.times import TIME_MAX_MS
from broker.engine.runtime.matcher import Matcher, WatermarkOf

Key = tuple[str, str]

_NEVER = WATERMARK_NONE // 2


class Frontiers:
    """Keep how far subscriptions are settled. `ended` counts those that are over, in this process.

    `elsewhere` returns how far those are that run at other brokers, `host_of` at which. `keeps_on`:
    what it runs is at home elsewhere, so that it goes on until it is called off: until then it may
    have to begin anew, for which origins keep what it needs.
    """

    def __init__(
        self,
        intake: Intake,
        matcher: Matcher,
        catalogue: Catalogue,
        notes: Notes,
        clock: Callable[[], int],
    ) -> None:
        self.reached: dict[Key, int] = {}
        self.ended = 0
        self.keeps_on = False
        self.elsewhere: Callable[[], dict[Key, int]] = dict
        self.host_of: Callable[[Key], str] = lambda _: ""
        self._intake, self._matcher, self._catalogue = intake, matcher, catalogue
        self._notes, self._clock = notes, clock

    def settle(self) -> None:
        """Promise what can be, behind what was decided.

        The watermarks that this rests on are given out by it: what comes behind them is late.
        """
        for key, reached in self._known(self._watermark_of).items():
            if reached > self.reached.get(key, _NEVER):
                self.reached[key] = reached

    def is_due(self, now: int) -> bool:
        """Tell whether more would be promised; asking changes nothing."""
        moment = max(now, self._clock())
        frontiers = self._known(lambda name: self._intake.foreseen(name, moment))
        return any(reached > self.reached.get(key, _NEVER) for key, reached in frontiers.items())

    def waits_for(self, key: Key) -> str:
        """Return what keeps a subscription from being settled further, for people."""
        if host := self.host_of(key):
            return f"what runs at {host}"
        tasks, installed = self._matcher.tasks(), self._catalogue.subscriptions[key]
        used = [tasks[name] for name in (*installed.definitions, installed.task) if name in tasks]
        types = {name for task in used for name in task.types if name not in task.needs}
        if not types:
            return "what it needs"
        least = min(sorted(types), key=self._foreseen)
        whose = self._intake.hindmost(least, self._clock())
        return f"{least} of {whose}" if whose else f"{least}, which nobody sends"

    def _watermark_of(self, type_name: str) -> int:
        return self._intake.watermark(type_name, self._clock())

    def _foreseen(self, type_name: str) -> int:
        return self._intake.foreseen(type_name, self._clock())

    def _known(self, watermark_of: WatermarkOf) -> dict[Key, int]:
        """By subscription: up to when all of its results are known."""
        by_task = self._matcher.frontiers(watermark_of)
        tasks = [(key, each.task) for key, each in self._catalogue.subscriptions.items()]
        own = {key: by_task[task] for key, task in tasks if task in by_task}
        return {**own, **self.elsewhere()}

    def end_what_is_over(self) -> None:
        """Stop what only subscriptions need of which nothing can be a result any more."""
        for key in self._matcher.over(self._foreseen, self._watermark_of):
            installed = self._catalogue.subscriptions[key]
            if installed.state == "active" and self.reached.get(key) != TIME_MAX_MS:
                self.end(installed)

    def end(self, installed: Installed) -> None:
        """A subscription is over: what it ran stops, and its name stays taken."""
        self.reached[installed.key] = TIME_MAX_MS  # no result comes later, whenever it ends
        self.ended += 1
        if self.keeps_on:
            return
        for key in (installed.task, *self._catalogue.end(installed)):
            if key in self._matcher:
                self._matcher.remove(key)
        names = {"subscriber": installed.subscriber, "name": installed.name}
        self._notes.tell("info", "ended", **names)

    def forget(self, keys: Iterable[Key]) -> None:
        """These begin, or are gone."""
        for key in keys:
            self.reached.pop(key, None)

    def state(self) -> list[Any]:
        """Return the state as plain data."""
        return [[*key, reached] for key, reached in self.reached.items()]

    def restore(self, state: Iterable[Any]) -> None:
        """Take up a state."""
        for subscriber, name, reached in state:
            self.reached[subscriber, name] = reached
