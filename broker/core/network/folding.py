"""An origin that folds for hosts what their windows take of it.

Owns what is folded and not sent yet, and when it is sent. Must not know who merges it. Invariant:
rows are a function of what the origin keeps behind a position; what is folded here and lost is
folded again when the host asks, as it does behind every break of the way.

Rows go when a promise has passed the end of a pane, so that a window waits for them no longer than
for events, and before there are too many; what is promised in between nobody could use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from broker.core.cells.cell_origins import places
from broker.core.effects import Effect
from broker.core.intake import Intake, IntakeOptions
from broker.core.networked.local_origin import Fresh
from broker.core.recovery.durable import DurableBroker
from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import Event, slot_of
from broker.engine.ingest.event_bytes import packed, written_out
from broker.engine.limits import Limits
from broker.engine.window.constituents import IDS_MAX
from broker.engine.window.splitting import Folder, Split, split_of
from broker.network.effects import Note
from broker.network.frames import fold_rows, frames, told
from broker.network.frames.frames import Row, cut
from broker.network.neighbours.sessions import FrameSender
from broker.network.origin.offers import rows_since
from language import EventType, Task, check_text

if TYPE_CHECKING:
    from language.tree import AttributeType

ROWS_MAX = 1_000  # groups that wait; more are sent, as all of them go into one frame
LOOK_EVENTS = 1_024  # events, after which it is looked whether there are so many
TEXTS_KEPT = 64  # texts that were read last


class FoldError(ValueError):
    """Report that what was asked cannot be folded here; the sentence tells why."""


class Folding:
    """Hold what is folded for one host: all behind `after` that was not sent."""

    def __init__(
        self, question: frames.Fold, split: Split, tasks: Sequence[Task], after: int
    ) -> None:
        self.question = question
        self.after = self.upto = after
        self.told: told.Watermarks = {}  # what was promised last
        self._promised: told.Watermarks = {}  # since then
        self._pane_of = split.grid.pane_of
        self._events: list[Row] = []
        self._looked = 0
        self._took = False
        self._as_declared = _Declared(question.types)
        self.folder = Folder(tasks, question.ids, Limits())

    def take(self, rows: Sequence[Row]) -> None:
        """Take what happened next."""
        question = self.question
        own = [row for row in rows if row[1].event_type in question.types]
        if not own:
            return
        events = self._as_declared([event for _, event in own])
        if not question.raw:
            count = self.folder.take(events)
            self._looked += count
            self._took = self._took or count > 0
            return
        wanted = {(one.id, one.end) for one in self.folder.wanted(events)}
        self._events += [row for row in own if (row[1].id, row[1].end) in wanted]
        self._took = bool(self._events)

    def promise(self, watermarks: told.Watermarks) -> None:
        """Take what was promised next."""
        types = self.question.types
        self._promised |= {name: one for name, one in watermarks.items() if name in types}

    def is_due(self) -> bool:
        """Tell whether it is time to send."""
        if any(self._tells(name, one) for name, one in self._promised.items()):
            return True
        if self._looked >= LOOK_EVENTS:
            self._looked = 0
            return self.folder.held() >= ROWS_MAX
        return len(self._events) >= LOOK_EVENTS

    def _tells(self, name: str, promised: int | None) -> bool:
        """Tell whether a promise ends a pane, or is the first or the last."""
        before = self.told.get(name)
        if promised is None or before is None or before <= WATERMARK_NONE:
            return promised != before
        return self._pane_of(promised + 1) > self._pane_of(before + 1)

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing was taken that was not sent."""
        return not self._took

    def sent(self, me: str, life: int, *, whole: bool = False) -> list[told.Folded]:
        """Return what is to be sent now."""
        question, promised = self.question, self._promised
        parts: list[tuple[int, bytes, list[Row]]] = []
        if question.raw:
            parts += [(part[-1][0], b"", list(part)) for part, _ in cut(self._events) if part]
        else:
            rows, sources = self.folder.harvest()
            parts += [(self.upto, fold_rows.packed(rows, sources), [])] if rows else []
        parts = parts or [(self.upto, b"", [])]
        found = []
        for number, (at, data, events) in enumerate(parts):
            last = number == len(parts) - 1
            upto = self.upto if last else at
            begins = whole and number == 0
            found.append(
                told.Folded(
                    me,
                    life,
                    self.after,
                    upto,
                    data,
                    [position for position, _ in events],
                    packed([event for _, event in events]) if events else packed([]),
                    promised if last else {},
                    question.raw,
                    begins,
                    begins and question.again,
                )
            )
            self.after = upto
        self.told |= promised
        self._promised, self._events, self._looked, self._took = {}, [], 0, False
        return found


class _Declared:
    """Events as a host declares them: what comes back from a disk has only what it says."""

    def __init__(self, types: Mapping[str, told.Attributes]) -> None:
        self._intake = Intake(IntakeOptions(lateness_ms=None))
        self._intake.declare(
            EventType(name, cast("dict[str, AttributeType]", dict(some)))
            for name, some in types.items()
        )
        self._slots = {name: [slot_of(one) for one in some] for name, some in types.items()}
        self._whole: dict[type[Event], bool] = {}

    def __call__(self, events: list[Event]) -> list[Event]:
        """The same events, with all attributes that are declared."""
        if all(self._is_whole(type(one)) for one in events):
            return events
        return self._intake.from_mappings(written_out(events)).events

    def _is_whole(self, kind: type[Event]) -> bool:
        known = self._whole.get(kind)
        if known is None:
            slots = self._slots[kind.event_type]
            known = self._whole[kind] = all(hasattr(kind, slot) for slot in slots)
        return known


class FoldOrigin:
    """Keep what this origin folds, by host.

    `tell` has the core take something in; `doubts` tells if a question of a neighbour waits.
    """

    def __init__(
        self,
        durable: DurableBroker,
        sender: FrameSender[Effect],
        counts: dict[str, int],
        tell: Callable[[told.Told], None],
        doubts: Callable[[str, frames.Fold], bool],
    ) -> None:
        self.me = durable.options.name
        self.durable = durable
        self._sender = sender
        self._counts = counts
        self._tell_network = tell
        self._doubts = doubts
        self._foldings: dict[str, Folding] = {}  # by host
        self._fold_failures: dict[str, str] = {}  # by host, what was said of it last
        self._read: dict[tuple[bytes, tuple[str, ...]], tuple[Split, list[Task]]] = {}

    # --- questions -------------------------------------------------------------------------

    def ask(self, peer: str, one: frames.Fold) -> bool:
        """Take a host's question; True: it is answered."""
        self._foldings.pop(one.host, None)
        if self._doubts(peer, one):
            return False
        try:
            self._answer(peer, one)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is this host's alone
            self._fold_failed(one.host, error)
            return False
        return True

    def _answer(self, peer: str, one: frames.Fold) -> None:
        """Answer a host: what it has not got yet, folded, as far as it is still here."""
        network, split_and_tasks = self.durable.network, self._tasks_of(one)
        if not told.declarable(one.types) or not 1 <= one.ids <= IDS_MAX:
            raise FoldError("it says what cannot be")
        own = network.own
        known = own.hosts.get(one.host)
        position, _ = places(own.hosts, one.host, own.fold_place(one.host, one.life, one.position))
        _, keep = places(own.hosts, one.host, own.fold_place(one.host, one.life, one.keep))
        if (known.types if known is not None else {}) != one.types:
            self._tell_network(told.HostInterested(one.host, one.types, keep))
        if one.host not in own.hosts:
            raise FoldError("as many hosts need something as are allowed")
        wanted = network.header.wanted_as(one.types)
        if wanted != one.types:
            raise FoldError("these types are declared otherwise here")
        after = own.position if position is None else max(min(position, own.position), own.floor)
        folding = Folding(one, *split_and_tasks, after)
        for last, more, what in self._answers(folding):
            body = frames.Folded(one.host, one.serial, what, last, more)
            self._sender.say(peer, body, self.durable.number, len(what.positions))
            if last and not more:
                self._foldings[one.host] = folding

    def _answers(self, folding: Folding) -> Iterator[tuple[bool, bool, told.Folded]]:
        """(whether it is the last part, whether the host is to ask again, the part)."""
        network, one = self.durable.network, folding.question
        own = network.own
        rows, upto = rows_since(own, folding.after, one.types, lambda _: True)
        more = upto < own.position
        if one.since is not None:
            rows = [row for row in rows if row[1].end > one.since]
        holds = {name: at for name, at in network.origin.told.items() if name in one.types}
        gone = [name for name in one.types if name not in holds]
        left_off = {} if more else network.origin.left_off(gone)
        starts = range(0, len(rows), LOOK_EVENTS) if rows else range(1)
        for start in starts:
            some = rows[start : start + LOOK_EVENTS]
            is_end = start + LOOK_EVENTS >= len(rows)
            folding.take(some)
            folding.upto = upto if is_end else some[-1][0]
            if is_end and not more:
                folding.promise({**holds, **left_off})
            elif start == 0:
                folding.promise(dict.fromkeys([*holds, *gone], WATERMARK_NONE))
            parts = folding.sent(self.me, own.life, whole=start == 0)
            for number, part in enumerate(parts):
                last = is_end and number == len(parts) - 1 and (more or not gone)
                yield last, last and more, part
        if gone and not more:
            folding.promise(dict.fromkeys(gone))
            (ended,) = folding.sent(self.me, own.life)
            yield True, False, ended

    def _tasks_of(self, one: frames.Fold) -> tuple[Split, list[Task]]:
        """The windows that are asked for. Raises FoldError."""
        known = self._read.get((one.text, one.tasks)) or self._read_text(one)
        if not one.types.keys() <= set(known[0].types):
            raise FoldError("it needs other types than it names")
        return known

    def _read_text(self, one: frames.Fold) -> tuple[Split, list[Task]]:
        checked = check_text(one.text.decode("utf-8", "surrogatepass"))
        if checked.specification is None:
            raise FoldError(f"the text is refused here: {checked.report()}")
        tasks = checked.specification.graph.tasks
        if not set(one.tasks) <= tasks.keys():
            raise FoldError("the text means another thing here")
        found = {key: tasks[key] for key in one.tasks}
        split = split_of(found)
        if split is None:
            raise FoldError("these windows are not split")
        while len(self._read) >= TEXTS_KEPT:
            del self._read[next(iter(self._read))]
        known = self._read[one.text, one.tasks] = split, list(found.values())
        return known

    # --- what goes to hosts ----------------------------------------------------------------

    def spread(self, fresh: list[Fresh]) -> None:
        """Fold what happened here, and send what is due."""
        if not self._foldings:
            return
        rows = [row for one in fresh for row in enumerate(one.events, one.first)]
        own = self.durable.network.own
        for host, folding in list(self._foldings.items()):
            if host not in own.hosts or host not in self._sender.via:
                del self._foldings[host]
                continue
            try:
                folding.take(rows)
                for one in fresh:
                    folding.promise(one.watermarks)
                folding.upto = fresh[-1].last
                parts = folding.sent(self.me, own.life) if folding.is_due() else []
            except Exception as error:  # noqa: BLE001  # whatever it is, it is this host's alone
                self._fold_failed(host, error)
                at = fresh[-1].last  # what is missing shows as a gap, and the host asks again
                parts = [told.Folded(self.me, own.life, at, at, b"", [], packed([]), {})]
            for part in parts:
                body = frames.Folded(host, folding.question.serial, part)
                self._sender.say(
                    self._sender.via[host], body, self.durable.number, len(part.positions)
                )

    def _fold_failed(self, host: str, error: Exception) -> None:
        self._foldings.pop(host, None)
        self._counts["folds_refused"] += 1
        reason = f"{type(error).__name__}: {error}"
        if self._fold_failures.get(host) != reason:  # it will ask again, and again
            self._fold_failures[host] = reason
            words: dict[str, str | int] = {"host": host, "reason": reason}
            self._sender.out.append(Note("error", "fold_refused", words))

    def note_unconcerned(self) -> None:
        """Keep nothing for hosts that have stored all of theirs where nothing came since."""
        own = self.durable.network.own
        for host, folding in self._foldings.items():
            known = own.hosts.get(host)
            if known is None or not folding.is_empty:
                continue
            if folding.after <= known.position < folding.upto:
                self._tell_network(told.HostStored(host, folding.upto))

    def gone(self, host: str) -> None:
        """Forget a host that is not to be reached; it will ask again."""
        self._foldings.pop(host, None)
        self._fold_failures.pop(host, None)
