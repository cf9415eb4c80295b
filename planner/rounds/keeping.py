"""What a broker runs, still runs for another, and looks after as guardian.

Owns terms, claims and the finding of hosts for what nobody runs. Must not know plans or rates.
Invariant: a piece that another is entrusted with stays with its old host until the new one has said
that it runs it; of two hosts the one with the higher term stays (of equal terms the first broker),
whatever was lost between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from planner.layout import Layout, Role
from planner.rounds import messages as m
from planner.rounds.bids import elect, first_host, guardian, homes_of
from planner.rounds.post import Host, Leave, Post
from planner.rounds.tables import HERE, Hosted
from planner.rounds.units import scaled
from planner.rounds.view import Ground

if TYPE_CHECKING:
    from planner.rounds.tree import Tree


class Keeping:
    """Pieces by number; `terms` are of those that run here."""

    def __init__(self, me: int, post: Post) -> None:
        self.me = me
        self._post = post
        self.terms: dict[int, int] = {}
        self.leaving: dict[int, int] = {}  # committed to others, with the term they have them under
        self._early: set[tuple[int, int]] = set()
        self._claims: dict[int, tuple[int, int]] = {}  # as guardian: (term, broker)
        self._last: dict[int, int] = {}  # as guardian: the highest term that was heard of
        self._layout: Layout | None = None

    def begin(self, layout: Layout, tree: Tree, costs: Sequence[int]) -> None:
        """A new epoch: what nobody has confirmed is still run here, under its old term.

        What the layout no longer has is not run any more.
        """
        for piece, term in self.leaving.items():
            self.terms[piece] = term - 1
        if self._layout is not None and layout is not self._layout:
            numbers = {piece.known_by: number for number, piece in enumerate(layout.pieces)}
            old = self._layout.pieces
            gone = [piece for piece in self.terms if old[piece].known_by not in numbers]
            for piece in gone:
                del self.terms[piece]
                self._post.out.append(Leave(piece, agreed=False))
            self.terms = {numbers[old[p].known_by]: term for p, term in sorted(self.terms.items())}
            self._last = {
                numbers[old[p].known_by]: term
                for p, term in sorted(self._last.items())
                if old[p].known_by in numbers
            }
        self.leaving.clear()
        self._early.clear()
        self._claims.clear()
        self._layout, self._tree = layout, tree
        self._costs = list(costs)
        self._homes = homes_of(layout)
        self._announce(sorted(self.terms), anew=True)

    def stand(self, ground: Ground) -> None:
        """All is known of who runs what: nobody has to claim, to adopt or to look after it."""
        self.me = ground.me
        self._layout, self._tree = ground.layout, ground.tree
        self._costs = [scaled(piece.cost) for piece in ground.layout.pieces]
        self._homes = []
        self.leaving.clear()
        self._early.clear()
        self._claims.clear()
        self.terms = {item.piece: item.term for item in ground.tables.hosted}

    def hosted(self) -> tuple[Hosted, ...]:
        """Return what runs here, for the tables."""
        return tuple(
            Hosted(piece, term, self._costs[piece]) for piece, term in sorted(self.terms.items())
        )

    def measured(self, costs: Mapping[int, int]) -> None:
        """Other costs of pieces."""
        for piece, cost in costs.items():
            self._costs[piece] = cost

    def commit(self, hosted: Iterable[Hosted], moves: Iterable[tuple[int, int, int]]) -> None:
        """A turn is agreed: pieces come and go."""
        terms = {one.piece: one.term for one in hosted}
        own = [move for move in moves if self.me in move[1:]]
        for piece, whence, whither in own:
            if whither == self.me:
                fresh = piece not in self.leaving
                self.terms[piece] = terms[piece]
                self.leaving.pop(piece, None)
                if fresh:
                    self._post.out.append(Host(piece, whence, agreed=True))
                self._post.send(whence, m.Entrusted(piece, terms[piece]))
            else:
                self._give(piece, self.terms.pop(piece) + 1)
        arrived = [piece for piece, _, whither in own if whither == self.me]
        self._announce(arrived, anew=False)

    def read(self, origin: int, body: m.Body) -> bool:
        """A word about hosts; whether what runs here has changed outside of any turn."""
        if isinstance(body, m.Entrusted):
            self._entrusted(body.piece, body.term)
        elif isinstance(body, m.Placed):
            for piece, term in body.pieces:
                self._claimed(piece, term, origin, anew=body.anew)
        elif isinstance(body, m.Entrust):
            self.terms[body.piece] = body.term
            self._post.out.append(Host(body.piece, HERE, agreed=False))
            return True
        elif isinstance(body, m.Drop) and self.terms.get(body.piece) == body.term:
            del self.terms[body.piece]
            self._post.out.append(Leave(body.piece, agreed=False))
            return True
        return False

    def adopt(self) -> None:
        """As guardian: finds hosts for the pieces that nobody has claimed in this epoch.

        A header goes to whom the election names, by where the partial results are made now.
        """
        assert self._layout is not None
        layout, tree = self._layout, self._tree
        headers = {one.header: number for number, one in enumerate(layout.aggregates)}
        for piece, home in enumerate(self._homes):
            if piece in self._claims or guardian(home, tree, self.me) != self.me:
                continue
            host = first_host(layout, piece, tree, self.me)
            if layout.pieces[piece].role is Role.HEADER:
                number = headers[piece]
                partials = layout.aggregates[number].partials
                makers = [self._claims[one][1] for one in partials if one in self._claims]
                allowed = [h for h in layout.pieces[piece].hosts if h in tree.hops(self.me)]
                if allowed:
                    host = elect(layout, number, makers, tree, allowed)
            if host is not None:
                term = self._last.get(piece, -1) + 1
                self._claims[piece] = (term, host)
                self._last[piece] = term
                self._post.send(host, m.Entrust(piece, term))

    def _announce(self, pieces: Iterable[int], *, anew: bool) -> None:
        """Tells the guardians of pieces that they run here, where there are guardians."""
        told: dict[int, list[tuple[int, int]]] = {}
        for piece in pieces if self._homes else ():
            keeper = guardian(self._homes[piece], self._tree, self.me)
            told.setdefault(keeper, []).append((piece, self.terms[piece]))
        for keeper, found in told.items():
            self._post.send(keeper, m.Placed(tuple(found), anew))

    def _give(self, piece: int, term: int) -> None:
        if (piece, term) in self._early:
            self._early.discard((piece, term))
            self._post.out.append(Leave(piece, agreed=True))
        else:
            self.leaving[piece] = term

    def _entrusted(self, piece: int, term: int) -> None:
        if self.leaving.get(piece) == term:
            del self.leaving[piece]
            self._post.out.append(Leave(piece, agreed=True))
        elif self.terms.get(piece, term) < term:
            self._early.add((piece, term))  # the commit to this broker is still on its way

    def _claimed(self, piece: int, term: int, broker: int, *, anew: bool) -> None:
        """Two that claim a piece at an epoch's beginning know nothing of each other: one stops."""
        claim, known = (term, broker), self._claims.get(piece)
        self._last[piece] = max(term, self._last.get(piece, 0))
        if known is None or known[1] == broker:
            self._claims[piece] = claim
            return
        better, lesser = sorted([known, claim], key=lambda one: (-one[0], one[1]))
        self._claims[piece] = better
        if anew:
            self._post.send(lesser[1], m.Drop(piece, lesser[0]))
