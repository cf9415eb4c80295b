"""What it costs a search to break a limit, for each limit its own price.

Owns the prices and how they rise. Must not know when they do. Invariant: where all prices are 1,
what is broken counts as a plan is judged; `link_excess` is what the prices of now come to.
"""

from math import fsum

from planner.flow import MISSED, over
from planner.search.metric import Vector
from planner.search.state import State


class Priced(State):
    """A placement with loads of links and brokers, of which some are over their limits."""

    prices_of: dict[int, float]
    """Of what is broken a part counts so often: a link's number, or -1 less a broker's."""
    work_price: Vector
    """By broker, of the work that is over its capacity."""
    broken: dict[int, None]
    """What is over its limit: a link's number, or -1 less a broker's."""
    link_excess: float
    lost: int
    load: list[float]
    sent: list[float]
    limit: list[float]
    bound: list[float]

    def excess_by_parts(self) -> float:
        """By how much limits are broken together, each as a part of itself, at no price."""
        parts = [over(*self._loaded(what)) for what in self.broken]
        return float(self.limits.excess(self.work).sum()) + fsum(parts) + MISSED * self.lost

    def raise_prices(self, factor: float, most: float) -> None:
        """Makes what is broken dearer; where something would cost more than that, all cost 1."""
        for what in self.broken:
            self.prices_of[what] = self.prices_of.get(what, 1.0) * factor
        self.work_price[self.limits.excess(self.work) > 0] *= factor
        if max(float(self.work_price.max()), *self.prices_of.values(), 1.0) > most:
            self.even_prices()
        self._count_broken()

    def even_prices(self) -> None:
        """All limits cost 1 to break."""
        self.prices_of.clear()
        self.work_price[:] = 1.0
        self._count_broken()

    def _count_broken(self) -> None:
        """What is over limits, at the prices of now."""
        self.link_excess = 0.0
        for what in self.broken:
            self.link_excess += self.prices_of.get(what, 1.0) * over(*self._loaded(what))

    def _loaded(self, what: int) -> tuple[float, float]:
        """What a link or, at -1 less a broker, that broker bears, and its limit."""
        if what >= 0:
            return self.load[what], self.limit[what]
        return self.sent[-1 - what], self.bound[-1 - what]
