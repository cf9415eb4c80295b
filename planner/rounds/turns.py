"""Reserve and confirm: a leader's turn, and a member that is promised to one leader at a time.

Owns who waits for whom. Must not know tables' contents or moves. Invariant: a member is promised to
one turn at most; a turn waits only for turns of leaders behind it in rank, so nobody waits in a
circle, and the first in rank is never refused for being late.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from planner.rounds.vicinity import Proposal

Claim = tuple[int, int, int]
"""Leader, its turn, the version that it goes by. Leaders rank by number."""


@dataclass
class Turn:
    """A leader's own turn: what it wants of whom, and who has yet to agree.

    `missed`: the time to look again has come meanwhile, and has passed.
    """

    number: int
    proposal: Proposal
    waiting: set[int]
    missed: bool = False


@dataclass
class Promise:
    """A member's side."""

    held: Claim | None = None
    queue: list[Claim] = field(default_factory=list)

    def ask(self, claim: Claim) -> bool | None:
        """True: promised; False: refused; None: it waits."""
        if self.held is None:
            self.held = claim
            return True
        if claim[0] < self.held[0]:
            self.queue.append(claim)
            self.queue.sort()
            return None
        return False

    def end(self, leader: int, turn: int) -> bool:
        """A turn is over, by commit or cancel; whether the member was promised to it."""
        if self.held is not None and self.held[:2] == (leader, turn):
            self.held = None
            return True
        self.queue = [claim for claim in self.queue if claim[:2] != (leader, turn)]
        return False

    def next(self, version: int) -> tuple[Claim | None, list[Claim], list[Claim]]:
        """Takes up the first that waits and goes by `version`, if nobody has the member.

        Also gives those refused as stale, and those refused because they would wait for a leader
        ahead of them: all that are left.
        """
        if self.held is not None:
            return None, [], []
        stale = [claim for claim in self.queue if claim[2] != version]
        valid = [claim for claim in self.queue if claim[2] == version]
        self.queue = []
        self.held = valid[0] if valid else None
        return self.held, stale, valid[1:]
