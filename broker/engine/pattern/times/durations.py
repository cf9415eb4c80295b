"""How long events last: for what is waited for, and for what is kept.

Owns what is known of each type. Must not know stages. Invariant: what is kept is never less than
what is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.engine.event.event import lasting
from language.tree import Comparison, Constant, Expression, Name
from language.walk import conjuncts

if TYPE_CHECKING:
    from broker.engine.event.event import Event


# How long a detected event lasts at most, given how long those of other types do (by the names of
# their classes, and whether it is made of one of them alone), and how long what has no bound does,
# where that is known.
Made = Callable[[Callable[[str, bool], int | None], int | None], int | None]


class Durations:
    """Return how long events of a type last at most.

    A type whose events so far were readings is taken to have readings only: then what it may yet
    bring begins after the watermark. `limit_ms` is the longest that any event may last. `strict`:
    past the first event that lasts, the limit is waited for; otherwise the longest so far is taken.
    What can no longer matter to an event that lasts for up to the limit is forgotten all the same.
    """

    def __init__(self, limit_ms: int, *, strict: bool) -> None:
        self.limit_ms = limit_ms
        self._strict = strict
        self._longest: dict[str, int] = {}
        self.changes = 0  # how often it turned out that another type has events that last
        self.version = 0  # how often anything became known
        self._foreseen: dict[str, int] | None = None
        self._extent_ms: int | None = None  # of a recording: no event lasts longer by itself
        self._made: dict[str, Made] = {}  # of detected types: what their texts say
        self._known: dict[str, int | None] = {}  # of these: what was found
        # The same, and at which version; also where those that nothing bounds last for the limit.
        self._likely: dict[tuple[str, bool], tuple[int, int | None]] = {}

    def observe(self, event_type: str, duration_ms: int) -> None:
        """An event of the type lasted so long."""
        longest_ms = self._longest.get(event_type, 0)
        if duration_ms > longest_ms:
            self._longest[event_type] = duration_ms
            # Spans are found anew when anything grew; stores only when a type has turned out to
            # last.
            self.version += 1
            self.changes += not longest_ms

    def foresee(self, longest_ms: dict[str, int], extent_ms: int | None = None) -> None:
        """All events of the input are known; these are the longest of their types.

        `extent_ms`: from the first start to the last end, where that is known, too.
        """
        self._foreseen, self._extent_ms = longest_ms, extent_ms
        self._known.clear()
        self.changes += 1
        self.version += 1

    def foreseen_ms(self) -> int:
        """The longest of all events of the input, where that is known beforehand; else 0."""
        return max((self._foreseen or {}).values(), default=0)

    def makes(self, event_type: str, made: Made) -> None:
        """Events of the type are detected; `made` says how long they last at most."""
        self._forget(event_type)
        self._made[event_type] = made

    def makes_no_more(self, event_type: str) -> None:
        """Nothing detects events of the type any longer: what was known of them goes."""
        self._forget(event_type)
        self._longest.pop(event_type, None)

    def _forget(self, event_type: str) -> None:
        """Forget what was found by the text that made such events."""
        self.version += 1
        self._made.pop(event_type, None)
        self._known.pop(event_type, None)
        for sure in (False, True):
            self._likely.pop((event_type, sure), None)

    def bound_ms(self, event_type: str) -> int | None:
        """The longest that an event of the type can last; None of a detected one without bound."""
        made = self._made.get(event_type)
        if made is None:
            # A type that a recording does not have is none that lasts.
            if self._foreseen is not None:
                return self._foreseen.get(event_type, 0)
            return self.limit_ms
        # Definitions over definitions ask each other: each text is read once.
        if event_type not in self._known:
            self._known[event_type] = made(lambda one, _: self.bound_ms(one), self._extent_ms)
        return self._known[event_type]

    def most_ms(self, event_type: str) -> int:
        """The same; where there is no bound, the limit stands for it, and what lasts longer is
        counted where that matters.
        """
        bound_ms = self.bound_ms(event_type)
        return self.limit_ms if bound_ms is None else bound_ms

    def outlasts(self, event_type: str, duration_ms: int) -> bool:
        """Return whether an event lasted longer than anything is kept for it."""
        return duration_ms > self.limit_ms and self.bound_ms(event_type) is None

    def state(self) -> dict[str, int]:
        """Plain data: the longest that was observed of each type."""
        return dict(self._longest)

    def restore(self, state: Mapping[str, int]) -> None:
        """Take up such a state."""
        for event_type, longest_ms in state.items():
            self.observe(event_type, longest_ms)

    def longest_ms(self, event_type: str, *, sure: bool = False) -> int:
        """Return how long an event of the type that is still to come may last.

        `sure`: one that nothing else bounds, for the limit, before any has lasted as well.
        """
        made = self._made.get(event_type)
        if made is None and self._foreseen is not None:
            return self._foreseen.get(event_type, 0)
        seen = self._longest.get(event_type, 0)
        if made is not None:
            likely_ms = self._likely_ms(event_type, made, sure=sure)
            return max(seen, self.most_ms(event_type) if likely_ms is None else likely_ms)
        # After the first that lasts nothing is known of the next. A replay that is not strict bets
        # on the longest so far, so that it does not wait a week for each event.
        if sure or (seen and self._strict):
            return max(seen, self.most_ms(event_type))
        return seen

    def _likely_ms(self, event_type: str, made: Made, *, sure: bool) -> int | None:
        """Return how long such events last at most, if what they are made of keeps to this.

        `sure`: those that are made of one event last as long as that, whatever any has so far.
        """
        # A definition's text is read again only when what is known of any type has grown.
        version, likely_ms = self._likely.get((event_type, sure), (-1, None))
        if version != self.version:
            likely_ms = made(lambda one, alone: self.longest_ms(one, sure=sure and alone), None)
            self._likely[event_type, sure] = (self.version, likely_ms)
        return likely_ms

    def reach_ms(self, event_type: str, *, lasts: bool) -> int:
        """Return how long before its end an event still to come may begin, for what is kept.

        Waiting for the longest so far is a bet on the others; what is dropped cannot come again.
        So here an event of a type that has lasted may last up to the limit, and so may one that is
        of use only if it lasts, whatever came before. (A detected one always may.)
        """
        foreseen = self._foreseen is not None or event_type in self._made
        if foreseen or lasts or event_type in self._longest:
            return self.most_ms(event_type)
        return 0

    def longest(self, event_type: str) -> int:
        """Return how long the longest of the type so far has lasted."""
        return self._longest.get(event_type, 0)


@dataclass(frozen=True, slots=True)
class Foresight:
    """The durations of one task's inputs; `inputs`: type as the task names it → its class's.

    `lasting` are those of which readings are of no use to a pattern: what it waits for will last.
    `sure`: these, and the one event that such a one is made of, may last for the limit where
    nothing else bounds them, whatever was seen so far. It does not matter how long those last that
    are taken for `points`.
    """

    durations: Durations
    inputs: Mapping[str, str]
    lasting: frozenset[str] = frozenset()
    sure: bool = False
    points: frozenset[str] = frozenset()

    def of(self, lasting: frozenset[str]) -> Foresight:
        """The same for one of the task's patterns."""
        return Foresight(self.durations, self.inputs, lasting)

    def surely(self, lasting: frozenset[str], points: frozenset[str] = frozenset()) -> Foresight:
        """The same for what cannot be taken back; events of these types, too, are to last."""
        lasting = self.lasting | lasting
        return Foresight(self.durations, self.inputs, lasting, sure=True, points=points)

    def longest_ms(self, event_type: str) -> int:
        """Return how long an event of the type that is still to come may last."""
        # Its end alone is asked for: how long it lasts makes that no earlier.
        if event_type in self.points:
            return 0
        sure = self.sure and event_type in self.lasting
        return self.durations.longest_ms(self.inputs[event_type], sure=sure)

    def reach_ms(self, event_type: str) -> int:
        """Return how long before its end such an event may begin, for what is kept."""
        return self.durations.reach_ms(self.inputs[event_type], lasts=event_type in self.lasting)

    def most_ms_of(self, event_type: str) -> int:
        """The longest that any event of the type, to come or past, may last."""
        return self.durations.most_ms(self.inputs[event_type])

    def bound_ms(self, event_type: str) -> int | None:
        """The same; None where nothing bounds it."""
        return self.durations.bound_ms(self.inputs[event_type])

    def observe(self, batch: Sequence[tuple[int, Sequence[Event]]]) -> int:
        """Remember how long these events lasted; how many did longer than is kept for them."""
        outlasting = 0
        for _, events in batch:
            lasted_ms = [event.end - event.start for event in lasting(events)]
            if lasted_ms:  # all are of one type
                event_type, longest_ms = events[0].event_type, max(lasted_ms)
                self.durations.observe(event_type, longest_ms)
                if self.durations.outlasts(event_type, longest_ms):
                    outlasting += sum([ms > self.durations.limit_ms for ms in lasted_ms])
        return outlasting

    def seen(self) -> dict[str, int]:
        """Of each input that has lasted, the longest so far, for a snapshot."""
        longest = {name: self.durations.longest(held) for name, held in self.inputs.items()}
        return {name: lasted_ms for name, lasted_ms in longest.items() if lasted_ms}

    def know(self, seen: Mapping[str, int]) -> None:
        """Take that up again."""
        for name, lasted_ms in seen.items():
            if name in self.inputs:
                self.durations.observe(self.inputs[name], lasted_ms)

    def most_ms(self) -> int:
        """Return the most of `reach_ms` over all inputs."""
        return max(map(self.reach_ms, self.inputs), default=0)

    def begins(self, watermark: int) -> int:
        """Return when events still to come begin at the earliest."""
        return watermark + 1 - self.most_ms()

    def longest_of_all_ms(self) -> int:
        """Return how long an event of any input that is still to come may last."""
        return max(map(self.longest_ms, self.inputs), default=0)


# --- what conditions say -------------------------------------------------------------------------


def longest_asked(conditions: tuple[Expression, ...]) -> int | None:
    """The greatest duration that passes conditions as `duration <= 5 s`; None if any passes."""
    limits = [
        limit
        for condition in conditions
        for part in conjuncts(condition)
        for limit in _limits(part)
    ]
    return min(limits, default=None)


def _limits(condition: Expression) -> Iterator[int]:
    """Yield what a comparison, or a chain of them, allows `duration` at most."""
    if not isinstance(condition, Comparison):
        return
    pairs = zip(condition.operands, condition.operators, condition.operands[1:], strict=False)
    for left, operator, right in pairs:
        # `<` allows 1 ms less; a millisecond more is kept for the sake of one rule.
        if operator in {"=", "<", "<="} and _is_duration(left) and isinstance(right, Constant):
            yield from _whole(right.value)
        if operator in {"=", ">", ">="} and _is_duration(right) and isinstance(left, Constant):
            yield from _whole(left.value)


def _is_duration(node: Expression) -> bool:
    return isinstance(node, Name) and node.name == "duration"


def _whole(value: object) -> Iterator[int]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield max(0, int(value))
