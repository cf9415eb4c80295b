"""When subscriptions with an end are over.

Owns their ends, by what they wait for. Must not know what they report or who asks. Invariant: one
is over only where its agent promises that nothing comes that ends before its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from broker.engine.runtime.seats import Domain, Seat
from language.tree import Subscription

Key = tuple[tuple[str, ...], tuple[str, ...]]
WatermarkAt = Callable[[Domain], int]


class Endings:
    """The ends of all subscriptions that have one; `seats` are those that are there."""

    def __init__(self, seats: Mapping[int, Seat]) -> None:
        self._seats = seats
        # A heap for each; empty where no subscription ends, as in most brokers.
        self.domains: dict[Key, tuple[Domain, list[tuple[int, int]]]] = {}

    def note(self, seats: Sequence[Seat]) -> None:
        """Take in when these end, where that is known; twice is once."""
        for seat in seats:
            at = None if seat.task.kind == "definition" else _ends_at(seat)
            if at is not None:
                domain, entry = seat.domain, (at, seat.index)
                key = (domain.types, domain.definitions)
                known = self.domains.get(key)
                # A domain that went and came again is another object under the same key; its old
                # heap waits for nobody.
                if known is None or known[0] is not domain:
                    known = self.domains[key] = (domain, [])
                heappush(known[1], entry)

    def first(self) -> Iterator[tuple[Domain, int]]:
        """Each domain in which one has an end, with the first of these."""
        for key, (domain, ends) in list(self.domains.items()):
            while ends and ends[0][1] not in self._seats:
                heappop(ends)
            if ends:
                yield domain, ends[0][0]
            else:
                del self.domains[key]

    def over(self, foreseen: WatermarkAt, given: WatermarkAt) -> list[tuple[str, str]]:
        """(subscriber, name) of those of which nothing more can be a result.

        `foreseen` only looks at a domain's watermark; `given` asks for it, so that nothing may come
        behind it.
        """
        found: dict[tuple[str, str], None] = {}
        for domain, at in self.first():
            # Looking is free, asking is not: a watermark that was given out makes every earlier
            # event late, also for tasks that would still have taken it.
            if at <= foreseen(domain):
                found.update(dict.fromkeys(self._over_at(domain, given(domain))))
        return list(found)

    def _over_at(self, domain: Domain, watermark: int) -> list[tuple[str, str]]:
        _, ends = self.domains[domain.types, domain.definitions]
        passed: dict[tuple[int, int], None] = {}
        while ends and ends[0][0] <= watermark:
            passed[heappop(ends)] = None
        found = []
        for at, index in passed:
            seat = self._seats.get(index)
            if seat is None:
                continue
            # It stays noted until its seat goes: the broker may be told, and fail before it acts.
            heappush(ends, (at, index))  # until it goes
            node = seat.task.node
            if isinstance(node, Subscription) and seat.agent.watermark_out(watermark) >= at - 1:
                found.append((node.subscriber, node.name))
        return found


def _ends_at(seat: Seat) -> int | None:
    from broker.engine.pattern.staged_agent import StagedAgent

    return seat.agent.ends_at() if isinstance(seat.agent, StagedAgent) else None
