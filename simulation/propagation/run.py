"""Running a scenario on the brokers' routers, one approach at a time.

Owns the network between routers and what is counted of it. Must not know files or how outcomes are
shown. Invariant: each step and each event has been propagated fully before the next; loads are
counted where a message enters a link.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import ceil
from random import Random
from typing import Any, NamedTuple

import msgspec

from broker.engine.event.event import MetricPosition
from broker.network.routing.advertisement.messages import (
    LOCAL,
    Events,
    LeadEvents,
    Message,
    Results,
    Send,
    Want,
)
from broker.network.routing.advertisement.operator import (
    Advertisement,
    Key,
    Operator,
    Range,
    Region,
)
from broker.network.routing.matching.strategies import STRATEGIES, Strategy
from broker.network.routing.router import Router
from simulation.energy import NodeWork, Sizes
from simulation.propagation.central import CentralRouter
from simulation.propagation.needed import needed
from simulation.propagation.rings import RingRouter
from simulation.propagation.scenario import (
    SECOND_MS,
    PlacedSensor,
    PropagationScenario,
    RangeSubscription,
    SensorReading,
    Step,
    toward,
)

APPROACHES = tuple(STRATEGIES)
VALUE = "value"  # the one attribute of simple events

Progress = Callable[[int, int], None]


class SimpleEvent(msgspec.Struct, gc=False, eq=False):
    """An event as the paper has it; a router sees it as it sees a product's event."""

    id: str
    event_type: str
    source: str
    position: MetricPosition
    start: int
    end: int
    a_value: float
    location: str | None = None


class PropagationOutcome(NamedTuple):
    """The figures of one approach. Loads are per operator, and per event, sent over a link."""

    delivered: dict[str, list[str]]
    subscription: int
    publication: int
    recall: float
    by_link: dict[tuple[int, int], tuple[int, int]]  # directed: operators, events
    lost: dict[tuple[int, int], int]  # directed: of these events, those that never arrived
    entered: dict[int, int]  # by broker: events of its own sensors

    def work(self, sizes: Sizes) -> dict[int, NodeWork]:
        """Return what each broker did; every operator and every event is a message of its own."""
        done = {node: NodeWork(computed=count) for node, count in self.entered.items()}
        for (sender, receiver), (operators, events) in self.by_link.items():
            outward = done.setdefault(sender, NodeWork())
            outward.sent += operators + events
            outward.sent_bytes += operators * sizes.operator_bytes + events * sizes.event_bytes
            arrived = events - self.lost.get((sender, receiver), 0)
            inward = done.setdefault(receiver, NodeWork())
            inward.received += operators + arrived
            inward.received_bytes += operators * sizes.operator_bytes + arrived * sizes.event_bytes
            inward.computed += operators + arrived
        for node, work in done.items():
            work.computed_bytes = work.received_bytes
            work.computed_bytes += self.entered.get(node, 0) * sizes.event_bytes
        return done

    def told(self, *, numbered: bool) -> dict[str, Any]:
        """As the file format has it."""
        return {
            "delivered": {
                name: [int(each) for each in ids] if numbered else ids
                for name, ids in self.delivered.items()
            },
            "subscription": self.subscription,
            "publication": self.publication,
            "recall": self.recall,
        }


class Loss:
    """Links without acknowledgement: each event is lost on each with the same probability.

    Advertisements and operators arrive: they are few, and would be repeated until they have.
    """

    def __init__(self, share: float = 0.0, seed: int = 1) -> None:
        self.share = share
        self._draw = Random(seed)
        self.by_link: dict[tuple[int, int], int] = {}

    def arriving(self, link: tuple[int, int], message: Message) -> Message | None:
        """Return what arrives of a message; None: nothing."""
        if not self.share or not isinstance(message, Events | LeadEvents | Results):
            return message
        kept: list[Any] = [event for event in message.events if self._draw.random() >= self.share]
        if len(kept) == len(message.events):
            return message
        arrives: Events | LeadEvents | Results
        if isinstance(message, Events | LeadEvents):
            # Copies are by event: for each there are as many as there are operators.
            copies = message.copies * len(kept) // len(message.events)
            arrives = type(message)(kept, copies)
        else:
            arrives = Results(kept)
        gone = copies_of(message) - copies_of(arrives)
        self.by_link[link] = self.by_link.get(link, 0) + gone
        return arrives if kept else None


class PropagationNetwork:
    """The brokers of a scenario under one strategy."""

    def __init__(
        self, scenario: PropagationScenario, strategy: Strategy, loss: Loss | None = None
    ) -> None:
        self._loss = loss or Loss()
        self.entered: dict[int, int] = {}
        near = scenario.neighbours
        self._routers: list[Router | CentralRouter]
        if strategy.central:
            inward = toward(near, scenario.center)
            self._routers = [
                CentralRouter(None if next_ is None else str(next_)) for next_ in inward
            ]
        else:
            made = RingRouter if strategy.rings else Router
            self._routers = [made([str(each) for each in beside], strategy) for beside in near]
        self._queue: deque[tuple[int, Send]] = deque()
        self.delivered: dict[str, dict[str, None]] = {}
        self.by_link: dict[tuple[int, int], tuple[int, int]] = {}

    def router(self, node: int) -> Router | CentralRouter:
        """The router of a broker."""
        return self._routers[node]

    def advertise(self, sensor: PlacedSensor) -> None:
        """A sensor is there."""
        router = self._routers[sensor.node]
        if isinstance(router, Router):
            self._spread(sensor.node, router.advertised(LOCAL, advertisement_of(sensor)))

    def withdraw(self, sensor: PlacedSensor) -> None:
        """A sensor is gone, and so long that no event matches with its last."""
        router = self._routers[sensor.node]
        if isinstance(router, Router):
            self._spread(sensor.node, router.withdrawn(LOCAL, sensor.id))

    def subscribe(self, node: int, operator: Operator) -> None:
        """A user at a broker wants something."""
        self._spread(node, self._routers[node].operator_added(LOCAL, operator))

    def unsubscribe(self, node: int, name: str) -> None:
        """A user wants something no longer."""
        self._spread(node, self._routers[node].operator_removed(LOCAL, name))

    def publish(self, node: int, event: SimpleEvent) -> None:
        """An event enters at a broker."""
        self.entered[node] = self.entered.get(node, 0) + 1
        self._spread(node, self._routers[node].events(LOCAL, [event]))

    def look_at_rates(self, now_ms: int) -> None:
        """Have routers look how often events come."""
        for node, router in enumerate(self._routers):
            if isinstance(router, Router):
                self._spread(node, router.look_at_rates(now_ms))

    def expire(self, before_ms: int) -> None:
        """Forget what began before: it matches nothing that is still to come."""
        for router in self._routers:
            router.expire(before_ms)

    def _spread(self, sender: int, sends: list[Send]) -> None:
        """Carry messages until there are none."""
        queue = self._queue
        queue.extend((sender, send) for send in sends)
        while queue:
            node, (to, message) = queue.popleft()
            if to == LOCAL:
                if isinstance(message, Results):
                    for event, names in message.events:
                        for name in names:
                            self.delivered.setdefault(name, {})[event.id] = None
                continue
            other = int(to)
            self._count((node, other), message)
            arriving = self._loss.arriving((node, other), message)
            if arriving is not None:
                router = self._routers[other]
                queue.extend((other, send) for send in router.receive(str(node), arriving))

    def _count(self, link: tuple[int, int], message: Any) -> None:
        operators, events = self.by_link.get(link, (0, 0))
        if isinstance(message, Want):
            operators += 1
        elif isinstance(message, Events | LeadEvents | Results):
            events += copies_of(message)
        else:
            return
        self.by_link[link] = (operators, events)


def copies_of(message: Events | LeadEvents | Results) -> int:
    """Return how many events are charged for a message."""
    if isinstance(message, Events | LeadEvents):
        return message.copies
    return sum(len(names) for _, names in message.events)


def advertisement_of(sensor: PlacedSensor) -> Advertisement:
    """Make a sensor's advertisement."""
    return Advertisement(sensor.id, (sensor.attr,), None, MetricPosition(*sensor.loc))


def operator_of(
    subscription: RangeSubscription, sensors: dict[str, PlacedSensor], since_ms: int | None
) -> Operator:
    """A subscription as its broker takes it."""
    region = None
    if subscription.abstract and subscription.region is not None:
        region = Region("box", subscription.region, metric=True)
    keys = []
    for name in sorted(subscription.filters):
        low, high = subscription.filters[name]
        ranges = (Range(VALUE, low, high),)
        if subscription.abstract:
            keys.append(Key(name, name, region=region, ranges=ranges))
        else:
            # A sensor that is not there has no type either; nothing will come of the key.
            kind = sensors[name].attr if name in sensors else ""
            keys.append(Key(name, kind, source=name, ranges=ranges))
    return Operator(
        subscription.id,
        tuple(keys),
        # Times are whole seconds: less than 2.5 s apart is less than 3 s apart.
        ceil(subscription.delta_t) * SECOND_MS,
        subscription.delta_l if subscription.abstract else None,
        strict=True,
        since_ms=since_ms,
    )


class _Run:
    """A scenario under way under one strategy."""

    def __init__(self, scenario: PropagationScenario, strategy: Strategy, loss: Loss) -> None:
        self._scenario = scenario
        self.network = PropagationNetwork(scenario, strategy, loss)
        widest = max((ceil(each.delta_t) for each in scenario.subscriptions.values()), default=1)
        self._reach = widest
        self._there: set[str] = set()
        self._active: set[str] = set()
        self._leaving: list[tuple[int, str]] = []
        self._expired: int | None = None
        self._positions = {
            name: MetricPosition(*each.loc) for name, each in scenario.sensors.items()
        }

    def step(self, step: Step) -> None:
        """Do what a step says; what is done already changes nothing."""
        scenario = self._scenario
        if step.t is not None:
            self.reach(step.t)
        if step.op == "advertise":
            self._leaving = [each for each in self._leaving if each[1] != step.id]
            self._there.add(step.id)
            self.network.advertise(scenario.sensors[step.id])
        elif step.op == "withdraw" and step.id in self._there:
            self._there.discard(step.id)
            # Its last events may still match: brokers are told when they no longer can.
            self._leaving.append(((step.t or 0) + self._reach, step.id))
        elif step.op == "subscribe" and step.id not in self._active:
            self._active.add(step.id)
            subscription = scenario.subscriptions[step.id]
            since_ms = None if step.t is None else step.t * SECOND_MS
            self.network.subscribe(
                subscription.node, operator_of(subscription, scenario.sensors, since_ms)
            )
        elif step.op == "unsubscribe" and step.id in self._active:
            self._active.discard(step.id)
            self.network.unsubscribe(scenario.subscriptions[step.id].node, step.id)

    def publish(self, reading: SensorReading) -> None:
        """Let an event enter, if its sensor is there."""
        self.reach(reading.t)
        if reading.sensor not in self._there:
            return
        sensor = self._scenario.sensors[reading.sensor]
        time_ms = reading.t * SECOND_MS
        position = self._positions[sensor.id]
        event = SimpleEvent(
            reading.id, sensor.attr, sensor.id, position, time_ms, time_ms, reading.v
        )
        self.network.publish(sensor.node, event)

    def reach(self, t: int) -> None:
        """It is `t` now."""
        while self._leaving and self._leaving[0][0] <= t:
            _, name = self._leaving.pop(0)
            self.network.withdraw(self._scenario.sensors[name])
        if self._expired is None or t >= self._expired + self._reach:
            self._expired = t
            self.network.look_at_rates(t * SECOND_MS)
            self.network.expire((t - self._reach) * SECOND_MS)


def simulate(
    scenario: PropagationScenario,
    approach: str | Strategy,
    wanted: dict[str, set[str]] | None = None,
    progress: Progress | None = None,
    loss: Loss | None = None,
) -> PropagationOutcome:
    """Run a scenario; `wanted` is what `needed` tells of it, if that is known already.

    `progress` is told how much is done and how much there is; without a `loss` nothing is lost.
    KeyError: no such approach.
    """
    loss = loss or Loss()
    strategy = STRATEGIES[approach] if isinstance(approach, str) else approach
    run = _Run(scenario, strategy, loss)
    total = len(scenario.steps) + len(scenario.readings)
    done = 0
    steps = deque(scenario.steps)
    for reading in scenario.readings:
        while steps and (steps[0].t is None or steps[0].t <= reading.t):
            run.step(steps.popleft())
            done += 1
            if progress is not None:
                progress(done, total)
        run.publish(reading)
        done += 1
        if progress is not None:
            progress(done, total)
    while steps:
        run.step(steps.popleft())
    if progress is not None:
        progress(total, total)
    return _outcome(scenario, run.network, loss, needed(scenario) if wanted is None else wanted)


def _outcome(
    scenario: PropagationScenario,
    network: PropagationNetwork,
    loss: Loss,
    wanted: dict[str, set[str]],
) -> PropagationOutcome:
    order = {reading.id: place for place, reading in enumerate(scenario.readings)}
    delivered = {
        name: sorted(network.delivered.get(name, ()), key=order.__getitem__)
        for name in scenario.subscriptions
    }
    pairs = sum(len(ids) for ids in wanted.values())
    got = sum(len(wanted[name].intersection(ids)) for name, ids in delivered.items())
    return PropagationOutcome(
        delivered,
        sum(operators for operators, _ in network.by_link.values()),
        sum(events for _, events in network.by_link.values()),
        got / pairs if pairs else 1.0,
        dict(sorted(network.by_link.items())),
        dict(sorted(loss.by_link.items())),
        dict(sorted(network.entered.items())),
    )
