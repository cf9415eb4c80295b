"""Which instances of a task hold the same, and so become one.

Owns what is compared of an agent. Must not know what runs, nor why a task runs twice. Invariant: of
two that are alike, the one reports from then on what the other would.

A state says all that what comes later depends on. What is not compared is what no report depends
on: how much was dropped so far, when silent groups were looked at last, whether it pays to let
events wait, and what those that wait may complete, of which the older instance knows no less. The
order in which a pattern's groups began decides but which goes first where a limit on them is
passed, and is not compared either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from broker.engine.pattern.agent.staged_agent import StagedAgent
from broker.engine.pattern.agent.staged_partition import packed
from broker.engine.runtime.shelf import Shelf
from broker.engine.window.agent import WindowAgent

if TYPE_CHECKING:
    from broker.engine.event.agent import Agent
    from broker.engine.event.event import Event
    from broker.engine.pattern.agent.staged_partition import Group
    from broker.engine.runtime.matcher import Matcher

# Of an agent's state.
SILENT = frozenset(
    (
        "swept",
        "patience",
        "overflow",
        "inverted",
        "outlasting",
        "groups_overflow",
        "dropped",
        "outside",
    )
)
GROUPED = frozenset(("partitions", "events"))
REACH = 7  # the place in a group's row of what may be completed there


def like(matcher: Matcher, name: str) -> str:
    """Return the first instance of the task that holds what this one does; else its own name.

    What is suspended holds nothing, and is like no other.
    """
    instance, suspended = matcher.running[name], matcher.suspensions.why
    agents = [seat.agent for seat in matcher.seats_of(name)]
    for other in matcher.instances(instance.task.key):
        if other == name or name in suspended:
            return name
        if other in suspended or matcher.running[other].needs != instance.needs:
            continue
        others = [seat.agent for seat in matcher.seats_of(other)]
        pairs = zip(others, agents, strict=True)
        if all(_alike(earlier, later, matcher.classes) for earlier, later in pairs):
            return other
    return name


def merge(matcher: Matcher, gone: str, into: str) -> None:
    """Have what needs an instance go on with another that holds the same, and stop it."""
    for name, instance in list(matcher.running.items()):
        if gone in instance.needs.values():
            needs = {
                kind: into if source == gone else source for kind, source in instance.needs.items()
            }
            matcher.rewire(name, needs)
    matcher.remove(gone)


def _alike(earlier: Agent, later: Agent, classes: Mapping[str, type[Event]]) -> bool:
    if isinstance(earlier, StagedAgent) and earlier.lone is not None:
        return isinstance(later, StagedAgent) and later.lone is not None  # neither holds anything
    for agent in (earlier, later):
        if isinstance(agent, WindowAgent):
            agent.tidy()  # silent groups of the two may have been looked at at other times
    if earlier.held() != later.held():
        return False
    if isinstance(earlier, StagedAgent) and isinstance(later, StagedAgent):
        if earlier.groups.keys() != later.groups.keys():
            return False
        for key in earlier.groups:
            if _group(earlier, key, classes) != _group(later, key, classes):
                return False
    return _essence(earlier.state()) == _essence(later.state())


def _group(agent: StagedAgent, key: Group, classes: Mapping[str, type[Event]]) -> bytes:
    """Return what a pattern holds of a group, but for what may be completed there."""
    shelf = Shelf(classes)
    row = packed(agent.groups[key], shelf)
    return msgspec.msgpack.encode([row[:REACH], row[REACH + 1 :], shelf.packed()])


def _essence(state: Mapping[str, Any]) -> bytes:
    """Return of an agent's state what its reports depend on."""
    # Of a pattern's groups the events are numbered through: they are compared each by itself.
    silent = SILENT | GROUPED if "partitions" in state else SILENT
    kept = {key: value for key, value in state.items() if key not in silent}
    if "partitions" in state:
        events = state["events"]
        kept["pending"] = [[leaf, events[number]] for leaf, number in state["pending"]]
    if "inner" in kept:
        kept["inner"] = _essence(kept["inner"])
    if "windows" in kept:
        kept["windows"] = {**kept["windows"], "drops": None}
    return msgspec.msgpack.encode(kept)
