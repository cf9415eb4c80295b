"""How early an assigned time can end a window's event, and how long an event may last.

Owns what each choice of an assigned time (language/times.py) says of a window, and the joining of
what is asked of events, what is foreseen of their types, and the limit. Must not know what is open.
Invariant: no event ends before the earliest of its anchors, whatever its group's events, and how
long events may last never shrinks; where nothing can be said, None is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Literal

from broker.engine.pattern.times.durations import Foresight, longest_asked
from language.times import ENDS, TimeChoice, choices_of
from language.tree import Assignment, Attribute, Definition, Expression, Name

if TYPE_CHECKING:
    from broker.engine.event.agent import LeafEvents
    from broker.engine.window.code import Shape

# The last instant of the window and its first one, the end of the newest event in it, the least end
# and the least start of such an event.
Moment = Literal["window end", "window start", "newest end", "least end", "least start"]
Anchors = dict[Moment, int]  # how many milliseconds before a moment the event may end
WINDOW = "window"

AnchorsOf = Callable[[str], Anchors | None]  # of a name


def end_anchors(node: Definition, assigned: tuple[Assignment, ...]) -> Anchors | None:
    """Return the anchors of the end of a case's events; `assigned` is what the case assigns."""
    assert node.window is not None, "anchors are of windows"
    rows = {} if node.post is None else {item.name: item.value for item in assigned}

    def inside(name: str) -> Anchors | None:
        return _anchors(rows[name], _of_event) if name in rows else _of_event(name)

    made = assigned if node.post is None else node.post.assign
    ends = [item.value for item in made if item.name in ENDS]
    # The window's end stands where what is assigned is null.
    anchors = _joined([{"window end": 0}, *(_anchors(value, inside) for value in ends)])
    if anchors is None or not node.window.runs:
        return anchors
    # A session is as long as its events: its edges are theirs.
    edges: dict[Moment, Moment] = {"window end": "newest end", "window start": "least start"}
    return _joined({edges.get(moment, moment): ms} for moment, ms in anchors.items())


def _joined(several: Iterable[Anchors | None]) -> Anchors | None:
    """Return the anchors of a choice: of each moment the earliest."""
    joined: Anchors = {}
    for anchors in several:
        if anchors is None:
            return None
        for moment, earlier_ms in anchors.items():
            joined[moment] = max(earlier_ms, joined.get(moment, earlier_ms))
    return joined


def _anchors(value: Expression, inside: AnchorsOf) -> Anchors | None:
    """Return the anchors of a value; `inside`: of a name that an aggregate asks of many."""
    return _joined(_of_choice(choice, inside) for choice in choices_of(value))


def _of_choice(choice: TimeChoice, inside: AnchorsOf) -> Anchors | None:
    time = choice.time
    if time is None:
        return None
    if isinstance(time, Attribute) and time.base == WINDOW and not choice.of_many:
        # A window is half open: its end is 1 ms after its last instant.
        anchors: Anchors | None = (
            {"window start": 0} if time.name == "start" else {"window end": -1}
        )
    elif isinstance(time, Name) and not choice.of_many:
        anchors = {"newest end": 0} if time.name in ENDS else _of_event(time.name)
    else:
        anchors = inside(time.name)
    # What is added makes it no earlier, and is not leant on.
    earlier_ms = max(0, ceil(-choice.added_ms))
    return anchors and {moment: ms + earlier_ms for moment, ms in anchors.items()}


def _of_event(name: str) -> Anchors | None:
    if name in ENDS:
        return {"least end": 0}
    return {"least start": 0} if name == "start" else None


def says_events(value: Expression, partial: Mapping[str, Expression]) -> bool:
    """Return whether a time comes of events, and not of its window alone.

    `partial` is what `pre` assigns where `post` asks: its rows are named within aggregates.
    """
    return any(_says_events(choice, partial) for choice in choices_of(value))


def _says_events(choice: TimeChoice, partial: Mapping[str, Expression]) -> bool:
    time = choice.time
    if isinstance(time, Attribute) and not choice.of_many:
        return time.base != WINDOW
    if isinstance(time, Name) and choice.of_many and time.name in partial:
        return says_events(partial[time.name], {})
    return True


# --- how long events last ------------------------------------------------------------------------


class Lasting:
    """The durations of one case's inputs.

    What conditions ask is certain, as `duration = 0`; so is the limit of primitive events. Where an
    agent is given foresight, types are taken to bring what they have brought (Durations): sessions
    of readings then close when their gap has passed, and not when an event of the greatest length
    could not join any more.
    """

    def __init__(self, shape: Shape, limit_ms: int, foresight: Foresight | None) -> None:
        self._types = [operand.event_type for operand in shape.names.operands]
        self._asked = [longest_asked(operand.conditions) for operand in shape.names.operands]
        # What a definition makes may last longer than a primitive event.
        self._limits = [None if detected else limit_ms for detected in shape.detected]
        self._foresight = foresight

    def observe(self, batch: Sequence[LeafEvents]) -> None:
        """Remember how long these events lasted."""
        if self._foresight is None:
            return
        for _, events in batch:
            for event in events:
                if event.start < event.end:
                    duration_ms = event.end - event.start
                    self._foresight.durations.observe(event.event_type, duration_ms)

    def longest_ms(self) -> int | None:
        """Return how long an event of any operand may last; None where nobody knows."""
        longest = 0
        for place, event_type in enumerate(self._types):
            limits = [
                each for each in (self._asked[place], self._limits[place]) if each is not None
            ]
            if self._foresight is not None:
                limits.append(self._foresight.longest_ms(event_type))
            if not limits:
                return None
            longest = max(longest, min(limits))
        return longest
