"""What of a test's expectations held, and what differs.

Owns the assignment of results to expectations. Must not know files or output. Invariant: a result
meets at most one expectation and an expectation takes at most one result; as many as can be are
met, so that the order of expectations does not decide whether a test passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.engine.ingest.reasons import LATE
from headwater.testing.compare import differences, result_text
from headwater.testing.play import RESULTS_MAX, Played, Reported
from headwater.testing.script import Expect, ExpectRefused, NoMore, SendStep, Test

SHOWN_MAX = 5  # results told for one difference
DIFFERENCES_MAX = 20  # told of one test


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference from what was expected, at a line of the file; `details` are lines below it."""

    line: int
    kind: str  # missing, unexpected, passed_over, taken, too_many
    message: str
    details: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As programs get it."""
        return {
            "line": self.line,
            "kind": self.kind,
            "message": self.message,
            "details": list(self.details),
        }


@dataclass(slots=True)
class _Claims:
    """Which expectation has which result: a matching that only ever grows."""

    results: Sequence[Reported]
    wanted: list[Expect] = field(default_factory=list)
    of_result: dict[int, int] = field(default_factory=dict)  # result -> expectation

    def claim(self, expect: Expect, known: int) -> bool:
        """Find a result among the first `known` for an expectation, moving others if need be."""
        self.wanted.append(expect)
        return self._augment(len(self.wanted) - 1, known)

    def _augment(self, first: int, known: int) -> bool:
        """A shortest chain of moves, by breadth, so that no depth is too deep."""
        came: dict[int, tuple[int, int | None]] = {}  # result -> (expectation, result before)
        queue: list[tuple[int, int | None]] = [(first, None)]
        for number, before in queue:
            for index in range(known):
                if index in came or differences(self.wanted[number], self.results[index].result):
                    continue
                came[index] = (number, before)
                holder = self.of_result.get(index)
                if holder is not None:
                    queue.append((holder, index))
                    continue
                self._move(index, came)
                return True
        self.wanted.pop()
        return False

    def _move(self, last: int, came: dict[int, tuple[int, int | None]]) -> None:
        index: int | None = last
        while index is not None:
            self.of_result[index], index = came[index]


def judge(test: Test, played: Played) -> list[Difference]:
    """Every difference between what a test expects and what it gave, in the order of the file."""
    return _Judgement(test, played).found


class _Judgement:
    """One test on its way."""

    def __init__(self, test: Test, played: Played) -> None:
        self._test = test
        self._played = played
        self._claims = _Claims(played.reported)
        self._told: set[int] = set()  # results told as unexpected
        self._last = max(
            (n for n, s in enumerate(test.steps) if isinstance(s, SendStep)), default=-1
        )
        self.found: list[Difference] = []
        expected = {(s.event_id, s.reason) for s in test.steps if isinstance(s, ExpectRefused)}
        for number, step in enumerate(test.steps):
            if isinstance(step, SendStep):
                self._sent(number, step, expected)
            elif isinstance(step, Expect):
                self._expect(number, step)
            elif isinstance(step, NoMore):
                self._no_more(number, step)
            else:
                self._refused(number, step)
        if played.cut:
            sentence = f"the test gave more than {RESULTS_MAX} results; make it smaller"
            self.found.append(Difference(test.line, "too_many", sentence))

    def _known(self, step: int) -> int:
        """Count the results known at a step; after the last event nothing more comes."""
        if step > self._last:
            return len(self._played.reported)
        return sum(reported.steps <= step for reported in self._played.reported)

    def _sent(self, number: int, step: SendStep, expected: set[tuple[str, str]]) -> None:
        reason = self._played.passed_over.get(number)
        if reason is None:
            return
        plain = "late" if reason == LATE else "repeat"
        if not any(event_id == step.event_id and _alike(reason, why) for event_id, why in expected):
            sentence = f"event {step.event_id} was passed over: {reason.replace('_', ' ')}"
            hint = f"if it should be, say `expect {plain} {step.event_id}`"
            self.found.append(Difference(step.line, "passed_over", sentence, (hint,)))

    def _refused(self, number: int, step: ExpectRefused) -> None:
        for before, reason in self._played.passed_over.items():
            sent = self._test.steps[before]
            assert isinstance(sent, SendStep)
            if before < number and sent.event_id == step.event_id and _alike(reason, step.reason):
                return
        sentence = f"event {step.event_id} was taken and is no {step.reason} one"
        if step.reason == LATE:
            sentence = f"event {step.event_id} was taken and is not late"
        self.found.append(Difference(step.line, "taken", sentence))

    def _expect(self, number: int, step: Expect) -> None:
        count = self._known(number)
        if self._claims.claim(step, count):
            return
        later = [
            reported.steps
            for index, reported in enumerate(self._played.reported)
            if index >= count and not differences(step, reported.result)
        ]
        if later:
            sentence = f"{step.subscription} reported it later: {self._moment(later[0])}"
            self.found.append(Difference(step.line, "missing", sentence))
            return
        self.found.append(
            Difference(
                step.line,
                "missing",
                f"{step.subscription} did not report this",
                tuple(self._near(step, count)),
            )
        )

    def _moment(self, steps: int) -> str:
        if steps > self._last + 1:
            return "when nothing more was to come"
        return f"with line {self._test.steps[steps - 1].line}"

    def _near(self, step: Expect, known: int) -> list[str]:
        """List what was reported instead, the most alike first, and in what it differs."""
        candidates = []
        for index, reported in enumerate(self._played.reported[:known]):
            if reported.result.subscription == step.subscription:
                parts = differences(step, reported.result)
                candidates.append((len(parts), index in self._claims.of_result, index, parts))
        if not candidates:
            return [f"{step.subscription} reported nothing"]
        candidates.sort(key=lambda candidate: candidate[:3])
        lines = []
        for _, claimed, index, parts in candidates[:SHOWN_MAX]:
            text = result_text(self._played.reported[index].result, self._test.zero_ms)
            why = f"other {', '.join(parts)}" if parts else "expected above"
            lines.append(f"but {text}  ({why}{'; expected above' if claimed and parts else ''})")
        if len(candidates) > SHOWN_MAX:
            lines.append(f"and {len(candidates) - SHOWN_MAX} more of {step.subscription}")
        return lines

    def _no_more(self, number: int, step: NoMore) -> None:
        extra = [
            index
            for index in range(self._known(number))
            if index not in self._claims.of_result
            and index not in self._told
            and step.subscription in {None, self._played.reported[index].result.subscription}
        ]
        if not extra:
            return
        self._told.update(extra)
        shown = [
            result_text(self._played.reported[index].result, self._test.zero_ms)
            for index in extra[:SHOWN_MAX]
        ]
        if len(extra) > SHOWN_MAX:
            shown.append(f"and {len(extra) - SHOWN_MAX} more")
        count = "a result that was" if len(extra) == 1 else f"{len(extra)} results that were"
        self.found.append(
            Difference(step.line, "unexpected", f"{count} not expected", tuple(shown))
        )


def _alike(reason: str, wanted: str) -> bool:
    """A repeat that says something else is a repeat as well."""
    return (reason == LATE) == (wanted == LATE)
