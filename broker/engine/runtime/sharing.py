"""Instances of one task that hold the same, and so are one from then on.

Owns that comparison, and the merging. Must not know who uses a task. Invariant: whoever used the
instance that goes gets from the other what it would have got: a state says all that what comes
later depends on.

What is not compared is what no report depends on: how much was dropped so far, when silent groups
were looked at last, and whether it pays to let events wait. The order in which groups began decides
but which goes first where `groups_max` is passed, and is not compared either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from broker.engine.event.agent import Agent
    from broker.engine.runtime.matcher import Matcher

# Of an agent's state.
SILENT = frozenset(
    ("swept", "patience", "overflow", "inverted", "outlasting", "groups_overflow", "dropped")
)


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
        if all(map(_alike, others, agents)):
            return other
    return name


def merge(matcher: Matcher, gone: str, into: str) -> None:
    """Have what needs an instance go on with another that holds the same, and stop it."""
    for name, instance in list(matcher.running.items()):
        if gone in instance.needs.values():
            needs = {key: into if of == gone else of for key, of in instance.needs.items()}
            matcher.rewire(name, needs)
    matcher.remove(gone)


def _alike(one: Agent, other: Agent) -> bool:
    from broker.engine.pattern.staged_agent import StagedAgent

    if isinstance(one, StagedAgent) and one.lone is not None:
        return isinstance(other, StagedAgent) and other.lone is not None  # neither holds anything
    return one.held() == other.held() and _essence(one.state()) == _essence(other.state())


def _essence(state: Mapping[str, Any]) -> bytes:
    """Return of an agent's state what its reports depend on."""
    kept = {key: value for key, value in state.items() if key not in SILENT}
    if "inner" in kept:
        kept["inner"] = _essence(kept["inner"])
    if "windows" in kept:
        kept["windows"] = {**kept["windows"], "drops": None}
    return msgspec.msgpack.encode(kept)
