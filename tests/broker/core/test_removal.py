"""Nothing of a task stays where tasks run once it is removed, whatever comes or does not come."""

from __future__ import annotations

import gc
import types
from typing import Any

import pytest

from broker.core.intake import IntakeOptions
from broker.engine.event.event import Event
from broker.engine.runtime.budget import in_one_go
from broker.engine.runtime.matcher import Matcher
from headwater.engine import Pipeline
from language import check_text

TEXT = """
event A(n: int) event B(n: int)
define X(n) detect A(n > {n}) then[..5 s] B assign n = A.n
subscription S from a to b detect X(n > 0) as x then[..5 s] X(n = 0) as y
subscription T from a to b detect A(n = {n})
"""
LEFT_OUT = (type, types.ModuleType, types.CodeType, types.BuiltinFunctionType)


def reachable(root: Any) -> int:
    """How many objects hang on one; not what programs are made of."""
    seen: dict[int, Any] = {}
    left = [root]
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, LEFT_OUT):
            continue
        seen[id(one)] = one
        if isinstance(one, types.FunctionType):
            left += one.__closure__ or ()
        else:
            left += gc.get_referents(one)
        if isinstance(one, dict):
            left += one  # its keys, which no collector looks at where they are text
    return len(seen)


def come_and_go(matcher: Matcher, number: int, events: list[Event]) -> None:
    graph = check_text(TEXT.format(n=number)).demand().graph
    tasks = list(graph.tasks.values())
    for task in tasks:
        matcher.install(task)
    in_one_go(matcher.push(events, lambda _: 0))
    for task in reversed(tasks):
        matcher.remove(task.key)


@pytest.mark.parametrize("kinds", ["", "A", "AB"])
def test_what_comes_and_goes_leaves_nothing(kinds: str) -> None:
    """Without events, with some, and with such that something is detected, and lasts."""
    intake = Pipeline(check_text(TEXT.format(n=0)).demand(), IntakeOptions()).intake
    said = [{"type": one, "id": one, "timestamp": ord(one), "n": 100} for one in kinds]
    events = intake.from_mappings(said).events
    matcher = Matcher()
    for number in range(3):
        come_and_go(matcher, number, events)
    before = reachable(matcher)
    for number in range(3, 13):
        come_and_go(matcher, number, events)
    assert reachable(matcher) == before
