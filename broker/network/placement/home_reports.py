"""What a cell tells its home, and what of that the home has.

Owns the results and the snapshot that the home has not taken, the origins that it has yet to write
down, and how subscriptions stand for it. Must not know frames, nor what tasks compute. Invariant:
whatever is said again says the present state; a snapshot is said once the home has all results
before it.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.network.placement import cell_messages
from broker.network.placement.cell_messages import Origins, TextRevision, Which
from broker.network.placement.home_records import Reached
from broker.network.placement.result_queue import ResultQueue
from broker.network.placement.snapshot_pace import Saver, Saving
from broker.network.placement.suspension import Rows, StandingCatalogue, standing_of


class NamedOrigins:
    """The origins of a cell; its home knows of `noted` and has yet to write down `waiting`.

    Whatever begins in the cell's place waits for those that the home knows of, so that a cell asks
    no origin before.
    """

    def __init__(self) -> None:
        self.noted: Origins = {}
        self.waiting: Origins = {}
        self.said = False

    def allow(self, origin: str, types: tuple[str, ...]) -> bool:
        """Tell whether the home knows that an origin is asked for these types; else it is told."""
        if set(types) <= set(self.noted.get(origin, ())):
            return True
        if self.waiting.get(origin) != types:
            self.waiting[origin] = types
            self.said = False
        return False

    def note(self, origins: Origins) -> list[str]:
        """The home knows of these; return those that waited for that."""
        waited = []
        for origin, types in origins.items():
            self.noted[origin] = tuple(dict.fromkeys([*self.noted.get(origin, ()), *types]))
            if self.waiting.pop(origin, None) is not None:
                waited.append(origin)
        return waited

    def forget(self, origin: str) -> None:
        """Nobody waits for it any more."""
        self.waiting.pop(origin, None)
        self.noted.pop(origin, None)


class HomeReports:
    """The reports of the life `life` of a term; `settle_asked`: its home wants to know how far."""

    def __init__(  # noqa: PLR0917  # whose reports, and what they are of
        self,
        which: Which,
        life: int,
        results: ResultQueue,
        saver: Saver,
        origins: NamedOrigins,
        catalogue: StandingCatalogue,
    ) -> None:
        self.results, self.saver, self.origins = results, saver, origins
        self.settle_asked = False
        self.ends_said = 0  # how many ends the home was told of
        self.confirmed: Rows = ()  # how subscriptions stand for the home
        self._of = which, life
        self._catalogue = catalogue
        self._saved_said = False  # of the snapshot that waits for the home
        self._standing_said: Rows | None = None

    def standing(self) -> Rows:
        """Return how subscriptions stand here."""
        return standing_of(self._catalogue, self._catalogue.subscriptions, self.confirmed)

    def revise(self, revision: TextRevision) -> None:
        """Take all that is found from now on for that of another text."""
        self.results.revision = self.saver.revision = revision.number

    def revised(self, revision: TextRevision) -> None:
        """Say how subscriptions stand once more; what is in another's place stands as it begins."""
        self._standing_said = None
        self.confirmed = tuple([row for row in self.confirmed if row.key not in revision.keys])

    def taken(self, next_: int) -> None:
        """The home has all results before this number."""
        self.results.take(next_)
        self._saved_said = False  # a snapshot may have waited for that

    def save(self, saving: Saving, now: int) -> None:
        """This is the next snapshot."""
        self.saver.save(saving, now)
        self._saved_said = False

    def stored(self, number: int) -> bool:
        """The home has stored that snapshot; tell whether it is the one that waited for that."""
        if not self.saver.done(number):
            return False
        self.ends_said = 0  # a home hears of ends from a term that serves alone
        return True

    def say_again(self) -> None:
        """Begin to say all again, as what was told may be lost."""
        self.results.tell_again()
        self.ends_said, self._standing_said = 0, None
        self._saved_said = self.origins.said = False

    def say(self, settled: list[Reached]) -> Iterable[cell_messages.Said]:
        """Yield what the home has not been told yet; all before `settled` is among the results."""
        if (standing := self.standing()) != self._standing_said:
            self._standing_said = standing
            yield cell_messages.Running(*self._of, standing, self.saver.revision)
        if self.origins.waiting and not self.origins.said:
            self.origins.said = True
            yield cell_messages.Named(*self._of, dict(self.origins.waiting))
        yield from self.results.say(*self._of)
        if settled:
            yield cell_messages.Settled(*self._of, self.results.next_told, settled)
        saving = self.saver.waiting
        if saving is not None and not self._saved_said and saving.end <= self.results.first:
            self._saved_said = True
            upto = self.results.first, saving.number, saving.end
            yield cell_messages.Saved(*self._of, *upto, saving.snapshot, saving.revision)

    @property
    def waiting(self) -> bool:
        """Tell whether there is something that the home has not taken."""
        waits = len(self.results) or self.origins.waiting or self.standing() != self.confirmed
        return bool(waits) or self.saver.waiting is not None
