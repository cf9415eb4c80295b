"""The smallest part of a case that still shows what the whole shows.

Owns: what is left out, and in which order. Must not know: what is looked for; it asks.
Invariant: what is returned still shows it, and nothing of it can be left out alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from tests.oracles import spec as s

Events: TypeAlias = list[dict[str, Any]]
Shows: TypeAlias = Callable[[s.Spec, Events], bool]


def shrunk(spec: s.Spec, events: Events, shows: Shows) -> tuple[s.Spec, Events]:
    """The case with less of it, as long as it still shows what is looked for.

    Args:
        spec: the specification.
        events: its trace.
        shows: whether a case still shows it, such as that two matchers differ.

    Returns:
        A specification and a trace; those given where nothing can be left out.
    """
    found = (spec, events)
    while (less := next((one for one in _less(*found) if shows(*one)), None)) is not None:
        found = less
    return found


def _less(spec: s.Spec, events: Events) -> Iterator[tuple[s.Spec, Events]]:
    """Every case with one thing less."""
    for number in range(len(events)):
        yield spec, events[:number] + events[number + 1 :]
    for number, one in enumerate(spec.subscriptions):
        others = spec.subscriptions[:number], spec.subscriptions[number + 1 :]
        if len(spec.subscriptions) > 1:
            yield replace(spec, subscriptions=(*others[0], *others[1])), events
        for case in _simpler(one.case):
            told = replace(one, case=case)
            yield replace(spec, subscriptions=(*others[0], told, *others[1])), events
    for number, event in enumerate(events):
        for name in ("n", "v", "tag", "flag", "location", "position", "uncertainty"):
            if name in event:
                rest: Mapping[str, Any] = {k: v for k, v in event.items() if k != name}
                yield spec, [*events[:number], dict(rest), *events[number + 1 :]]


def _simpler(case: s.Case) -> Iterator[s.Case]:
    """The case without one of its clauses, or with less of a pattern."""
    if case.assign:
        yield replace(case, assign=())
    if case.consuming:
        yield replace(case, consuming=())
    if case.group_by and not case.assign:
        yield replace(case, group_by=())
    if case.thin:
        yield replace(case, thin=None)
    if isinstance(case.pattern, s.Suffixed):
        suffixes = case.pattern.suffixes
        for number in range(len(suffixes)):
            left = (*suffixes[:number], *suffixes[number + 1 :])
            inner = s.Suffixed(case.pattern.operand, left) if left else case.pattern.operand
            yield replace(case, pattern=inner)
