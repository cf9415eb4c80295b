"""The coordinator of a running broker, made from its configuration.

Owns this making. Must not know how a plan is found. Invariant: it is imported only where tasks are
to follow the load, and the planner with it.
"""

from random import Random

from broker.config.coordinator import CoordinatorSection
from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.effort import rounds_settings
from broker.core.network.network_broker import NetworkBroker
from broker.core.network.planning import Planning
from planner.rounds.machine import Rounds
from planner.rounds.units import scaled


def planning_of(section: CoordinatorSection, broker: NetworkBroker, life: int) -> Planning:
    """The coordinator; from now on the broker decides with others where tasks run."""
    settings = CoordinatorSettings(
        radius=section.radius,
        capacity=section.capacity_bytes_per_s,
        egress=section.egress_bytes_per_s,
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
