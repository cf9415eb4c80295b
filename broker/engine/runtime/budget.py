"""The budget of a step: candidates to look at, and bytes of what is made of them; and its slices.

Owns how much of both is left, which steps of a message are known to cost more, and how work is done
in slices, so that whoever drives it may do something else in between. Must not know what a
candidate is. Invariant: a step that is known to cost more is suspended before any of its work is
done, so that a recovery from the journal repeats none; what comes of work is the same in however
many slices it is done, as nothing else happens to what it works on before its end.

A candidate is an occurrence of two events that a join tests or puts together: a quarter of a
microsecond of a desktop's core. What costs more is charged as several (see `weight` and `RESULT`).

    work:    walk ──slice──▶ yield ──▶ slice ──▶ yield ──▶ … ──▶ return what came of it
    driver:  next()          serves others       next()          carries that out

A slice is counted in candidates, as is the budget: its end depends on the events alone. It ends
between two agents or two results, so it may take as long as one agent's step more.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence, Sized
from typing import Any, TypeAlias, TypeVar

CANDIDATES_MAX = 500_000  # of one step: an eighth of a second
CANDIDATES_ALONE = 80 * CANDIDATES_MAX  # of one step where nobody else waits: ten seconds
BYTES_MAX = 64 * 1024 * 1024  # of what one step makes
UNLIMITED = 2**62
# A message from the journal must end as it did. Steps that exceeded are known by their number; all
# others get far more than they took, as a later version may count the same work higher.
AGAIN = 64  # times the budget is had by steps of messages that are handled again

# A batch of a thousand events may cost what a thousand batches of one may: how events were cut into
# batches decides nothing.
EACH_EVENT = 160  # candidates that each event brings with it: a result, or so many partners
EACH_DERIVED = 16  # of an event that a definition gave: fewer than a result costs, or a chain of
# definitions, each with two results an event, would double from step to step
RESULT = 100  # candidates that a result costs, beside those for what it binds
LISTED = 8  # candidates that each event of a result costs
TIED = 4  # candidates that each place costs, and three more, of one whose order its span leaves
PLACES = 2  # of an occurrence, or parts of a condition, that cost one candidate
OCCURRENCE_BYTES = 80  # of an occurrence: a tuple, its end, and where they are kept
PLACE_BYTES = 8


class TooMuchWorkError(Exception):
    """A step would exceed its budget; `what` is the part of the budget that is used up."""

    def __init__(self, what: str) -> None:
        super().__init__(f"a step of its agent exceeds its budget of {what}")
        self.what = what


def weight(places: int, parts: int = 0) -> int:
    """The candidates that it costs to test a pair of so many places and parts of conditions."""
    # A pair of single events without conditions is 1; with four places and two parts it is 3.
    return 1 + (places + parts - 2) // PLACES


def occurrence_bytes(places: int) -> int:
    """Return what an occurrence of so many places is charged for, beside the pair it is made of."""
    return OCCURRENCE_BYTES + PLACE_BYTES * places


class Budget:
    """The work that agents of one process may still do in the step that is under way.

    `candidates` and `bytes` are what is left. A step has `candidates_max` and `bytes_max`; outside
    of steps nothing is counted. `spent` are the candidates of the slice that is under way, which
    has `slice_max`, or as many results as cost that.
    """

    __slots__ = (
        "bytes",
        "bytes_max",
        "candidates",
        "candidates_max",
        "each",
        "exceeded",
        "given",
        "planned",
        "slice_max",
        "slice_results",
        "spare",
        "spent",
        "steps",
    )

    def __init__(self, candidates_max: int = UNLIMITED, bytes_max: int = UNLIMITED) -> None:
        self.candidates_max = candidates_max
        self.bytes_max = bytes_max
        self.steps = 0  # of the message that is handled
        self.planned: dict[int, str] = {}  # of these, those that are known to cost more: of what
        self.exceeded: list[tuple[int, str]] = []  # of these, those that were found to
        self.spare = 1
        self.each = EACH_EVENT  # candidates that an event of this step brings
        self.given = self.candidates = self.bytes = UNLIMITED
        self.slice_max, self.slice_results = CANDIDATES_EACH, CANDIDATES_EACH // RESULT
        self.spent = 0

    def cut(self, candidates: int) -> None:
        """Have slices of so many candidates."""
        self.slice_max, self.slice_results = candidates, max(1, candidates // RESULT)

    def message(self, planned: Iterable[tuple[int, str]] | None = None) -> None:
        """Begin a message; one that is handled again has the steps that exceeded the budget before.

        Of others of such a message none did, whatever this version of the program would charge for
        them: they may cost several times as much.
        """
        self.steps = 0
        self.planned = dict(planned or ())
        self.exceeded = []
        self.spare = 1 if planned is None else AGAIN

    def exceed(self, what: str) -> None:
        """Note that the step that is under way exceeds its budget."""
        self.exceeded.append((self.steps, what))

    def begin(self, inputs: Sequence[tuple[int, Sized]], derived: bool = False) -> None:
        """Begin an agent's step with these inputs. Raises TooMuchWorkError of a planned one.

        `derived`: definitions gave the events.
        """
        # Counted and not timed: the same journal suspends the same steps on a Raspberry Pi and on a
        # server.
        self.steps += 1
        if self.planned and self.steps in self.planned:
            raise TooMuchWorkError(self.planned[self.steps])
        self.each = EACH_DERIVED if derived else EACH_EVENT
        candidates = self.spare * self.candidates_max
        for _, events in inputs:
            candidates += self.each * len(events)
        self.given = self.candidates = candidates
        self.bytes = self.spare * self.bytes_max

    def end(self) -> None:
        """End the step: outside of steps nothing is charged."""
        self.spent += self.given - self.candidates
        self.given = self.candidates = self.bytes = UNLIMITED

    def grant(self, events: int) -> None:
        """Allow for events that waited and are taken up by this step."""
        self.given += self.each * events
        self.candidates += self.each * events

    def spend(self, candidates: int, size_bytes: int = 0) -> None:
        """Charge work. Raises TooMuchWorkError where the step has no more."""
        self.candidates -= candidates
        if self.candidates < 0:
            raise TooMuchWorkError("candidates")
        if size_bytes:
            self.bytes -= size_bytes
            if self.bytes < 0:
                raise TooMuchWorkError("bytes")

    def keep(self, occurrences: int, places: int) -> None:
        """Charge occurrences that were made, each of so many places. Raises TooMuchWorkError."""
        self.spend(occurrences * weight(places), occurrences * occurrence_bytes(places))

    def tie(self, occurrences: Sequence[Any]) -> None:
        """Charge occurrences that are to be told apart by their events, some of them in lists."""
        places = 0
        for occurrence in occurrences:
            places += 3
            if occurrence.__class__ is tuple:
                places += len(occurrence) - 2
                for member in occurrence:
                    if member.__class__ is tuple:
                        places += len(member)
        self.spend(TIED * places)

    def report(self, found: Sequence[tuple[Any, Any]]) -> None:
        """Charge results to be made of occurrences, with their groups; some of them bind lists."""
        listed = 0
        for occurrence, _ in found:
            if occurrence.__class__ is not tuple:
                listed += 1
                continue
            listed += len(occurrence) - 2
            for member in occurrence:
                if member.__class__ is tuple:
                    listed += len(member)
        self.spend(RESULT * len(found) + LISTED * listed)


Value = TypeVar("Value")

Slices: TypeAlias = Generator[None, None, Value]

# Of one slice: a tenth of a step's budget, some 3 ms of a desktop's core, after which a client that
# waits for a PINGRESP is served. Less would pay more for the turns of the loop than for the work.
CANDIDATES_EACH = 50_000


def in_one_go(work: Slices[Value]) -> Value:
    """Do all of the work; return what came of it."""
    try:
        while True:
            next(work)
    except StopIteration as end:
        value: Value = end.value
        return value
