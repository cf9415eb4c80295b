"""Runs in which texts of different clients need the same definitions, and join each other's cells.

Owns these texts, who submits them when, and what each is to find. Must not know who shares what.
Invariant: each finds what it would find if it were alone. Those that are active before the first
reading find what one engine finds; guests, who come, change their text, go and come again in the
midst of it, find of that nothing but matches of their own time, and all of these.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from simulation import checkers, texts
from simulation.account import CheckFailedError
from simulation.crashes.clients import AskingClient, Wish
from simulation.network import checks
from simulation.network.cells import CellRun, Outcome
from simulation.network.scenario import BEGIN_MS, READY_S_MAX, RunFailedError, Shape

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
# Each match depends on its own events; of another type those may be late that came before a guest.
ALONE = ("Climbs", "Warmth", "Gusts")
STAY = (2, 3, 4, 5)
GUESTS = (1, 2, 3)
WISHES = (1, 5)
READY_MS = READY_S_MAX * 1_000
UNTIL_MS = 150_000  # readings have come by then
KNOWN_MS = 30_000  # who was away when a guest came, and was not waited for, is asked by then
SPAN = "assign since = start, upto = end"


def run(seed: int, shape: Shape | None = None) -> Outcome:
    """Run and check one. Raises RunFailedError."""
    draw = Random(f"{seed} clients")
    names = tuple(draw.sample(list(texts.SUBSCRIPTIONS), draw.randint(1, 2)))
    try:
        cells = CellRun(seed, replace(shape or Shape(), names=names))
        clients = Clients(cells, draw)
        cells.run()
        clients.check(cells.arrived)
        return cells.came_to()
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


class JoiningClient(Struct):
    """A client with one subscription, and since when it has stayed; `seq` is that of its text."""

    asker: AskingClient
    name: str
    seq: int = 0
    since: int | None = None
    is_there: bool = False

    @property
    def due(self) -> float:
        """Return from when on it is to find all."""
        return float("inf") if self.since is None else self.since + KNOWN_MS

    def is_before(self, time_ms: int) -> bool:
        """Tell whether it has stayed since before a time; links may be slow."""
        return self.since is not None and self.since <= time_ms

    def change(self) -> None:
        """Have it come, or change its text."""
        self.is_there = True
        self.seq += 1
        text = text_of((self.name,), self.asker.name, self.seq)
        self.asker.wish(Wish("submit", text, {self.name: self.seq}))

    def leave(self) -> None:
        """Have it cancel its subscription."""
        self.is_there, self.since = False, None
        self.asker.wish(Wish("cancel", self.name, {self.name: None}))


class Clients:
    """The clients of a run: some stay from before the first reading on, the others are guests."""

    def __init__(self, cells: CellRun, draw: Random) -> None:
        self._world, self._places = cells.world, cells.places
        self._draw = draw
        self._homes = draw.sample(self._places, 2)
        self._staying = [
            self._client(f"stays-{number}", SUBSCRIPTIONS) for number in range(draw.choice(STAY))
        ]
        self._guests = [
            self._client(f"guest-{number}", ALONE) for number in range(draw.choice(GUESTS))
        ]
        for client in self._staying:
            # Some come to cells that are active, all before the first reading.
            self._world.at(BEGIN_MS + draw.choice((1, 1_000, 9_000, 12_000)), client.change)
        for client in self._guests:
            for _ in range(draw.randint(*WISHES)):
                time_ms = BEGIN_MS + draw.randint(READY_MS, UNTIL_MS)
                self._world.at(time_ms, partial(self._wish, client))

    def _client(self, name: str, among: Iterable[str]) -> JoiningClient:
        """Most are at one home: others share nothing with them."""
        home = self._homes[self._draw.random() < 0.2]
        client = JoiningClient(AskingClient(home, name, []), self._draw.choice(list(among)))  # type: ignore[arg-type]
        client.asker.satisfied = partial(self._satisfied, client)
        return client

    def _wish(self, client: JoiningClient) -> None:
        if client.is_there and self._draw.random() < 0.4:
            client.leave()
        else:
            client.change()

    def _satisfied(self, client: JoiningClient) -> None:
        if client.is_there and client.since is None:
            client.since = self._world.now

    # --- what each has found ---------------------------------------------------------------

    def check(self, arrived: Sequence[dict[str, Any]]) -> None:
        """Compare what each has found with what one engine finds. Raises CheckFailedError."""
        rows = checks.results_of(self._places)
        for client in (*self._staying, *self._guests):
            text = text_of((client.name,), client.asker.name, client.seq)
            specification = texts.checked(text).demand()
            if client.is_before(BEGIN_MS + READY_MS):
                checkers.check_replay(specification, ((0, row) for _, row in rows), arrived)
            elif client.name in ALONE:
                own = [json.loads(row.payload) for _, row in rows]
                results = [row for row in own if row["subscriber"] == client.asker.name]
                _check_guest(client, results, checkers.replayed(specification, arrived))


def _check_guest(
    client: JoiningClient, rows: Sequence[Mapping[str, Any]], results: Sequence[Mapping[str, Any]]
) -> None:
    """Raise CheckFailedError where a guest lacks what it was there for, or has anything else."""
    given = [_match(row) for row in rows]
    wanted = {_match(row): row["start"] for row in results}
    missing = [
        match for match, start in wanted.items() if start >= client.due and match not in given
    ]
    surplus = [match for match in given if match not in wanted]
    if missing or surplus:
        raise CheckFailedError(
            f"of {client.asker.name} since {client.since} {len(missing)} matches are missing"
            f" {missing[:2]} and {len(surplus)} surplus {surplus[:2]}"
        )


def _match(result: Mapping[str, Any]) -> str:
    """Return what tells a match from others, whichever text found it."""
    names = ("subscriber", "subscription", "start", "end", "group", "events")
    return json.dumps([result[name] for name in names], sort_keys=True)
