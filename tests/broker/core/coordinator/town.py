"""A network of coordinators over links of the simulation, with a fake of what moves tasks."""

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from random import Random

from broker.core.broker import BrokerOptions
from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.coordinator import Coordinator
from broker.core.coordinator.laying import rounds_settings
from broker.core.coordinator.metering import Counts
from broker.core.coordinator.statement import Piece
from broker.core.coordinator.works import Work
from broker.core.exchange.host import BrokerInputs
from broker.core.exchange.linking import Linking
from broker.core.recovery.durable import DurableBroker
from broker.engine.limits import Limits
from broker.network.effects import SendFrame
from broker.network.frames import frames
from broker.network.frames.messages import FramesReceived, LinkDown, LinkUp
from broker.network.overlay import told as topologies
from broker.network.overlay.told import Woken
from broker.network.overlay.tree import Tree
from broker.network.routing.advertisement.operator import Operator
from planner.layout import lay_out
from planner.methods import Wanted, find
from planner.problem import Content, Node, Problem, Task
from planner.problem import Link as Arc
from planner.rounds.machine import Rounds
from planner.rounds.units import scaled
from simulation.network.links import Link
from simulation.world import World

BEGIN_MS = 1_700_000_000_000
MOVE_MS = 300  # until a task that is placed elsewhere runs there
LOST_MS = 5_000


class Job:
    """A submission as it is: what it needs, what of it passes, and who runs it."""

    def __init__(self, home: str, number: int, inputs: dict[tuple[str, str], float], part: float):
        self.home, self.key, self.inputs, self.part = home, f"{home}/{number}", inputs, part
        self.host, self.term = "", 0
        self.asked: tuple[Operator, ...] = ()
        self.moves: list[tuple[int, str]] = []


class House(Linking):
    """A broker with nothing but links and a coordinator."""

    def __init__(self, town: "Town", name: str, life: int) -> None:
        durable = DurableBroker(BrokerOptions(name=name, networked=True), Limits())
        super().__init__(durable, life, BrokerInputs(durable.network), None)
        self.name, self.town, self.alive = name, town, True
        self.refuses: set[str] = set()
        settings = town.settings
        limits = town.limits.get(name, settings)
        whole = (scaled(limits.capacity) if limits.capacity else None, None)
        rounds = Rounds(0, rounds_settings(limits), Random(f"{town.seed} {name} {life}"), whole)
        self.coordinator = Coordinator(name, life, limits, rounds, self)
        self.deciding = self  # type: ignore[assignment]
        self._on_frame[frames.Routed] = lambda _peer, _one: None
        self._wake_at: int | None = None
        self.do(lambda: None)

    # --- a broker's machinery ---------------------------------------------------------------

    def hear(self, message: object) -> None:
        """See simulation.network.links.End."""
        if not self.alive:
            return
        match message:
            case LinkUp():
                self.do(lambda: self._link_up(message))
            case LinkDown():
                lost = topologies.LinkDown(message.peer)
                self.do(lambda: self._of_topology(self.topology.handle(lost, self._now)))
            case FramesReceived():
                self.do(lambda: self._frames_received(message))

    def do(self, action: Callable[[], None]) -> None:
        """Have something happen here, and what follows from it."""
        self._now = self.town.world.now
        action()
        self._perform()

    def _perform(self) -> None:
        out, self._sender.out = self._sender.out, []
        for effect in out:
            assert isinstance(effect, SendFrame)
            self.town.sent(self.name, effect)
        wakes = [self.topology.wake_at, self.coordinator.next_wake()]
        wake = min((one for one in wakes if one is not None), default=None)
        if wake is not None and (self._wake_at is None or wake < self._wake_at):
            self._wake_at = max(wake, self._now + 1)
            self.town.world.at(self._wake_at, lambda: self._woken(self.town.world.now))

    def _woken(self, at: int) -> None:
        if self.alive and self._wake_at == at:
            self._wake_at = None
            self.do(lambda: self._both_woken(at))

    def _both_woken(self, now: int) -> None:
        self._of_topology(self.topology.handle(Woken(), now))
        self.coordinator.wake(now)

    # --- see planning.Planning ------------------------------------------------------------------

    def heard(self, peer: str, data: bytes) -> None:
        if self.name not in self.town.silent:
            self.coordinator.heard(peer, data, self._now)

    def stands(self, peer: str) -> None:
        self.coordinator.stands(peer, self._now)

    def gone(self, broker: str) -> None:
        self.coordinator.gone(broker, self._now)

    def tree_changed(self) -> None:
        self.coordinator.tree_changed(self._now)

    def touch(self) -> None:
        """Something of its submissions may be another."""
        if self.alive:
            self.do(lambda: self.coordinator.touched(self._now))

    # --- Around -------------------------------------------------------------------------------

    def peers(self) -> list[str]:
        return self.sessions.standing

    def via(self, broker: str) -> str | None:
        return self.ways.via.get(broker)

    def overlay(self) -> Tree:
        return self.topology.tree

    def say(self, peer: str, data: bytes) -> None:
        if self.name not in self.town.silent:
            self._say(peer, frames.Planned(data))

    def works(self) -> Iterable[Work]:
        return [
            Work(job.key, job.key, job.host)
            for job in self.town.jobs.values()
            if job.home == self.name
        ]

    def counted(self) -> Mapping[Piece, Counts]:
        return {
            (job.home, job.key): self.town.counts(job)
            for job in self.town.jobs.values()
            if job.host == self.name
        }

    def state_rate(self, takes: int, size_bytes: int) -> int:
        return takes * size_bytes // 1000  # of what comes in, so many thousandths

    def place(self, key: str, broker: str) -> None:
        self.town.place(self, key, broker)


class Town:
    """See the module. `rates` are bytes a second by (origin, type)."""

    kind = House

    def __init__(
        self,
        seed: int,
        count: int,
        edges: list[tuple[int, int]],
        rates: dict[tuple[str, str], float],
        limits: dict[str, CoordinatorSettings] | None = None,
        settings: CoordinatorSettings | None = None,
        silent: tuple[str, ...] = (),
    ) -> None:
        self.seed = seed
        self.settings = settings or CoordinatorSettings(measure_ms=6_000)
        self.limits = limits or {}
        self.silent = silent
        self.world = World(Random(seed), BEGIN_MS)
        self.rates = dict(rates)
        self.jobs: dict[str, Job] = {}
        self.words = 0
        self.began: dict[str, dict[tuple[str, str], float]] = {}
        self._carried: dict[tuple[str, str], float] = {}
        self._counted_at = BEGIN_MS
        self.names = [f"b{number}" for number in range(count)]
        self.houses = {name: self.kind(self, name, 1) for name in self.names}
        self.links: dict[frozenset[str], Link] = {}
        for a, b in edges:
            one, other = self.houses[f"b{a}"], self.houses[f"b{b}"]
            link = Link(self.world, one, other, 20)
            self.links[frozenset((one.name, other.name))] = link
        for link in self.links.values():
            link.begin()

    # --- what happens ---------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        self.world.run(self.world.now + round(seconds * 1000))

    def submit(self, home: str, inputs: dict[tuple[str, str], float], part: float = 0.01) -> Job:
        """Of each input the part that passes; the part of all that is sent as results."""
        job = Job(home, len(self.jobs), inputs, part)
        self.jobs[job.key] = job
        self.houses[home].touch()
        return job

    def cancel(self, key: str) -> None:
        job = self.jobs.pop(key)
        self.houses[job.home].touch()

    def rate(self, rates: dict[tuple[str, str], float]) -> None:
        """Origins send at other rates from now on."""
        self._count()
        self.rates |= rates

    def die(self, name: str) -> None:
        """A broker is gone, with what ran there; homes hear of it when they do."""
        house = self.houses[name]
        house.alive = False
        for ends, link in self.links.items():
            if name in ends:
                link.down()
        self.world.after(LOST_MS, lambda: self._bring_home(name))

    def revive(self, name: str, alone_ms: int = 0) -> None:
        """It is back, with nothing but its submissions; its links a while later."""
        house = self.houses[name] = self.kind(self, name, self.world.now)
        for ends, link in self.links.items():
            if name in ends:
                link.ends[name] = house
                self.world.after(alone_ms, link.begin)

    def restart(self, name: str) -> None:
        """Its process ends and begins anew; what it placed runs on meanwhile."""
        house = self.houses[name]
        house.alive = False
        for ends, link in self.links.items():
            if name in ends:
                link.down()
        self.revive(name, alone_ms=2_000)

    def _bring_home(self, lost: str) -> None:
        """What ran there is lost with it; homes that are back begin with what they have."""
        for job in self.jobs.values():
            if lost in {job.host, job.home} and self.houses[job.home].alive:
                self._moved(job, job.home)

    def place(self, house: House, key: str, broker: str) -> None:
        """The fake of the door: the task runs there a moment later, if it is let in."""
        job = self.jobs[key]
        assert job.home == house.name, "only the home places"

        def there() -> None:
            other = self.houses[broker]
            if key in self.jobs and other.alive and key not in other.refuses and job.host != broker:
                self._moved(job, broker)

        self.world.after(0 if broker == house.name else MOVE_MS, there)

    def _moved(self, job: Job, host: str) -> None:
        self._count()
        job.host, job.term = host, job.term + 1
        job.moves.append((self.world.now, host))
        self.began[job.key] = dict(self._carried)
        self.houses[job.home].touch()
        self.houses[host].touch()

    # --- counts -----------------------------------------------------------------------------

    def _count(self) -> None:
        took_s = (self.world.now - self._counted_at) / 1000
        self._counted_at = self.world.now
        for place, rate in self.rates.items():
            self._carried[place] = self._carried.get(place, 0.0) + rate * took_s

    def counts(self, job: Job) -> Counts:
        self._count()
        began = self.began[job.key]
        inputs = {
            place: round((self._carried.get(place, 0.0) - began.get(place, 0.0)) * part)
            for place, part in job.inputs.items()
        }
        sent = round(sum(inputs.values()) * job.part)
        return Counts(job.term, inputs, sent, asked=job.asked)

    # --- what came of it ------------------------------------------------------------------------

    def sent(self, name: str, frame: SendFrame) -> None:
        link = self.links.get(frozenset((name, frame.link)))
        assert link is not None
        self.words += 1
        link.send(name, frame)

    @property
    def alive(self) -> list[House]:
        return [house for house in self.houses.values() if house.alive]

    @property
    def quiet(self) -> bool:
        return all(house.coordinator.quiet for house in self.alive)

    @property
    def moves(self) -> int:
        return sum(len(job.moves) for job in self.jobs.values())

    def flow(self, hosts: Mapping[str, str] | None = None) -> float:
        """What travels, by the true rates: of an input the greatest part, once on each link."""
        tree = self.alive[0].topology.tree
        ways = {name: Tree(name, tree.edges) for name in self.names if name in tree.hops}
        total = 0.0
        chosen = hosts or {key: job.host for key, job in self.jobs.items()}
        for place, rate in self.rates.items():
            carried: dict[tuple[str, str], float] = {}
            for key, job in self.jobs.items():
                if place not in job.inputs or place[0] not in ways:
                    continue
                way = ways[place[0]].path(chosen[key]) or ()
                for arc in pairwise(way):
                    carried[arc] = max(carried.get(arc, 0.0), job.inputs[place])
            total += rate * sum(carried.values())
        for key, job in self.jobs.items():
            sends = sum(self.rates[place] * part for place, part in job.inputs.items()) * job.part
            total += sends * (ways[job.home].hops[chosen[key]] if job.home in ways else 0)
        return total

    def work(self, name: str) -> float:
        """What comes in for the tasks that run at a broker."""
        return sum(
            self.rates[place] * part
            for job in self.jobs.values()
            if job.host == name
            for place, part in job.inputs.items()
        )


def drawn(
    seed: int,
    brokers: int = 8,
    jobs: int = 6,
    slack: float | None = None,
    kind: type[Town] = Town,
    settings: CoordinatorSettings | None = None,
) -> Town:
    """A tree with origins all over it; with `slack`, capacities leave a placement so much room."""
    draw = Random(f"town {seed}")
    edges = [(draw.randrange(at), at) for at in range(1, brokers)]
    origins = [f"b{n}" for n in sorted(draw.sample(range(brokers), min(brokers, 4)))]
    types = ("A", "B", "C")
    rates = {
        (origin, name): float(draw.randrange(500, 8000)) for origin in origins for name in types
    }
    wants = []
    for _ in range(jobs):
        wanted = draw.sample(types, draw.choice((1, 1, 2)))
        some = draw.sample(origins, draw.randint(1, len(origins)))
        part = draw.choice((1.0, 1.0, 0.4, 0.1))
        inputs = {(origin, name): part for origin in some for name in wanted}
        wants.append((f"b{draw.randrange(brokers)}", inputs, draw.choice((0.01, 0.2))))
    limits = {}
    if slack is not None:
        works = dict.fromkeys((f"b{number}" for number in range(brokers)), 0.0)
        for _, inputs, _ in wants:
            work = sum(rates[place] * part for place, part in inputs.items())
            works[f"b{draw.randrange(brokers)}"] += work
        for name, work in works.items():
            limits[name] = CoordinatorSettings(capacity=max(1, int(work * slack)), measure_ms=6_000)
    town = kind(seed, brokers, edges, rates, limits=limits, settings=settings)
    for home, inputs, part in wants:
        town.submit(home, inputs, part)
    return town


def best(town: Town, capacities: Mapping[str, float] | None = None) -> tuple[bool, float]:
    """(whether it keeps limits, flow) of what one planner for all finds, by the true rates."""
    tree = town.alive[0].topology.tree
    names = [name for name in town.names if name in tree.hops]
    levels: dict[tuple[str, str], list[float]] = {}
    for job in town.jobs.values():
        for place, part in job.inputs.items():
            if place[0] in names and part not in levels.setdefault(place, []):
                levels[place].append(part)
    contents, of = [], {}
    for place, parts in levels.items():
        below = 0.0
        for part in sorted(parts):
            name = of[place, part] = f"{place[0]} {place[1]} {part}"
            contents.append(Content(name, {place[0]: town.rates[place] * (part - below)}))
            below = part
    tasks = []
    for job in town.jobs.values():
        taken = [
            of[place, part]
            for place, most in job.inputs.items()
            for part in levels.get(place, ())
            if part <= most
        ]
        work = sum(town.rates[place] * part for place, part in job.inputs.items())
        tasks.append(
            Task(job.key, tuple(taken), work * job.part, cost=work, destinations=(job.home,))
        )
    nodes = tuple(Node(name, (capacities or {}).get(name)) for name in names)
    links = tuple(Arc(edge.low, edge.high) for edge in tree.edges)
    layout = lay_out(Problem(nodes, links, tuple(contents), tuple(tasks)))
    found = find(layout, Wanted("tabu", steps=6_000)).evaluation
    return found.feasible, found.flow
