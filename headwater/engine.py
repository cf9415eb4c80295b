"""The engine as a library: a specification, events in, results out, in one process.

Owns the order of the input and the form of its outcome. Must not know files or sockets.
Invariant: the results depend on the specification and the events, not on how events were batched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from broker.core.intake import Decoded, Intake, IntakeOptions
from broker.engine.event.agent import WATERMARK_END, WATERMARK_NONE, Result
from broker.engine.event.event import ByClass, in_order
from broker.engine.event.event import Event as CoreEvent
from broker.engine.event.own import Function
from broker.engine.ingest import reasons
from broker.engine.ledger import Account, Ledger
from broker.engine.limits import Limits
from broker.engine.runtime.budget import (
    BYTES_MAX,
    CANDIDATES_ALONE,
    CANDIDATES_MAX,
    Slices,
    in_one_go,
)
from broker.engine.runtime.matcher import Matcher
from broker.engine.runtime.results import told
from headwater.events import Event, taken_out
from headwater.replays.reference_tables import tables_among, tables_beside
from headwater.replays.release import Release
from language import Program, Specification, check_text
from language.errors import HeadwaterError

BATCH_EVENTS = 4_096  # of a recording fed at once: results wait for no more than that
STATE_VERSION = 1


class EventError(HeadwaterError):
    """An event of a batch cannot be taken; nothing of the batch was."""


class WorkError(HeadwaterError):
    """A step of one task would take more work than is allowed; `names` are the tasks."""

    def __init__(self, names: Sequence[str], what: str) -> None:
        super().__init__(
            f"{', '.join(names)}: one step would look at more {what} than is allowed; bound it with"
            " `within` or a context as `[recent]`, or allow more (step_candidates)"
        )
        self.names = tuple(names)


class StateError(HeadwaterError):
    """A state cannot be taken up by this engine."""


class Extent:
    """Of a whole recording: how long the longest event of each type lasted, and the least start.

    Also how uncertain the most uncertain one is.
    """

    def __init__(self) -> None:
        self.longest_ms: dict[str, int] = {}
        self.begin: int | None = None
        self.end: int | None = None
        self.uncertainty_ms = 0

    @property
    def extent_ms(self) -> int | None:
        """From the least start to the greatest end."""
        return None if self.begin is None or self.end is None else self.end - self.begin

    def add(self, events: Iterable[CoreEvent]) -> None:
        """Take more of the recording in, in any order."""
        longest_ms, begin, end = self.longest_ms, self.begin, self.end
        for event in events:
            start, lasted_ms = event.start, event.end - event.start
            if lasted_ms > longest_ms.get(event.event_type, 0):
                longest_ms[event.event_type] = lasted_ms
            if begin is None or start < begin:
                begin = start
            if end is None or event.end > end:
                end = event.end
            self.uncertainty_ms = max(self.uncertainty_ms, event.uncertainty)
        self.begin, self.end = begin, end


class Pipeline:
    """Intake and matcher of one input stream; the engine and the replay share it."""

    def __init__(
        self,
        specification: Specification | Program,
        options: IntakeOptions,
        drift: float = 0.0,
        *,
        longest_ms: int | None = None,
        state: Mapping[str, Any] | None = None,
        step_candidates: int = CANDIDATES_ALONE,
    ) -> None:
        """`longest_ms`, `state`, `step_candidates`: see Engine."""
        bytes_max = BYTES_MAX * max(1, step_candidates // CANDIDATES_MAX)
        limits = Limits(step_candidates_max=step_candidates, step_bytes_max=bytes_max)
        if longest_ms is not None:
            limits = msgspec.structs.replace(limits, event_duration_ms_max=longest_ms)
        self.ledger = Ledger()
        self._passed: int | None = None  # events are known to end after this
        self._begin: int | None = None  # the least start so far
        self._lasted_ms = 0  # the longest so far
        self._begun = False  # whether no event to come begins before that
        self.intake = Intake(options, limits, self.ledger)
        self.matcher = Matcher(limits, self.ledger)
        self.matcher.begins_from(WATERMARK_NONE)
        declared = [kind for kind in specification.event_types.values() if not kind.defined]
        self._types = [kind.name for kind in declared]
        self.intake.declare(declared)
        if longest_ms is not None:
            self.matcher.durations.foresee({kind.name: longest_ms for kind in declared})
        if drift:  # before what a state says of doubts, which knows of no drift
            self.matcher.doubt(Fraction(str(drift)))
        if state is not None:
            self.matcher.restore_shared(state["shared"])
        graph = specification.graph
        for key in (*graph.active(graph.roots), *graph.roots):
            self.matcher.install(graph.tasks[key])
        if state is not None:
            self._restore(state)

    def state(self) -> dict[str, Any]:
        """Plain data; to be encoded before the next event, as it is not all copied."""
        return {
            "shared": self.matcher.shared_state(),
            "tasks": self.matcher.state(),
            "intake": self.intake.state(),
            "passed": self._passed,
            "beginning": [self._begin, self._lasted_ms, self._begun],
            "ledger": _ledger_state(self.ledger),
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        if set(state["tasks"]) != set(self.matcher.state()):
            raise StateError("the state is of another specification, or of another version of it")
        self.matcher.restore(state["tasks"])
        self.intake.restore(state["intake"])
        self._passed = state["passed"]
        # One that was kept without this may have begun long ago.
        self._begin, self._lasted_ms, begun = state.get("beginning", (None, 0, True))
        if begun:
            self._know_beginning()
        else:
            self._settle_beginning()
        _restore_ledger(self.ledger, state["ledger"])

    def foresee(self, whole: Extent) -> None:
        """Tell what is known of a recording before its first event is admitted."""
        self.matcher.durations.foresee(whole.longest_ms, whole.extent_ms)
        if whole.begin is not None:
            self.matcher.begin(whole.begin)
            self._know_beginning()
        if whole.uncertainty_ms:
            self.matcher.doubt(most_ms=whole.uncertainty_ms)

    def admit(self, events: list[CoreEvent], by_class: ByClass | None = None) -> list[Result]:
        """Take decoded events of the stream, and them by class if known; what became known."""
        passed, taken = self._passed, events
        if passed is not None:
            late = sum(event.end <= passed for event in events)
            if late:
                self.ledger.events.drop(reasons.LATE, late)
                events = [event for event in events if event.end > passed]
        admitted = self.intake.admit(events)
        if admitted.events is not taken:
            by_class = None
        if self.matcher.has_beginnings and admitted.events:
            self._begins(admitted.events)
        # The clock alone, while that is all: it is asked for each event.
        watermark = self.intake.watermark if passed is None else self.watermark
        return self._counted(self.matcher.push(admitted.events, watermark, by_class=by_class))

    def _begins(self, events: list[CoreEvent]) -> None:
        """Tasks begin with the least start of the input, whatever the type."""
        begin = min([event.start for event in events])
        self.matcher.begin(begin)
        if not self._begun:
            self._begin = begin if self._begin is None else min(self._begin, begin)
            lasted_ms = max([event.end - event.start for event in events])
            self._lasted_ms = max(self._lasted_ms, lasted_ms)
            self._settle_beginning()

    def _settle_beginning(self) -> None:
        """Tell when tasks begin at the earliest, as long as an earlier event may come.

        One to come is taken to last no longer than the longest so far, or than is foreseen.
        """
        if self._begun or not self.matcher.has_beginnings:
            return
        lasts_ms = max(self._lasted_ms, self.matcher.durations.foreseen_ms())
        floor = min(map(self.watermark, self._types), default=WATERMARK_END) + 1 - lasts_ms
        self._begun = self._begin is not None and floor >= self._begin
        self.matcher.begins_from(WATERMARK_END if self._begun else floor)

    def _know_beginning(self) -> None:
        """No event to come begins before those that came, or before what was said."""
        self._begun = True
        self.matcher.begins_from(WATERMARK_END)

    def advance(self, watermark: int) -> list[Result]:
        """Every event to come ends after this time; what became known by that."""
        if self._passed is None or watermark > self._passed:
            self._passed = watermark
        self._settle_beginning()
        return self._counted(self.matcher.push([], self.watermark))

    def next_due(self) -> int | None:
        """Before events are known to end after this time, none of them being there decides nothing.

        None if no time will do.
        """
        return min(self.matcher.due(self.watermark).values(), default=None)

    def watermark(self, event_type: str) -> int:
        """At or before which no event of the type comes any more."""
        by_events = self.intake.watermark(event_type)
        return by_events if self._passed is None else max(by_events, self._passed)

    def frontier(self) -> int:
        """No result that comes later ends at or before this time."""
        return min(self.matcher.frontiers(self.watermark).values(), default=WATERMARK_END)

    def finish(self) -> list[Result]:
        """Nothing more will come; what that decides."""
        self.intake.finish()
        self._know_beginning()
        return self._counted(self.matcher.push([], self.watermark))

    def _counted(self, pushed: Slices[list[Result]]) -> list[Result]:
        results = in_one_go(pushed)
        suspended = self.matcher.suspensions.why
        if suspended:
            tasks = self.matcher.tasks()
            raise WorkError([tasks[key].name for key in suspended], next(iter(suspended.values())))
        self.ledger.results += len(results)
        return results


class Engine:
    """Runs every subscription of a specification over one stream of events.

    `lateness_ms`: how far an event may end before the latest so far; 0, the default, is input in
    order; None means that all input is on time and everything is decided at `finish`. What comes
    later than that is late: counted in `counts`, and without effect.

    `drift`: the greatest drift of the sensors' clocks, as a share (0.0001 is 100 ppm): durations
    are uncertain by so much.

    `longest_ms`: no event lasts longer; a longer one is refused. In a stream this is waited for
    where an event may have begun long ago; without it, a limit of a week once events of a type
    have lasted at all.

    `step_candidates`: how many candidates one step of a task may look at (some 40 million are ten
    seconds); a step that would look at more raises WorkError, and the engine is of no use then.

    Tables of the text are looked for beside `file`, the specification's, else in the working
    directory; or they are in `tables`, name to text, and nowhere else.

    Raises language.LanguageError, with every error, where the text is faulty.

    >>> engine = Engine(
    ...     "event Temp(val: float) subscription Frost seq 1 from me to alerts detect Temp(val < 0)"
    ... )
    >>> results = engine.push([{"type": "Temp", "id": "t1", "timestamp": 1000, "val": -1.5}])
    >>> results[0]["values"]
    {'Temp': {'val': -1.5}}
    """

    def __init__(
        self,
        text: str,
        lateness_ms: int | None = 0,
        *,
        drift: float = 0.0,
        longest_ms: int | None = None,
        file: str = "<text>",
        functions: Mapping[str, Any] | None = None,
        tables: Mapping[str, str] | None = None,
        step_candidates: int = CANDIDATES_ALONE,
    ) -> None:
        if not isinstance(text, str):
            raise TypeError(f"found a text of type {type(text).__name__}, expected str")
        for name, own in (functions or {}).items():
            if not isinstance(own, Function):
                kind = type(own).__name__
                raise TypeError(f"function {name}: found {kind}, expected Function or Aggregate")
        if lateness_ms is not None and not (type(lateness_ms) is int and lateness_ms >= 0):
            raise ValueError(f"found lateness_ms {lateness_ms!r}, expected 0 or more, or None")
        if not 0 <= drift < 1:
            raise ValueError(f"found drift {drift}, expected 0 or more, and less than 1")
        read_table = tables_beside(file) if tables is None else tables_among(tables)
        checked = check_text(text, file=file, functions=functions, tables=read_table)
        self._program = checked.demand().program
        del checked  # its text's tree goes before agents are made, which then take its room
        self._everything: list[CoreEvent] | None = [] if lateness_ms is None else None
        self._options = IntakeOptions(lateness_ms=lateness_ms or 0, typed=True)
        self._drift = drift
        self._longest_ms, self._step_candidates = longest_ms, step_candidates
        self._pipeline = self._made()
        self._finished = False

    def push(
        self, events: Iterable[Event | Mapping[str, Any]], *, skip_bad: bool = False
    ) -> list[dict[str, Any]]:
        """Take a batch of events; the results that became known, in order.

        Raises EventError, which names the first bad event by its index, and then takes none of the
        batch; with `skip_bad`, bad ones are passed over and counted. Events of undeclared types are
        passed over.
        """
        if self._finished:
            raise RuntimeError("the engine is finished; make a new one")
        if isinstance(events, Mapping | Event | str | bytes):
            raise TypeError("push takes a batch; put the event into a list")
        decoded = self._decoded(events if isinstance(events, list) else list(events))
        if decoded.rejections and not skip_bad:
            bad = decoded.rejections[0]
            raise EventError(f"event {bad.index} of the batch: {bad.message}")
        if self._everything is not None:
            self._everything += decoded.events
            return []
        return told(self._pipeline.admit(decoded.events, decoded.by_class))

    def advance(self, watermark_ms: int) -> list[dict[str, Any]]:
        """Every event to come ends after this time; the results that this gives, in order.

        An event that comes later all the same is late. Of an input that is decided at `finish`,
        nothing is known before. Raises ValueError where that is no integer of 64 bits.
        """
        if self._finished:
            raise RuntimeError("the engine is finished; make a new one")
        if type(watermark_ms) is not int or not -(2**63) <= watermark_ms < 2**63:
            raise ValueError(f"found watermark_ms {watermark_ms!r}, expected integer milliseconds")
        if self._everything is not None:
            return []
        return told(self._pipeline.advance(watermark_ms))

    def next_due(self) -> int | None:
        """The least time to which `advance` may give a result by itself, in ms; None: none may."""
        return self._pipeline.next_due()

    def state(self) -> bytes:
        """All that later results depend on, for `restore` in an engine of the same arguments."""
        if self._finished or self._everything is not None:
            raise RuntimeError("an engine that is finished, or decides at the end, has no state")
        plain = {"version": STATE_VERSION, "pipeline": self._pipeline.state()}
        return msgspec.msgpack.encode(plain)

    def restore(self, state: bytes) -> None:
        """Go on where the engine stood whose state this is. Raises StateError; nothing changed."""
        try:
            plain = msgspec.msgpack.decode(state, strict=False)
            version = plain["version"]
            if version != STATE_VERSION:
                raise StateError(f"found a state of version {version}, expected {STATE_VERSION}")
            self._pipeline = self._made(plain["pipeline"])
        except (msgspec.MsgspecError, LookupError, TypeError, ValueError) as error:
            raise StateError(f"this is no state of an engine: {error}") from None
        self._finished = False

    def _made(self, state: Mapping[str, Any] | None = None) -> Pipeline:
        return Pipeline(
            self._program,
            self._options,
            self._drift,
            longest_ms=self._longest_ms,
            state=state,
            step_candidates=self._step_candidates,
        )

    def _decoded(self, events: list[Event | Mapping[str, Any]]) -> Decoded:
        taken = taken_out(events)
        decoded = None if taken is None else self._pipeline.intake.from_typed(*taken)
        if decoded is not None:
            return decoded
        items = [event.to_dict() if isinstance(event, Event) else event for event in events]
        return self._pipeline.intake.from_mappings(items)

    def finish(self) -> list[dict[str, Any]]:
        """Nothing more will come: decide all that is open; the results that this gives."""
        if self._finished:
            return []
        self._finished = True
        release = Release()
        events = in_order(self._everything or [])
        whole = Extent()
        whole.add(events)
        self._pipeline.foresee(whole)
        for start in range(0, len(events), BATCH_EVENTS):
            release.add(self._pipeline.admit(events[start : start + BATCH_EVENTS]))
        release.add(self._pipeline.finish())
        return told(release.rest())

    @property
    def counts(self) -> dict[str, Any]:
        """Return the ledger: what became of the events so far."""
        return self._pipeline.ledger.to_dict()


def _ledger_state(ledger: Ledger) -> list[Any]:
    accounts = [
        [account.received, account.out, account.filtered, account.dropped]
        for account in (ledger.events, ledger.detected)
    ]
    return [*accounts, ledger.results, ledger.notes]


def _restore_ledger(ledger: Ledger, state: Sequence[Any]) -> None:
    events, detected, ledger.results, ledger.notes = state
    for account, account_state in ((ledger.events, events), (ledger.detected, detected)):
        _restore_account(account, account_state)


def _restore_account(account: Account, state: Sequence[Any]) -> None:
    account.received, account.out, account.filtered, account.dropped = state
