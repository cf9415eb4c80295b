"""One run of many brokers whose texts are replaced, drawn from a seed, and checked.

Owns the changes and the comparison of what all versions found. Must not know how faults are drawn.
Invariant: as `simulation.network.scenario`; what is sent is drawn as there, so that one engine is
the measure here, too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from simulation import checkers, texts
from simulation.account import CheckFailedError
from simulation.crashes.clients import AskingClient, Wish
from simulation.network import cells, checks
from simulation.network.place import Place
from simulation.network.scenario import CALM_MS, Outcome, Run, RunFailedError, Shape

CHANGES = (2, 6)  # of each text
Excused = Callable[[Mapping[str, Any]], bool]
SPAN = "assign since = start, upto = end"


def run(seed: int, shape: Shape | None = None) -> Outcome:
    """Run and check one. Raises RunFailedError."""
    try:
        return VersionsRun(seed, shape or Shape()).run()
    except Exception as error:
        text = f"seed {seed} (repeat it: python -m simulation --kind versions --seed {seed}): "
        raise RunFailedError(f"{text}{error}") from error


def text_of(names: Sequence[str], subscriber: str, seq: int) -> str:
    """Return the version `seq` of a text: every other one assigns times besides."""
    text = texts.text_of(names, subscriber, seq)
    if seq % 2:
        return text
    head, *parts = text.split("\nsubscription ")
    return "\nsubscription ".join([head, *map(_assigned, parts)])


def _assigned(subscription: str) -> str:
    """Return a subscription that assigns times, too; or these alone where it assigns nothing."""
    if "\nassign " in subscription:
        return subscription.replace("\nassign ", f"\n{SPAN}, ")
    head, detect, *others = subscription.split("\n")
    return "\n".join([head, detect, SPAN, *others])


class VersionsRun(Run):
    """One run; see the module."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self.changes = self.moves = 0
        self._in_cells = bool(seed % 2)
        self._seqs: dict[AskingClient, int] = {}
        super().__init__(seed, shape)

    def _place(self, name: str) -> Place:
        place = super()._place(name)
        return cells.with_cells(place, self.world) if self._in_cells else place

    def _all_linked(self) -> bool:
        return cells.all_linked(self.places)

    def _judge(  # type: ignore[override]
        self,
        places: Sequence[Place],
        specifications: Mapping[str, str],
        arrived: Sequence[Mapping[str, Any]],
        *,
        exactly: bool,  # noqa: ARG002
    ) -> int:
        rows = checks.results_of(places)
        checkers.check_no_result_twice((0, row) for _, row in rows)
        excused = checks.excused_of(arrived)
        for text in specifications.values():
            specification = texts.checked(text).demand()
            wanted = checkers.replayed(specification, arrived)
            keys = set(specification.subscriptions)
            given = [
                json.loads(row.payload)
                for _, row in rows
                if (row.subscriber, row.subscription) in keys
            ]
            _check_once(wanted, given, excused)
        for place in places:
            checks.check_kept(place)
        return len(rows)

    def _plan_readings(self) -> int:
        end_ms = super()._plan_readings()
        random = self.world.random
        for asker in self._askers:
            for _ in range(random.randint(*CHANGES)):
                time_ms = random.randint(self.world.now + CALM_MS // 2, end_ms)
                self.world.at(time_ms, partial(self._change, asker))
        for _ in range(random.randint(*cells.MOVES)) if self._in_cells else ():
            self.world.at(random.randint(self.world.now, end_ms), self._move)
        return end_ms

    def _plan_faults(self, end_ms: int) -> None:
        super()._plan_faults(end_ms)
        for time_ms, absence in cells.drawn_absences(self.world, end_ms) if self._in_cells else ():
            self.world.at(time_ms, partial(absence, self.places, self.world.random))

    def _move(self) -> None:
        self.moves += cells.moved(self.places, self.world.random)

    def _settle(self) -> None:
        for place in self.places:
            place.away_ms = 0
        super()._settle()
        for place in self.places if self._in_cells else ():
            cells.check_cells(place, self.places)

    def _change(self, asker: AskingClient) -> None:
        """Have a client submit its text with the next `seq`."""
        seq = self._seqs[asker] = self._seqs.get(asker, 1) + 1
        specification = texts.checked(self._specifications[asker.name]).demand()
        names = tuple([name for _, name in specification.subscriptions])
        text = text_of(names, asker.name, seq)
        asker.wish(Wish("submit", text, dict.fromkeys(names, seq)))
        self.changes += 1


def _check_once(
    wanted: Iterable[Mapping[str, Any]], given: Iterable[Mapping[str, Any]], excused: Excused
) -> None:
    """Raise CheckFailedError unless all versions together found what was to be found, once."""
    expected = {_match(result): result for result in wanted}
    counts = Counter(map(_match, given))
    missing = [
        result for key, result in expected.items() if key not in counts and not excused(result)
    ]
    surplus = [key for key, count in counts.items() if count > 1 or key not in expected]
    if missing or surplus:
        raise CheckFailedError(
            f"of {len(expected)} matches {len(missing)} are missing {missing[:2]} and"
            f" {len(surplus)} surplus {surplus[:2]}"
        )


def _match(result: Mapping[str, Any]) -> str:
    """Return what tells a match from others, whichever version found it."""
    names = ("subscriber", "subscription", "start", "end", "group", "events")
    return json.dumps([result[name] for name in names], sort_keys=True)
