"""What limits bear: links, what brokers send, and what they run, all by one number each.

Owns loads, limits, their prices, and by how much limits are broken. Must not know streams or pieces
by name. Invariant: `broken` has exactly the limits that their loads exceed, each with its excess as
`beyond` counts it.

Limits come in the order: directed links, what brokers send, what brokers run.
"""

from collections.abc import Iterable
from math import inf

from planner.flow import over
from planner.search.instance import ROOM, Instance

# Of one limit: with more, differences of costs would be lost, and infinite ones have none.
EXCESS_MAX = 1e12
# Limits that links count for, by number, and how often.
Needs = dict[int, int]


class Loads:
    """The load of each limit; `broken` are those that are exceeded, by what part of themselves."""

    def __init__(self, instance: Instance) -> None:
        links, nodes = len(instance.arcs), instance.nodes
        self.limits = [*instance.limits, *instance.egress, *instance.capacity]
        self.room = [limit * (1 + ROOM) for limit in self.limits]
        self.first_sent, self.first_work = links, links + nodes
        self.limits_of = [
            tuple(n for n in (link, links + a) if self.limits[n] < inf)
            for link, (a, _) in enumerate(instance.arcs)
        ]
        self.prices = [1.0] * len(self.limits)
        self.loads = [0.0] * len(self.limits)
        self.broken: dict[int, float] = {}
        # By limit of a link or of what a broker sends, the streams that take it.
        self.users: list[dict[int, None]] = [{} for _ in range(self.first_work)]
        # Sums of fractions that are taken off again leave a trifle, which is no load.
        self.trifle = 1e-12 * max((flow.rate for flow in instance.flows), default=0.0)

    def excess(self) -> float:
        """Return by how much limits are broken together, each as a part of itself."""
        return sum(self.broken.values())

    def charge(self) -> float:
        """Return the same at the price of each limit."""
        prices = self.prices
        return sum(prices[limit] * part for limit, part in self.broken.items())

    def pressure(self, node: int, cost: float) -> float:
        """Return what limits are broken by more where `node` runs `cost` more, at its price."""
        number = self.first_work + node
        load = self.loads[number] + cost
        if load <= self.room[number]:
            return 0.0 if cost >= 0 else -self.prices[number] * self.broken.get(number, 0.0)
        part = beyond(load, self.limits[number])
        return self.prices[number] * (part - self.broken.get(number, 0.0))

    def fits(self, node: int, cost: float) -> bool:
        """Return whether `node` can run `cost` more."""
        number = self.first_work + node
        return self.loads[number] + cost <= self.room[number]

    def run(self, node: int, cost: float, *, idle: bool) -> None:
        """Have `node` run `cost` more; a cost below zero is taken off, and all of it if `idle`."""
        number = self.first_work + node
        load = 0.0 if idle else self.loads[number] + cost
        self.loads[number] = load
        if load > self.room[number]:
            self.broken[number] = beyond(load, self.limits[number])
        elif self.broken:
            self.broken.pop(number, None)

    def carry(self, stream: int, needs: Needs, rate: float) -> None:
        """Add what a tree of `stream` counts for."""
        loads, room, broken, users = self.loads, self.room, self.broken, self.users
        for number, count in needs.items():
            load = loads[number] = loads[number] + rate * count
            users[number][stream] = None
            if load > room[number]:
                broken[number] = beyond(load, self.limits[number])

    def drop(self, stream: int, needs: Needs, rate: float) -> None:
        """Take off what a tree of `stream` counts for; all its trees are taken off together."""
        loads, room, broken, users = self.loads, self.room, self.broken, self.users
        trifle = self.trifle
        for number, count in needs.items():
            load = loads[number] - rate * count
            if load < trifle:
                load = 0.0
            loads[number] = load
            users[number].pop(stream, None)
            if number in broken:
                if load > room[number]:
                    broken[number] = beyond(load, self.limits[number])
                else:
                    del broken[number]

    def needs(self, links: Iterable[int]) -> Needs:
        """Return the limits that links count for, and how often."""
        counts: Needs = {}
        for link in links:
            for number in self.limits_of[link]:
                counts[number] = counts.get(number, 0) + 1
        return counts

    def bear(self, needs: Needs, rate: float) -> bool:
        """Return whether there is room for a tree that counts for `needs`."""
        loads, room = self.loads, self.room
        return all(loads[number] + count * rate <= room[number] for number, count in needs.items())

    def even_prices(self) -> None:
        """Let each limit cost the same to break again."""
        self.prices = [1.0] * len(self.prices)

    def raise_prices(self, factor: float, price_max: float) -> None:
        """Make what is broken dearer; where a price would exceed `price_max`, all are 1 again."""
        for limit in self.broken:
            self.prices[limit] *= factor
            if self.prices[limit] > price_max:
                self.even_prices()
                return


def beyond(load: float, limit: float) -> float:
    """Return by what part of itself a limit is exceeded, as the flow tells it."""
    return min(over(load, limit), EXCESS_MAX)
