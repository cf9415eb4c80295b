"""Runs in which windows are split: their events are folded where they enter.

Owns the windows. Must not know how these are merged. Invariant: as `cells`; one engine that gets
each event once is the measure.

In half of the runs some sources say what they say at two brokers, as in `twins`.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from simulation import texts
from simulation.account import CheckFailedError
from simulation.network import cells
from simulation.network.cells import CellRun
from simulation.network.checks import noted_by_cells
from simulation.network.place import Place
from simulation.network.planned import PlannedRun
from simulation.network.scenario import RunFailedError, Shape
from simulation.network.twins import TwinRun

DEFINITIONS = {
    "Level": """
define Level(location, n, total, mean, low, top, dev) aggr every 5 s
detect Temp(val > 0) as t
assign location = group.location, n = Count(t), total = Sum(t.val), mean = Avg(t.val),
       low = Min(t.val), top = Max(t.val), dev = StdDev(t.val)
group by location
""",
    "Wide": """
define Wide(n, head, tail, top) aggr every 4 s range 10 s
detect Wind as w
assign n = Count(w), head = First(w.val), tail = Last(w.val), top = Max(w.val)
""",
    "Rest": """
define Rest(location, more, timestamp) aggr every 6 s
detect outer Humidity and outer Temp(val > 3)
assign location = group.location, more = Count(Humidity) - Count(Temp),
       timestamp = Max(Humidity.timestamp)
group by location
""",
    "Often": """
define Often(source, n) aggr every 3 s range 7 s
detect Humidity(val > 2)
assign source = group.source, n = Count(Humidity)
group by source
""",
    "Steps": """
define Steps(n, tail) aggr every 5 s
detect Temp(val > 6) as t
assign n = Count(t), tail = Last(t.val)
""",
    "Wet": """
define Wet(n, total) aggr every 5 s
detect Rain(val > 1) as r
assign n = Count(r), total = Sum(r.val)
""",
}

SUBSCRIPTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "Levels": (("Level",), "detect Level(n > 1, dev >= 0) as x"),
    "Drops": (
        ("Level",),
        "detect Level as a then[..20 s] Level(mean < 4) as b where b.n > 0\ngroup by location",
    ),
    "Wides": (("Wide",), "detect Wide(n > 0) as x"),
    "Turns": (("Wide",), "detect[recent] Wide(head > 5) as a then[..30 s] Wide(tail < 4) as b"),
    "Rests": (("Rest",), "detect Rest as x"),
    "Oftens": (("Often",), "detect Often(n > 1) as x\nat most 2 per 9 s"),
    "Wets": (("Wet",), "detect Wet as x"),
    "Pairs": (("Level", "Steps"), "detect Level(n > 3) as a and Steps as b within 9 s"),
}


class Outcome(Struct, frozen=True):
    """Report what a run came to: of cells those whose windows are split, and what was in doubt."""

    of_run: cells.Outcome
    split: int
    conflicts: int
    twins: int


def run(seed: int, shape: Shape | None = None) -> Outcome:
    """Run and check one; in every third the brokers decide. Raises RunFailedError."""
    try:
        done = (PlannedSplitRun if seed % 3 == 0 else SplitRun)(seed, shape or Shape())
        done.run()
        return done.outcome()
    except Exception as error:
        text = f"seed {seed} (repeat it: python -m simulation --kind split --seed {seed}): "
        raise RunFailedError(f"{text}{error}") from error


def split_at(place: Place, *, on: bool = True) -> Place:
    """The place, whose submissions have their windows split."""
    options = replace(place.machine.options, split_windows=on)
    place.machine = replace(place.machine, options=options)
    place.identifies = True
    return place


class SplitRun(TwinRun, CellRun):
    """One run; see the module."""

    exactly = True
    splits = True

    def outcome(self) -> Outcome:
        """Report what it came to."""
        kept = [
            cell
            for place in self.places
            if place.process is not None
            for cell in place.process.core.network.book.cells.values()
        ]
        conflicts = sum(
            noted_by_cells(place.process, "split_conflicts")
            for place in self.places
            if place.process is not None
        )
        return Outcome(self.came_to(), sum(one.splits for one in kept), conflicts, len(self.twins))

    def _names(self) -> tuple[str, ...]:
        return tuple(self.draw.sample(list(SUBSCRIPTIONS), self.draw.randint(2, 5)))

    def _texts(self, names: tuple[str, ...]) -> list[tuple[str, ...]]:
        """In every fourth run some are of one text; then not all windows are split."""
        several = 3 if self.seed % 4 == 0 else 1
        return [names[:several], *[(name,) for name in names[several:]]]

    def _text(self, names: tuple[str, ...], client: str) -> str:
        used = dict.fromkeys(need for name in names for need in SUBSCRIPTIONS[name][0])
        parts = [texts.DECLARATIONS, *(DEFINITIONS[need] for need in used)]
        for name in names:
            lines = SUBSCRIPTIONS[name][1].split("\nat most")
            thinned = "".join(f"at most{one}\n" for one in lines[1:])
            parts.append(
                f"subscription {name} seq 1 from {client} to alerts\n{lines[0]}\n{thinned}"
            )
        return "\n".join(parts)

    def _place(self, name: str) -> Place:
        return split_at(super()._place(name), on=self.splits)

    def _twins(self) -> int:
        return 0 if self.seed % 2 == 0 else self.world.random.randint(1, 3)

    def _settle(self) -> None:
        for place in self.places:
            place.mortal = False
        super()._settle()
        for place in self.places:
            assert place.process is not None
            if lost := noted_by_cells(place.process, "split_conflicts_unresolved"):
                raise CheckFailedError(f"{lost} conflicts at {place.name}: not all is exact")


class PlannedSplitRun(SplitRun, PlannedRun):
    """The same where the brokers decide who merges what is folded."""
