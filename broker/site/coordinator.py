"""The coordinator of a running broker, made from its configuration.

Owns this making, and that all is loaded that tasks of others need. Must not know how a plan is
found. Invariant: it is imported only where tasks are to follow the load, and the planner with it.
"""

from random import Random

from broker.config.coordinator import CoordinatorSection
from broker.core.broker import BrokerOptions
from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.laying import rounds_settings
from broker.core.messages import SpecificationSubmitted
from broker.core.network.network_broker import NetworkBroker
from broker.core.network.planning import Planning
from broker.core.recovery.durable import DurableBroker
from broker.engine.limits import Limits
from planner.rounds.machine import Rounds
from planner.rounds.units import scaled

FIRST = """event First(n: float)
define Sums(n) aggr every 1 s
detect First as f
assign n = Sum(f.n)
subscription Each from first to nobody
detect Sums as s and First as f within 1 s where s.n > f.n
"""


def load() -> None:
    """Install a text that nobody asked for, and forget it.

    The first text of a process loads the language and its parser: a quarter of a second of a core,
    in which a broker does nothing else. Where others are busy that is many seconds, its neighbours
    take its links for cut, and the task goes back to where it came from. So it is done before there
    is a link.
    """
    core = DurableBroker(BrokerOptions(name="first"), Limits())
    core.handle(SpecificationSubmitted("first", "", FIRST), 0)


def planning_of(section: CoordinatorSection, broker: NetworkBroker, life: int) -> Planning:
    """The coordinator; from now on the broker decides with others where tasks run."""
    settings = CoordinatorSettings(
        radius=section.radius,
        capacity=section.capacity_bytes_per_s,
        egress=section.egress_bytes_per_s,
        link=section.link_bytes_per_s,
        price_percent=section.price_percent,
        change_percent=section.change_percent,
        measure_ms=section.measure_ms,
    )
    limits = (_whole(settings.capacity), _whole(settings.egress))
    rounds = Rounds(0, rounds_settings(settings), Random(), limits)
    planning = Planning(broker, life, settings, rounds)
    broker.deciding = planning
    return planning


def _whole(limit: int) -> int | None:
    return scaled(limit) if limit else None
