"""What all agents of one place share.

Owns struct classes, the durations of types, the doubt about times, when tasks began, and whoever
makes agents (making.py). Must not know who feeds them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from broker.engine.event.agent import WATERMARK_END
from broker.engine.event.event import event_class
from broker.engine.pattern.times.durations import Durations, Foresight
from broker.engine.pattern.uncertainty.verdicts import Doubt
from broker.engine.runtime.budget import Budget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.engine.event.event import Event
    from broker.engine.limits import Limits
    from broker.engine.pattern.agent.staged_agent import StagedAgent
    from broker.engine.pattern.times.assigned import LongestOf
    from broker.engine.runtime.making import Maker
    from language.taskgraph import Task
    from language.tree import AttributeType

# A fraction: within T(1 - ρ) or T(1 + ρ) of paper 001 (table 1) is decided to the millisecond,
# where a float may round to the other side.
EXACT = Fraction(0)


class Agents:
    """Hold what the agents of one place share."""

    def __init__(self, limits: Limits, *, strict: bool) -> None:
        """`strict`: see stages.base.Durations."""
        self._limits = limits
        self.classes: dict[str, type[Event]] = {}
        self._attributes: dict[str, dict[str, AttributeType]] = {}  # of primitive types
        self.durations = Durations(limits.event_duration_ms_max, strict=strict)
        self._beginning: dict[str, list[StagedAgent]] = {}  # by the instance's name
        self._begin: int | None = None
        self._floor = WATERMARK_END
        self.doubted: Doubt | None = None
        self.budget = Budget(limits.step_candidates_max, limits.step_bytes_max)
        self._maker: Maker | None = None

    # --- when tasks began ----------------------------------------------------------------

    @property
    def beginning(self) -> list[str]:
        """The tasks to which it matters when they began."""
        return list(self._beginning)

    def begin_all(self, instant: int) -> bool:
        """All tasks, also those to come, begin at the instant; whether that is earlier than known.

        That is where a silence may begin (`absent`), and from where `for` counts.
        """
        if self._begin is not None and instant >= self._begin:
            return False
        self._begin = instant
        for name in self._beginning:
            self.begin(name, instant)
        return True

    def begins_from(self, floor: int) -> None:
        """No task that has not begun begins before this time; unless said, all have begun."""
        self._floor = floor
        for agents in self._beginning.values():
            for agent in agents:
                agent.begins_from(floor)

    def begin(self, name: str, instant: int) -> None:
        """A task begins at the instant, if not before."""
        for agent in self._beginning.get(name, ()):
            agent.begin(instant)

    def forget(self, name: str) -> None:
        """A task runs no more."""
        self._beginning.pop(name, None)

    def begins_with(self, name: str, agent: StagedAgent) -> None:
        """It matters to an agent of the task when that began."""
        self._beginning.setdefault(name, []).append(agent)
        agent.begins_from(self._floor)
        if self._begin is not None:
            agent.begin(self._begin)

    def replaced(self, name: str, agent: StagedAgent) -> None:
        """Another runs in place of an agent of the task."""
        known = self._beginning.get(name, [])
        known[:] = [one for one in known if one is not agent]

    # --- making --------------------------------------------------------------------------

    @property
    def maker(self) -> Maker:
        """Return the maker of agents; all their kinds are imported when it is first asked for."""
        if self._maker is None:
            # Agents and their operators are most of the engine; a broker that only relays never
            # loads them.
            from broker.engine.runtime.making import Maker

            self._maker = Maker(self, self._limits)
        return self._maker

    def takes(self, name: str, attributes: Mapping[str, AttributeType]) -> None:
        """Have the class of a primitive type hold these attributes, too."""
        # Two texts may declare different ones of a type. What is held is packed by this class, so
        # one that knew the attributes of the first text alone would lose those of the second.
        before = self._attributes.get(name)
        if before is None or not attributes.items() <= before.items():
            self._attributes[name] = {**(before or {}), **attributes}
            self.classes[name] = event_class(name, self._attributes[name])

    def makes(self, task: Task, output: type[Event]) -> None:
        """A definition's events are to be detected: how long they last, its text says."""
        self.classes[output_name(task)] = output
        inputs = {name: input_name(task, name) for name in task.types}

        def made(longest_of: LongestOf, endless_ms: int | None) -> int | None:
            from broker.engine.pattern.times.assigned import longest_made_ms

            def given(name: str, alone: bool) -> int | None:
                return longest_of(inputs[name], alone)

            return longest_made_ms(task, given, endless_ms)

        self.durations.makes(output_name(task), made)

    def makes_no_more(self, task: Task) -> None:
        """They are no longer."""
        if task.output is None:
            return
        name = output_name(task)
        self.classes.pop(name, None)
        self.durations.makes_no_more(name)

    def foresight(self, task: Task) -> Foresight:
        """Return the bounds on how long the events of a task's inputs last."""
        return Foresight(self.durations, {name: input_name(task, name) for name in task.types})

    # --- uncertain times -----------------------------------------------------------------

    @property
    def doubting(self) -> bool:
        """Tell whether times are weighed."""
        return self.doubted is not None

    def doubt(self, drift: Fraction) -> None:
        """From now on times may be uncertain."""
        self.doubted = Doubt(drift)

    def doubt_up_to(self, most_ms: int) -> None:
        """An uncertainty of so much is foreseen."""
        if self.doubted is not None:
            self.doubted.most_ms = max(self.doubted.most_ms, most_ms)

    def state(self) -> dict[str, Any]:
        """Return what all agents share, as plain data; when tasks began is in their own states."""
        doubt_ms = None if self.doubted is None else self.doubted.most_ms
        return {"doubt_ms": doubt_ms, "durations": self.durations.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up such a state, before there is any task."""
        self.durations.restore(state["durations"])
        if state["doubt_ms"] is not None:
            self.doubted = self.doubted or Doubt(EXACT)
            self.doubted.most_ms = max(self.doubted.most_ms, state["doubt_ms"])


def weighed(state: Any) -> bool:
    """Tell whether a state is of an agent that weighs times."""
    return isinstance(state, dict) and state.get("doubt_ms") is not None


def output_name(task: Task) -> str:
    """Return the filterer's name for what a definition detects, as `input_name` gives it."""
    # Two texts may define one name differently; the key is the digest of the canonical text, so
    # equal definitions share a task and others never meet.
    return f"{task.name}@{task.key}"


def input_name(task: Task, event_type: str) -> str:
    """Return the filterer's name for an input; a definition's has its key, so two never meet."""
    key = task.needs.get(event_type)
    return event_type if key is None else f"{event_type}@{key}"
