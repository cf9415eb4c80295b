"""A network of planning machines in virtual time: delays, losses, deaths and other rates.

Owns the virtual clock, the links and the laying of streams. Must not know how a machine thinks.
Invariant: the same problem, settings, conditions and seed give the same run, message by message.

A link's session sends again what was lost: loss shows as delay and as messages counted twice. What
is on a link that is cut, or on its way to a broker that dies, is lost for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

import msgspec

from experiments.first_hosts import standing_hosts
from experiments.overlay import overlay, whole
from planner.layout import Layout, lay_out
from planner.network import Network
from planner.problem import Problem
from planner.rounds.machine import Rounds
from planner.rounds.messages import Envelope
from planner.rounds.post import Effect, Send
from planner.rounds.settings import Settings
from planner.rounds.tables import Hosted, LaidAggregate, LaidStream, Tables, laid_tables
from planner.rounds.units import scaled
from planner.rounds.view import Ground

STEPS_MAX = 5_000_000  # events of one run: what takes more than so many does not end
ENCODER = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True)
class Conditions:
    """Of the links: a message takes between these times; one is lost with `loss`, and resent."""

    delay_ms: tuple[int, int] = (2, 20)
    loss: float = 0.0
    resend_ms: int = 50
    detect_ms: tuple[int, int] = (100, 400)


@dataclass
class Counts:
    """What went over links, each hop counted, by kind of message."""

    messages: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    lost: int = 0

    def add(self, kind: str, size: int) -> None:
        """One message over one link."""
        self.messages[kind] = self.messages.get(kind, 0) + 1
        self.bytes[kind] = self.bytes.get(kind, 0) + size


def size_bytes(envelope: Envelope) -> int:
    """Count the bytes that an envelope takes on a link, the link's own frame left out."""
    return len(ENCODER.encode(envelope))


class Amounts:
    """Rates and costs as they stand, in whole units."""

    def __init__(self, layout: Layout) -> None:
        self.rates = [scaled(stream.rate) for stream in layout.streams]
        self.partials = [scaled(aggregate.rate) for aggregate in layout.aggregates]
        self.costs = [scaled(piece.cost) for piece in layout.pieces]


def tables_of(
    layout: Layout,
    tree: Network,
    hosts: Sequence[int],
    amounts: Amounts,
) -> list[Tables]:
    """Return the tables of all brokers when each piece is at its host; a host of -1: nowhere."""
    hosted: dict[int, list[Hosted]] = {}
    for piece, host in enumerate(hosts):
        hosted.setdefault(host, []).append(Hosted(piece, 0, amounts.costs[piece]))
    streams = []
    for number, stream in enumerate(layout.streams):
        source = stream.origin if stream.piece is None else hosts[stream.piece]
        ends = [*(hosts[piece] for piece in stream.consumers), *stream.destinations]
        if source is not None and source >= 0:
            streams.append(LaidStream(number, amounts.rates[number], source, ends))
    aggregates = [
        LaidAggregate(number, amounts.partials[number], hosts[aggregate.header],
                      {hosts[piece] for piece in aggregate.partials})
        for number, aggregate in enumerate(layout.aggregates) if hosts[aggregate.header] >= 0
    ]  # fmt: skip
    return laid_tables(tree, range(len(tree.neighbours)), hosted, streams, aggregates)


class EndlessError(RuntimeError):
    """A run that does not become quiet."""


class Trial:
    """One network. Brokers and links may go and come; `until_quiet` lets time pass."""

    def __init__(
        self,
        problem: Problem,
        settings: Settings | None = None,
        seed: int = 0,
        conditions: Conditions | None = None,
    ) -> None:
        self.problem, self.layout = problem, lay_out(problem)
        self.amounts = Amounts(self.layout)
        self.conditions = conditions or Conditions()
        self.now = 0
        self.counts = Counts()
        self.moves: list[tuple[int, int, int]] = []
        """When, which piece, to whom: what was agreed in turns."""
        self._random = Random(seed)
        self._heap: list[tuple[int, int, object]] = []
        self._sequence = 0
        self._arrival: dict[tuple[int, int], int] = {}
        self._wakes: dict[int, int] = {}
        self.gone: set[int] = set()
        self.cut: set[tuple[int, int]] = set()
        self.epoch = -1
        self._held: list[dict[int, int]] = [{} for _ in problem.nodes]
        self._begun: set[int] = set()
        settings = settings or Settings()
        self.machines = [
            Rounds(
                number,
                settings,
                Random(seed * 1_000_003 + number),
                (whole(node.capacity), whole(node.egress)),
            )
            for number, node in enumerate(problem.nodes)
        ]
        self._new_epoch(at_once=True)

    # --- from outside -----------------------------------------------------------------------

    def die(self, *brokers: int) -> None:
        """Brokers fall silent; the others see it after a while."""
        self.gone.update(brokers)
        self._new_epoch()

    def revive(self, broker: int) -> None:
        """A broker is back, with nothing but what it ran before."""
        self.gone.discard(broker)
        self._new_epoch()

    def cut_link(self, a: int, b: int) -> None:
        """A link is gone, with what was on it."""
        self.cut.add((a, b))
        self._new_epoch()

    def mend_link(self, a: int, b: int) -> None:
        """A link that was cut is back."""
        self.cut -= {(a, b), (b, a)}
        self._new_epoch()

    def ask(self, problem: Problem) -> None:
        """Other tasks on the same brokers: what was asked for before keeps its hosts."""
        before, self.problem, self.layout = self.layout, problem, lay_out(problem)
        self.amounts = Amounts(self.layout)
        numbers = {piece.known_by: number for number, piece in enumerate(self.layout.pieces)}
        self._held = [
            {
                numbers[before.pieces[piece].known_by]: term
                for piece, term in held.items()
                if before.pieces[piece].known_by in numbers
            }
            for held in self._held
        ]
        self._new_epoch()

    def rate(self, rates: Mapping[int, int], costs: Mapping[int, int] | None = None) -> None:
        """Streams have other rates from now on, pieces other costs, in whole units."""
        for stream, rate in rates.items():
            self.amounts.rates[stream] = rate
        for piece, cost in (costs or {}).items():
            self.amounts.costs[piece] = cost
        for number in self._alive():
            effects = self.machines[number].measured(rates, costs or {}, self.now)
            self._carry(number, effects)

    def drain(self, broker: int, *, drained: bool = True) -> None:
        """A broker is to be rid of what it runs, or may take up again."""
        self._carry(broker, self.machines[broker].drain(self.now, drained=drained))

    def until_quiet(self) -> None:
        """Lets time pass until nothing is under way. Raises EndlessError."""
        for _ in range(STEPS_MAX):
            if not self.step():
                return
        raise EndlessError(f"still busy after {STEPS_MAX} events, at {self.now} ms")

    def step(self) -> bool:
        """The next thing that happens; False where nothing will."""
        if not self._heap:
            return False
        self.now, _, what = heappop(self._heap)
        if isinstance(what, _Arrival):
            if not what.valid(self):
                pass
            elif what.to not in self._begun and what.envelope.epoch == self.epoch:
                self._early.setdefault(what.to, []).append(what.envelope)
            else:
                effects = self.machines[what.to].receive(what.envelope, self.now)
                self._carry(what.to, effects)
        elif isinstance(what, _Wake):
            if self._wakes.get(what.broker) == self.now and what.broker not in self.gone:
                del self._wakes[what.broker]
                self._carry(what.broker, self.machines[what.broker].wake(self.now))
        elif isinstance(what, _Begin):
            self._begin(what)
        return True

    # --- what came of it --------------------------------------------------------------------

    @property
    def hosts(self) -> list[int]:
        """Where each piece runs; -1 where nobody runs it."""
        held = self._holders(self._alive())
        return [held.get(piece, -1) for piece in range(len(self.layout.pieces))]

    def _holders(self, brokers: Iterable[int]) -> dict[int, int]:
        """Return who of these runs each piece; of two the one with the higher term."""
        best: dict[int, tuple[int, int]] = {}
        for number in brokers:
            for piece, term in self._held[number].items():
                best[piece] = max(best.get(piece, (-1, 0)), (term, -number))
        return {piece: -number for piece, (_, number) in best.items()}

    @property
    def twice(self) -> list[int]:
        """The pieces that more than one broker holds for its own."""
        held = [piece for number in self._alive() for piece in self._held[number]]
        return sorted({piece for piece in held if held.count(piece) > 1})

    @property
    def standing(self) -> bool:
        """Tell whether all brokers have begun the epoch of the network as it is."""
        return len(self._begun) == len(self._alive())

    @property
    def infeasible(self) -> list[int]:
        """The brokers that say that no plan keeps their limits."""
        return [number for number in self._alive() if self.machines[number].infeasible]

    # --- inside -----------------------------------------------------------------------------

    def _alive(self) -> list[int]:
        return [n for n in range(len(self.machines)) if n not in self.gone]

    def _push(self, at: int, what: object) -> None:
        self._sequence += 1
        heappush(self._heap, (at, self._sequence, what))

    def _new_epoch(self, *, at_once: bool = False) -> None:
        self.epoch += 1
        self.tree: Network = overlay(self.problem, self.gone, self.cut)
        self._begun = set()
        self._early: dict[int, list[Envelope]] = {}
        low, high = self.conditions.detect_ms
        for part in {min(self.tree.hops(n)): [*self.tree.hops(n)] for n in self._alive()}.values():
            held = self._holders(sorted(part))
            hosts = standing_hosts(self.layout, self.tree, part, held)
            tables = tables_of(self.layout, self.tree, hosts, self.amounts)
            for number in sorted(part):
                seen = self.now if at_once else self.now + self._random.randint(low, high)
                ground = Ground(number, self.layout, self.tree, tables[number])
                self._push(seen, _Begin(number, self.epoch, ground))

    def _begin(self, what: _Begin) -> None:
        if what.epoch != self.epoch or what.broker in self.gone:
            return
        self._begun.add(what.broker)
        machine = self.machines[what.broker]
        self._carry(what.broker, machine.stand(self.epoch, what.ground, self.now), anew=True)
        for envelope in self._early.pop(what.broker, []):
            self._carry(what.broker, machine.receive(envelope, self.now))

    def _carry(self, broker: int, effects: Iterable[Effect], *, anew: bool = False) -> None:
        machine = self.machines[broker]
        if broker in self._begun:
            held = {one.piece: one.term for one in machine.tables.hosted}
            if not anew:
                arrived = [piece for piece in held if piece not in self._held[broker]]
                self.moves += [(self.now, piece, broker) for piece in arrived]
            self._held[broker] = held
        for effect in effects:
            if isinstance(effect, Send):
                self._post(broker, effect)
        wake = machine.next_wake()
        at = None if wake is None else max(wake, self.now)
        if at is not None and at != self._wakes.get(broker):
            self._wakes[broker] = at
            self._push(at, _Wake(broker))

    def _post(self, broker: int, send: Send) -> None:
        conditions = self.conditions
        arc = (broker, send.neighbour)
        kind = type(send.envelope.body).__name__
        size = size_bytes(send.envelope)
        at = self.now + self._random.randint(*conditions.delay_ms)
        self.counts.add(kind, size)
        while self._random.random() < conditions.loss:
            self.counts.add(kind, size)
            self.counts.lost += 1
            at += conditions.resend_ms
        at = max(at, self._arrival.get(arc, 0))
        self._arrival[arc] = at
        self._push(at, _Arrival(broker, send.neighbour, send.envelope))


@dataclass(frozen=True, slots=True)
class _Arrival:
    whence: int
    to: int
    envelope: Envelope

    def valid(self, trial: Trial) -> bool:
        ends = (self.whence, self.to)
        dead = self.whence in trial.gone or self.to in trial.gone
        return not (dead or ends in trial.cut or ends[::-1] in trial.cut)


@dataclass(frozen=True, slots=True)
class _Wake:
    broker: int


@dataclass(frozen=True, slots=True)
class _Begin:
    broker: int
    epoch: int
    ground: Ground


__all__ = ["Conditions", "Counts", "EndlessError", "Layout", "Trial"]
