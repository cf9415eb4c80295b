"""What operators work on: the evaluator, chances, parameters, and where a piece may be cheap.

Owns the candidates of a move and what they are estimated to cost. Must not know which moves there
are. Invariant: an estimate is exact where links bear everything and trees are least ones; else the
evaluator has the last word.
"""

from collections.abc import Sequence
from itertools import islice
from math import inf
from random import Random

from planner.search.distances import unpacked
from planner.search.evaluator import Evaluator, Moves, Undo
from planner.search.instance import ABSENT, Instance
from planner.search.params import SearchParams

# Times `granular`: among so many brokers those with room are looked for.
FURTHER = 10
# Draws until a move is sought anew for a piece for which it was sought in vain.
DRAWS = 8
# Of so many values of a row there is one in the sample that tells which are small.
SAMPLED = 16
# Of what a piece causes: beyond these a penalty says no more, and an infinite one has no sum.
PENALTY_MIN, PENALTY_MAX = 1e-3, 1e7
# Rows that are kept, for each piece.
KEPT_EACH = 2
# Of the times any of equal brokers is taken: the first is not always good.
EQUALS_DRAWN = 0.3

# What undoes a change, the last part last.
Changes = list[Undo]


class MoveContext:
    """Hold what an operator works on: the evaluator, chances, parameters, the penalty at hand."""

    def __init__(self, evaluator: Evaluator, random: Random, params: SearchParams) -> None:
        self.evaluator = evaluator
        self.instance: Instance = evaluator.instance
        self.random = random
        self.params = params
        # What a piece causes on average: the measure of penalties and temperatures.
        self.usual = 1e-6 + evaluator.flow / max(1, evaluator.instance.pieces)
        self.penalty = 0.0
        # By how much a change may be for the worse and is kept, where that is known before.
        self.spare = inf
        # By kind of move, the pieces for which nothing near has changed since one was sought.
        self.settled: dict[str, set[int]] = {}
        self._kept: dict[tuple[int, ...], tuple[list[int], int | None]] = {}

    def scale_penalty(self, factor: float) -> None:
        """Make broken limits dearer or cheaper, between what is nothing and what is everything."""
        penalty = self.penalty * factor
        self.penalty = min(max(penalty, PENALTY_MIN * self.usual), PENALTY_MAX * self.usual)

    def draw(self, kind: str, pieces: Sequence[int] = ()) -> int:
        """Return a piece by chance, of `pieces` or all, for which a move of that kind is new.

        One that is not new only after some draws: what brokers have room for changes as well.
        """
        settled = self.settled.setdefault(kind, set())
        random, left = self.random, DRAWS
        while (
            piece := random.choice(pieces) if pieces else self.instance.draw(random)
        ) in settled and left > 1:
            left -= 1
        settled.add(piece)
        return piece

    def unsettle(self, changes: Changes) -> None:
        """Have all that changes concern looked at again."""
        near = [self.instance.near[piece] for _, places, _, _ in changes for piece, _ in places]
        for settled in self.settled.values():
            settled.difference_update(*near)

    def choices(
        self, group: Sequence[int], *, anywhere: bool = False, free: bool = False
    ) -> list[tuple[float, int]]:
        """Return where `group` may be cheap: what it costs at a broker, and the broker.

        All allowed brokers; but among many, as in a granular neighbourhood (Toth and Vigo, 2003),
        the cheapest, and the cheapest with room, unless it is to be `anywhere`. `free`: as if
        brokers had room for everything.
        """
        instance, hosts = self.instance, self.instance.hosts[group[0]]
        if len(group) > 1:
            allowed = frozenset.intersection(*(instance.allowed[piece] for piece in group))
            hosts = tuple(sorted(allowed))
        if not instance.many or anywhere:
            return self._charged(group, self.evaluator.row(group, hosts), hosts, free=free)
        values, staying = self._ascending(group, hosts)
        bits, part = instance.nodes.bit_length(), instance.part
        mask = (1 << bits) - 1
        near = values[: self.params.granular]
        if staying is not None and staying not in near:
            near.append(staying)
        row = [(value >> bits) * part for value in near]
        scored = self._charged(group, row, [value & mask for value in near], free=free)
        if instance.capped:
            cost = sum(instance.costs[piece] for piece in group)
            loads = self.evaluator.loads  # read directly: a call for each broker takes longer
            load, room, first = loads.loads, loads.room, loads.first_work
            roomy = (
                ((value >> bits) * part, host)
                for value in values[self.params.granular :]
                if load[first + (host := value & mask)] + cost <= room[first + host]
                and value != staying
            )
            scored += islice(roomy, self.params.granular)
        return scored

    def _ascending(
        self, group: Sequence[int], hosts: Sequence[int]
    ) -> tuple[list[int], int | None]:
        """Return what `group` costs at its cheapest brokers, and where it is, as values.

        Each has its broker in the lowest bits, so that sorting needs no key. They hang on the
        brokers of what is near alone, so they are kept with these.
        """
        instance, hosted = self.instance, self.evaluator.hosts
        key = (*group, *[hosted[other] for piece in group for other in instance.near[piece]])
        # What is absent is hardly ever asked for again with all others where they are.
        if (kept := self._kept.get(key)) is None:
            bits = instance.nodes.bit_length()
            values = unpacked(
                (self.evaluator.lanes(group) << bits) + instance.by_number, instance.nodes
            )
            own = hosted[group[0]]
            staying = values[own] if own != ABSENT else None
            if len(hosts) < instance.nodes:
                values = [values[host] for host in hosts]
            kept = lowest(values, FURTHER * self.params.granular), staying
            if own != ABSENT:
                if len(self._kept) >= KEPT_EACH * instance.pieces:
                    self._kept.clear()
                self._kept[key] = kept
        return kept

    def _charged(
        self, group: Sequence[int], row: Sequence[float], hosts: Sequence[int], *, free: bool
    ) -> list[tuple[float, int]]:
        """Return flows by broker with what limits of brokers cost there."""
        if free or not self.instance.capped or not self.penalty:
            return list(zip(row, hosts, strict=True))
        costs, loads, penalty = self.instance.costs, self.evaluator.loads, self.penalty
        whole = sum(costs[piece] for piece in group)
        own: dict[int, float] = {}
        for piece in group:
            host = self.evaluator.hosts[piece]
            own[host] = own.get(host, 0.0) + costs[piece]
        first = loads.first_work
        load, room = loads.loads, loads.room
        scored = []
        for flow, host in zip(row, hosts, strict=True):
            charge = 0.0
            if host in own or load[first + host] + whole > room[first + host]:
                mine = own.get(host, 0.0)  # what stays counts in the load already
                charge = loads.pressure(host, whole - mine)
                charge -= loads.pressure(host, -mine) if mine else 0.0
            scored.append((flow + penalty * charge, host))
        return scored

    def some_near(self, size: int, first: int | None = None) -> list[int]:
        """Return a piece, some that concern it or share its broker, and so on from these."""
        evaluator, random, instance = self.evaluator, self.random, self.instance
        chosen = [instance.draw(random) if first is None else first]
        met = set(chosen)
        for piece in chosen:  # grows while it is walked
            about = dict.fromkeys((*instance.near[piece], *evaluator.at[evaluator.hosts[piece]]))
            near = [other for other in about if other not in met]
            drawn = random.sample(near, min(3, size - len(chosen), len(near)))
            met.update(drawn)
            chosen += drawn
            if len(chosen) >= size:
                break
        if (missing := min(size, instance.pieces) - len(chosen)) > 0:
            others = [piece for piece in range(instance.pieces) if piece not in met]
            chosen += random.sample(others, missing)
        return chosen

    def renew(self, pieces: Sequence[int]) -> Changes:
        """Take up pieces and place each anew, in this order, where it costs least."""
        evaluator, hosts = self.evaluator, self.evaluator.hosts
        if self.instance.limited and not self.instance.many:
            # What links and brokers have to spare for streams is known only once they are laid.
            taken = evaluator.apply([(piece, ABSENT) for piece in pieces])
            return [taken, *(self._try_out(piece) for piece in pieces)]
        # Rows read hosts alone, so streams are laid once, when all hosts are known.
        before = [(piece, hosts[piece]) for piece in pieces]
        for piece in pieces:
            evaluator.put(piece, ABSENT)
        for piece in pieces:
            evaluator.put(piece, self._cheapest(piece))
        after = [(piece, hosts[piece]) for piece in pieces]
        for piece, host in before:
            evaluator.put(piece, host)
        return self.made(after)

    def made(self, places: Moves) -> Changes:
        """Bring pieces to these places, those that are elsewhere.

        Not if what their streams take at least shows that it would be undone.
        """
        evaluator = self.evaluator
        moves = [(piece, host) for piece, host in places if evaluator.hosts[piece] != host]
        if not moves:
            return []
        # Where limits may be broken, streams may go shorter ways than those with room for them.
        bound = evaluator.builder.strict or not self.instance.limited
        if bound and self.spare < inf and not self.instance.prices:
            spare = self.spare + evaluator.cost(self.penalty) - evaluator.flow
            if evaluator.more_at_least(moves) > spare:
                return []
        return [evaluator.apply(moves)]

    def _cheapest(self, piece: int) -> int:
        """Return where an absent piece costs least, or now and then the next best."""
        random = self.random
        scores = self.choices((piece,))
        if len(scores) > 1 and random.random() < self.params.passed_over:
            scores.remove(min(scores))
        least = min(scores)
        if random.random() < EQUALS_DRAWN:
            return random.choice([host for score, host in scores if score <= least[0]])
        return least[1]

    def _try_out(self, piece: int) -> Undo:
        """Put an absent piece at the best of the cheapest brokers, with the links that it takes."""
        evaluator, random, params = self.evaluator, self.random, self.params
        scores = sorted(self.choices((piece,)))
        if len(scores) > 1 and random.random() < params.passed_over:
            del scores[0]
        scores = scores[: params.tried]
        before = evaluator.cost(self.penalty)
        best, lower = (inf, ABSENT), scores[0][0]
        kept: Undo | None = None
        for score, host in scores:
            if score - lower + before >= best[0]:
                break  # what links add only makes it dearer
            if kept is not None:
                evaluator.undo(kept)
            kept = evaluator.apply([(piece, host)])
            cost = evaluator.cost(self.penalty)
            if cost < best[0]:
                best = (cost, host)
        assert kept is not None
        if evaluator.hosts[piece] != best[1]:
            evaluator.undo(kept)
            kept = evaluator.apply([(piece, best[1])])
        return kept


def lowest(values: list[int], count: int) -> list[int]:
    """Return the `count` least of `values`, ascending: a sample tells which to sort at all."""
    sample = sorted(values[::SAMPLED])
    bound = sample[min(len(sample) - 1, 5 * count // (4 * SAMPLED) + 4)]
    near = [value for value in values if value <= bound]
    return sorted(near if len(near) >= count else values)[:count]
