"""The places at which agents work, and what they share.

Owns these records. Must not know who feeds agents. Invariant: a domain counts the seats that it
has, and every seat that is due stands in its domain's heap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.core.agent import Agent, Result
from broker.core.event import Event
from language.tree import Case

if TYPE_CHECKING:
    from language.taskgraph import Task


AtOnce = Callable[[Sequence[Event]], list[Result]]


@dataclass(slots=True)
class Domain:
    """Agents with the same inputs share a watermark, and a heap of who is due at which."""

    types: tuple[str, ...]
    definitions: tuple[str, ...]
    level: int
    due: list[tuple[int, int]] = field(default_factory=list)
    seats: int = 0


@dataclass(slots=True)
class Seat:
    """An agent at work: one case of one task.

    A subscription to single events, which are results as they come, is asked `at_once`.
    """

    index: int
    task: Task
    agent: Agent
    domain: Domain
    contents: list[int]
    case: Case
    due: int | None = None
    at_once: AtOnce | None = None
    weighs: bool = True  # whether uncertain times matter to it even so
    waits_for_end: bool = False


def at_once(seat: Seat) -> AtOnce | None:
    """What makes results of the events of a subscription to single events; None of all others."""
    from broker.core.pattern_agent import PatternAgent

    agent = seat.agent
    if seat.task.kind == "definition" or not isinstance(agent, PatternAgent):
        return None
    return agent.maker() if agent.is_lone else None
