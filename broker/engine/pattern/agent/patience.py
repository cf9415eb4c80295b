"""Events that wait in an agent: for the watermark, then with their group for what completes them.

Owns their order, and when a group's stages are given what came. Must not know stages, nor what
becomes of events. Invariant: they go on in the order of time, none twice, and in what order they
came does not show; a group is left alone only while nothing can be reported of it.

What comes in order is appended, and what is late goes on a heap: an insertion into a list would
cost as much as waits behind it, so that a second alias of one type, which begins again at the first
event of a batch, or a source far behind would cost the square of what they send. The whole order of
events is asked for only among those of one end that are released together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from itertools import islice, pairwise, repeat
from operator import attrgetter, itemgetter, le, lt
from typing import Any

from broker.engine import native
from broker.engine.event.agent import WATERMARK_END
from broker.engine.event.event import Event, Order
from broker.engine.event.occurrence import Occurrence, lead, sort_by
from broker.engine.pattern.agent.staged_partition import FRESH_MAX, Entry, Group, Partition
from broker.engine.pattern.layout.prospects import Prospect, Reach
from broker.engine.runtime.budget import Budget

TRIAL_EVENTS = 4_096  # after so many it is judged whether anything is gained by waiting
MERGED_MOST = 8  # for each event that comes, so many that wait are gone over without a heap
_Late = tuple[int, int, Entry]  # its end, its number among the late ones, and the entry


_atom = itemgetter(0)
_event_of = itemgetter(1)
_end_of = attrgetter("end")
_entry = itemgetter(2)


def _start(entry: Entry) -> int:
    start: int = entry[1].start
    return start


def _lead(same: Sequence[Entry]) -> tuple[int, tuple[str, ...]]:
    event = same[0][1]
    return (event.start, lead(event.ids))


def _order(entry: Entry) -> tuple[int, Order, int]:
    atom, event = entry
    return (event.start, event.order, atom)


def by_end(batch: Sequence[tuple[int, Sequence[Event]]]) -> list[Entry]:
    """The entries of a batch by end, of one end in the order given; those of one atom as given."""
    if len(batch) == 1:
        atom, events = batch[0]
        return list(zip(repeat(atom), events))  # the events alone end
    entries: list[Entry] = []
    for atom, events in batch:
        entries += zip(repeat(atom), events)
    return _in_order(entries)


def _ends(entries: Iterable[Entry]) -> list[int]:
    return list(map(_end_of, map(_event_of, entries)))


def _in_order(entries: list[Entry]) -> list[Entry]:
    """Return entries by end, those of one end as they stand; no call for each."""
    order = sorted(range(len(entries)), key=_ends(entries).__getitem__)
    return list(map(entries.__getitem__, order))


class Pending:
    """Events by end, each with the number of the atom that it is for."""

    __slots__ = ("_budget", "_ends", "_entries", "_late", "_late_last", "_late_seen")

    def __init__(self, budget: Budget | None = None) -> None:
        """`budget`: of who takes up what is released."""
        self._budget = budget or Budget()
        self._ends: list[int] = []
        self._entries: list[Entry] = []
        self._late: list[_Late] = []  # a heap; each ends before the last of those in order
        self._late_last = 0  # no late one ends after it
        self._late_seen = 0

    def __len__(self) -> int:
        return len(self._ends) + len(self._late)

    @property
    def entries(self) -> list[Entry]:
        """All of them, in order."""
        waiting = _in_order([*self._entries, *map(_entry, sorted(self._late))])
        if waiting:
            _sort_runs(waiting)
        return waiting

    @property
    def first_end(self) -> int | None:
        """The least end; None where nothing waits."""
        if not self._ends:
            return None
        return min(self._ends[0], self._late[0][0]) if self._late else self._ends[0]

    def add(self, at: int, events: Sequence[Event]) -> None:
        """Take events for one atom, in any order."""
        ends, entries, late = self._ends, self._entries, self._late
        fresh = [event.end for event in events]
        if not fresh:
            return
        # The stream in order: three list operations for a whole batch.
        if (not ends or fresh[0] >= ends[-1]) and all(map(le, fresh, islice(fresh, 1, None))):
            ends += fresh
            entries += [(at, event) for event in events]
            return
        for event in events:
            end = event.end
            if not ends or end >= ends[-1]:
                ends.append(end)
                entries.append((at, event))
                continue
            if not late or end > self._late_last:
                self._late_last = end
            self._late_seen += 1
            heappush(late, (end, self._late_seen, (at, event)))

    def pass_through(self, batch: Sequence[tuple[int, Sequence[Event]]], until: int) -> list[Entry]:
        """Take events for atoms, and release what ends by the time; see `add` and `release`."""
        if self._may_merge(batch):
            waiting = self._entries
            for atom, events in batch:
                waiting += zip(repeat(atom), events)
            # What waits is in order already, and so mostly is what comes of each atom.
            self._entries = _in_order(waiting)
            self._ends = _ends(self._entries)
        else:
            for atom, events in batch:
                self.add(atom, events)
        return self.release(until)

    def _may_merge(self, batch: Sequence[tuple[int, Sequence[Event]]]) -> bool:
        """Tell whether so little waits that all of it may be gone over; then the heap is empty."""
        coming = sum([len(events) for _, events in batch])
        if len(self) > MERGED_MOST * coming:
            return False
        if self._late:
            self._entries = self.entries
            self._ends = _ends(self._entries)
            self._late = []
        return True

    def release(self, until: int) -> list[Entry]:
        """Those that end by the time, in order (of one event, by atom); they wait no more."""
        ends = self._ends
        late = self._late_until(until)
        if not late and (not ends or ends[0] > until):
            return []
        count = len(ends) if ends[-1] <= until else bisect_right(ends, until)
        ready = self._entries[:count]
        plain = not late and all(map(lt, ends, islice(ends, 1, count)))
        # Waiting events bring their share of the budget when they are taken up, not when they come:
        # the work is done now.
        self._budget.grant(count + len(late))
        del ends[:count]
        del self._entries[:count]
        if late:
            ready = _in_order([*ready, *late])
        if not plain:
            _sort_runs(ready)
        return ready

    def _late_until(self, until: int) -> list[Entry]:
        """Take the late ones that end by the time, by end."""
        late = self._late
        if not late or late[0][0] > until:
            return []
        if self._late_last <= until:
            self._late = []
            return list(map(_entry, sorted(late)))
        taken = []
        while late and late[0][0] <= until:
            taken.append(heappop(late)[2])
        return taken


def _sort_runs(entries: list[Entry]) -> None:
    """Sort those of one end, which stand together."""
    ends = [event.end for _, event in entries]
    stop = 0
    for begin, (end, following) in enumerate(pairwise(ends)):
        if end != following or begin < stop:
            continue
        stop = begin + 2
        if stop < len(ends) and ends[stop] == end:
            stop = bisect_right(ends, end, begin)
        elif entries[begin][1] is entries[begin + 1][1]:  # for two atoms: the usual tie
            if entries[begin][0] > entries[begin + 1][0]:
                entries[begin:stop] = entries[begin + 1], entries[begin]
            continue
        entries[begin:stop] = _sorted_run(entries[begin:stop])


def _sorted_run(run: list[Entry]) -> list[Entry]:
    """Return those of one end in order."""
    events = [event for _, event in run]
    if events.count(events[0]) == len(run):  # one for several atoms
        return sorted(run, key=_atom)
    starts = [event.start for event in events]
    if len(set(starts)) == len(run):  # a match and the reading that completes it, say
        return sorted(run, key=_start)
    # Each event is put in order once, however many atoms it is for.
    atoms: dict[int, list[Entry]] = {}
    for entry in run:
        atoms.setdefault(id(entry[1]), []).append(entry)
    runs = list(atoms.values())
    if len(runs) < len(run):
        for same in runs:
            same.sort(key=_atom)
    for begin, stop in sort_by(_lead, runs) if len(runs) > 1 else ():
        equal = [entry for same in runs[begin:stop] for entry in same]
        runs[begin:stop] = [sorted(equal, key=_order), *[[]] * (stop - begin - 1)]
    return [entry for same in runs for entry in same]


class Patience:
    """Keep what waits in all groups of one agent; `new` makes what it keeps of a group."""

    def __init__(
        self,
        prospect: Prospect,
        key: Callable[[Event], Any] | None,
        new: Callable[[Group, Reach], Partition],
        slots: tuple[str, ...] | None = None,
    ) -> None:
        """`slots`: where an event has the parts of its key, if all of them stand in slots."""
        self._prospect = prospect
        self._key = key
        self._new = new
        self.count = 0  # events that wait
        self.matches: list[tuple[Occurrence, Group]] = []  # found without operators
        self.in_vain = False  # asking costs more than it spares: most may complete something
        self._asked = self._hopeful = 0
        self._pass = self._passing(slots)

    def _passing(
        self, slots: tuple[str, ...] | None, last: int = -1, room: int = FRESH_MAX
    ) -> Callable[..., int] | None:
        """Compile what sets aside all of which nothing can come, and asks about the others."""
        if native.passes is None or slots is None:
            return None
        prospect = self._prospect
        made: Callable[..., int] = native.passes.Patience(
            slots, prospect.operands, prospect.steps, last, room
        )
        return made

    def put(
        self,
        entries: Sequence[Entry],
        partitions: dict[Group, Partition],
        since: int | None = None,
        *,
        eager: bool,
    ) -> dict[Group, None]:
        """Let events wait; the groups that may report, or `eager` all that got some.

        All to come end after `since`; None: they are in order.
        """
        touched: dict[Group, None] = {}
        key_of, tests, new, prospect = self._key, self._prospect.tests, self._new, self._prospect
        hopeful = asked = 0

        def ask(entry: Entry) -> None:
            nonlocal hopeful, asked
            place, event = entry
            key: Any = () if key_of is None else key_of(event)
            if key is None:
                return
            partition = partitions.get(key)
            if partition is None:
                partition = partitions[key] = new(key, prospect.reach())
            fresh = partition.fresh
            fresh.append(entry)
            asked += 1
            if tests[place](partition.reach, event) or eager:
                touched[key] = None
                hopeful += 1
            elif len(fresh) >= FRESH_MAX and key not in touched:
                self.forget(partition, event.end - 1 if since is None else since)
                if 2 * len(partition.fresh) > FRESH_MAX:
                    touched[key] = None

        if eager or self._pass is None:
            for entry in entries:
                ask(entry)
        else:
            waiting = self._pass(entries, partitions, touched, {}, ask)
            self.count += waiting  # beside those that `ask` has added
        self.count += asked
        self._hopeful += hopeful
        self._asked += len(entries)
        self.in_vain = self._asked >= TRIAL_EVENTS and 2 * self._hopeful > self._asked
        return touched

    def completing(
        self, entries: Sequence[Entry], partitions: Mapping[Group, Partition]
    ) -> int | None:
        """Return the end of the first event to come, in order, that may complete something.

        Nothing is changed; events that have not come yet may complete more.
        """
        key_of, tests = self._key, self._prospect.tests
        reaches: dict[Group, Reach] = {}
        for place, event in entries:
            key = () if key_of is None else key_of(event)
            if key is None:
                continue
            reach = reaches.get(key)
            if reach is None:
                partition = partitions.get(key)
                reach = self._prospect.reach() if partition is None else list(partition.reach)
                reaches[key] = reach
            if tests[place](reach, event):
                end: int = event.end
                return end
        return None

    def dropped(self) -> dict[str, int]:
        """Return what was dropped of what waits, by reason."""
        return {}

    def eldest(self) -> int:
        """Return when the eldest begins of what waits where groups have no operators."""
        return WATERMARK_END

    @property
    def trial(self) -> list[int]:
        """Return how many events were asked about, and how many gave hope, for snapshots."""
        return [self._asked, self._hopeful]

    @trial.setter
    def trial(self, told: list[int]) -> None:
        self._asked, self._hopeful = told

    def taken(self, partition: Partition) -> list[Entry]:
        """Take what waits in a group; it waits no more."""
        entries = partition.fresh
        partition.fresh = []
        self.count -= len(entries)
        return entries

    def forget(self, partition: Partition, watermark: int) -> None:
        """Drop of what waits in a group that of which nothing can come any more."""
        if self._prospect.forgets_ms is None or watermark >= WATERMARK_END:
            return
        since = watermark - self._prospect.forgets_ms
        kept = [entry for entry in partition.fresh if entry[1].start > since]
        self.count -= len(partition.fresh) - len(kept)
        partition.fresh = kept

    @property
    def forgets(self) -> bool:
        """Tell whether what waits is ever forgotten here, or its agent has to do that."""
        return self._prospect.forgets_ms is not None

    def any_reach(self) -> Reach:
        """Return that of a group of which it is not known what it was given."""
        return [WATERMARK_END] * len(self._prospect.reach())
