"""One look at a vicinity: the search for a better plan, in slices, until it is worth a turn.

Owns how long is looked. Must not know messages or time. Invariant: equal views give equal
proposals, whoever looks and whenever; so where all is quiet, to look again would find nothing.
"""

from __future__ import annotations

from planner.rounds.settings import Settings
from planner.rounds.vicinity import Proposal, Vicinity
from planner.rounds.view import View
from planner.search.search import Search
from planner.search.stops import after_effort

SEED = 1
"""Of all looks: what one finds must not hang on who looks."""


class Look:
    """A look at all pieces of a vicinity; `go_on` says when it is over."""

    def __init__(self, view: View, settings: Settings) -> None:
        effort = settings.effort
        self.vicinity = Vicinity(view, settings.price)
        # With more pieces or members there are more plans to look at, up to what a broker bears.
        cells = len(self.vicinity.groups) * len(view.brokers)
        self.most = min(effort.total, effort.each * cells)
        self._at_once, self._gain = effort.at_once, settings.gain
        start = self.vicinity.beginning()
        self.search = Search(self.vicinity.instance, SEED, start=start)
        self.proposal: Proposal | None = None

    def go_on(self) -> bool:
        """Take one slice more; return whether the look is over, with a proposal or without."""
        spent = self.search.evaluator.effort
        # Effort and not time ends a slice, so that a busy machine proposes the same.
        self.search.run(after_effort(min(spent + self._at_once, self.most)))
        self.proposal = self.vicinity.proposal(self.search.best.hosts, self._gain)
        spent = self.search.evaluator.effort
        return self.proposal is not None or spent >= self.most or not self.search.operators
