"""Runs in which texts of different clients need the same definitions, and join each other's cells.

Owns these texts, who submits them when, and what each is to find. Must not know who shares what.
Invariant: each finds what it would find if it were alone. Those that are active before the first
reading find what one engine finds; guests, who come, change their text, go and come again in the
midst of it, find of that nothing but matches of their own time, and all of these.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from msgspec import Struct

from simulation import checkers, texts
from simulation.account import CheckFailedError
from simulation.crashes.clients import AskingClient, Wish
from simulation.network import checks
from simulation.network.cells import CellRun, Outcome
from simulation.network.place import Place
from simulation.network.scenario import CALM_MS, RunFailedError, Shape

DEFINITIONS = {
    "Climb": """
define Climb(val)
detect Temp(val < 5) as a then[..6 s] Temp(val > 5) as b
assign val = b.val
group by source
""",
    "Warm": texts.DEFINITIONS["Warm"],
    "Mean": texts.DEFINITIONS["Mean"],
}
SUBSCRIPTIONS = {
    "Climbs": (("Climb",), "detect Climb as c"),
    "High": (("Climb",), "detect Climb(val > 6) as c then[..8 s] Humidity(val > 3) as h"),
    "Warmth": (("Warm",), "detect Warm(val > 6) as x then[..5 s] Warm as y"),
    "Gusts": (("Warm", "Climb"), "detect Warm(val > 7) as w then[..6 s] Climb as c"),
    "Means": (("Mean",), "detect Mean(n > 1) as m"),
    "Cool": (("Mean", "Climb"), "detect Climb as c then[..20 s] Mean(val < 6) as m"),
}
ALONE = ("Climbs", "High", "Warmth", "Gusts")  # each match depends on its own events
GUESTS = (1, 4)
WISHES = (1, 5)
SPAN = "assign since = start, upto = end"


def run(seed: int, shape: Shape | None = None) -> Outcome:
    """Run and check one. Raises RunFailedError."""
    try:
        done = JoiningRun(seed, shape or Shape())
        done.run()
        return done.came_to()
    except Exception as error:
        text = f"seed {seed} (repeat it: python -m simulation --kind joins --seed {seed}): "
        raise RunFailedError(f"{text}{error}") from error


def text_of(names: Sequence[str], client: str, seq: int = 1) -> str:
    """Return a text with these subscriptions; every other version assigns times besides."""
    used = dict.fromkeys(need for name in names for need in SUBSCRIPTIONS[name][0])
    parts = [texts.DECLARATIONS, *(DEFINITIONS[need] for need in used)]
    for name in names:
        head = f"subscription {name} seq {seq} from {client} to alerts"
        parts.append("\n".join([head, SUBSCRIPTIONS[name][1], *([] if seq % 2 else [SPAN]), ""]))
    return "\n".join(parts)


class Guest(Struct):
    """A client with one subscription that comes and goes, and since when it has stayed."""

    asker: AskingClient
    name: str
    seq: int = 0
    since: int | None = None
    is_there: bool = False

    @property
    def due(self) -> float:
        """Return from when on it is to find all."""
        return float("inf") if self.since is None else self.since


class JoiningRun(CellRun):
    """One run; see the module."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self.guests: list[Guest] = []
        self._own = Random(f"{seed} guests")
        super().__init__(seed, shape)

    # --- who asks for what -----------------------------------------------------------------

    def _names(self) -> tuple[str, ...]:
        return tuple(self._own.sample(list(SUBSCRIPTIONS), self._own.randint(2, 3)))

    def _texts(self, names: tuple[str, ...]) -> list[tuple[str, ...]]:
        return [(name,) for name in names]

    def _text(self, names: tuple[str, ...], client: str) -> str:
        return text_of(names, client)

    def _home(self) -> Place:
        """Most are at one home: others share nothing with them."""
        return self.places[0] if self._own.random() < 0.8 else super()._home()

    def _get_ready(self) -> None:
        super()._get_ready()
        for number in range(self._own.randint(1, 4)):
            self._join(f"later-{number}")
        super()._get_ready()

    def _join(self, client: str) -> None:
        """Have a client submit what most likely is of use for others already."""
        name = self._own.choice(list(SUBSCRIPTIONS))
        self._specifications[client] = text = text_of((name,), client)
        self._askers.append(self._asker(client, [Wish("submit", text, {name: 1})]))

    def _asker(self, client: str, wishes: list[Wish]) -> AskingClient:
        asker = AskingClient(self._home(), client, wishes)  # type: ignore[arg-type]
        asker.reached()
        return asker

    def _plan_readings(self) -> int:
        end_ms = super()._plan_readings()
        for number in range(self._own.randint(*GUESTS)):
            guest = Guest(self._asker(f"guest-{number}", []), self._own.choice(ALONE))
            guest.asker.satisfied = partial(self._satisfied, guest)
            self._askers.append(guest.asker)
            self.guests.append(guest)
            times = [
                self._own.randint(self.world.now + CALM_MS // 2, end_ms)
                for _ in range(self._own.randint(*WISHES))
            ]
            for time_ms in sorted(times):
                self.world.at(time_ms, partial(self._wish, guest))
        return end_ms

    def _wish(self, guest: Guest) -> None:
        """Have a guest come, change its text, or go."""
        if guest.is_there and self._own.random() < 0.4:
            guest.is_there, guest.since = False, None
            guest.asker.wish(Wish("cancel", guest.name, {guest.name: None}))
            return
        guest.is_there = True
        guest.seq += 1
        text = text_of((guest.name,), guest.asker.name, guest.seq)
        guest.asker.wish(Wish("submit", text, {guest.name: guest.seq}))

    def _satisfied(self, guest: Guest) -> None:
        if guest.is_there and guest.since is None:
            guest.since = self.world.now

    # --- what each has found ---------------------------------------------------------------

    def _judge(  # type: ignore[override]
        self,
        places: Sequence[Place],
        specifications: Mapping[str, str],
        arrived: Sequence[dict[str, Any]],
        *,
        exactly: bool,
    ) -> int:
        count = checks.check_all(places, specifications, arrived, exactly=exactly)
        rows = [json.loads(row.payload) for _, row in checks.results_of(places)]
        for guest in self.guests:
            found = [_match(row) for row in rows if row["subscriber"] == guest.asker.name]
            specification = texts.checked(text_of((guest.name,), guest.asker.name)).demand()
            wanted = {_match(row): row for row in checkers.replayed(specification, arrived)}
            surplus = [match for match in found if match not in wanted]
            own = [match for match, row in wanted.items() if row["start"] >= guest.due]
            missing = [match for match in own if match not in found]
            if surplus or missing:
                raise CheckFailedError(
                    f"of {guest.asker.name} since {guest.since} {len(missing)} matches are missing"
                    f" {missing[:2]} and {len(surplus)} surplus {surplus[:2]}"
                )
        return count


def _match(result: Mapping[str, Any]) -> str:
    """Return what tells a match from others, whichever text found it."""
    names = ("subscriber", "subscription", "start", "end", "group", "events")
    return json.dumps([result[name] for name in names], sort_keys=True)
