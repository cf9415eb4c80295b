"""One run of a described network over a recording, with or without faults.

Owns the order of what happens and what is looked at meanwhile. Must not know what comes of a
comparison. Invariant: the same material and faults give the same outcome; each event is sent at its
own end by the clock of the run, which is the clock of all brokers.

All sources are advertised, and all subscriptions active, before the first event is sent. After the
last fault and event all sources are withdrawn, so that nothing that is open stays so. What goes
over links for that is counted apart: a network that runs on does not pay it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from random import Random

import msgspec
from msgspec import Struct, field

from broker.core.broker import BrokerOptions
from broker.core.networked.networked import NetworkedBroker
from broker.network.overlay.kinds import table_of
from simulation.crashes.outbox import SimulatedOutbox
from simulation.crashes.process import Machine
from simulation.disk import Disk
from simulation.rehearsal.faults import NetworkFault
from simulation.rehearsal.links import RehearsalLink, RehearsalTraffic
from simulation.rehearsal.material import Material, MaterialError, Said, texts_by_home
from simulation.rehearsal.senders import Sender
from simulation.rehearsal.site import (
    ActorMessage,
    DetectedResult,
    RehearsalSite,
    is_calm,
    reached,
)
from simulation.world import World

SEED = 1
# How long before the first event all begins: the least in which the network gets ready, as a source
# that was advertised and is silent is not waited for without end.
LEADS_MS = (1_000, 2_000, 5_000, 20_000, 60_000, 300_000)
READY_STEP_MS = 250
PARTS = 240  # of the time, for what is drawn of it
SIZED_EACH = 5  # parts: a snapshot's size takes long to learn
SYNC_MS, COMMIT_MS = 20, 20  # at most; a tenth of it as a rule
SNAPSHOT_RECORDS, SEGMENT_BYTES = 2_000, 262_144
ACTIONS_MAX = 20_000_000  # half an hour or so
SETTLE_MS, SETTLES_MAX = 10_000, 360
SETTLED_MS_MAX = 2 * 86_400_000  # a window of a day is over by then
CLIENT = "rehearsal"

Progress = Callable[[int, int], None]
Kinds = dict[str, dict[str, int]]  # messages and bytes, see `broker.network.overlay.kinds`


class Worked(Struct):
    """A broker's figures. `processed` are the events that came to its tasks, by type or not.

    `held_most` is the most that its tasks held at a look, `state_bytes_most` of its snapshots,
    `retained_most` the most that it kept until others had it.
    """

    received: int = 0
    processed: int = 0
    late: int = 0
    rejected: int = 0
    held_most: int = 0
    state_bytes_most: int = 0
    retained_most: int = 0
    ends: int = 0
    notes: dict[str, int] = field(default_factory=dict)


Links = dict[tuple[str, str], RehearsalTraffic]  # by (from, to)


class RehearsalOutcome(Struct):
    """The record of a run; `retained` is told by part of the time.

    `kinds` is what went over links until all was ready, until the last event, and in the end;
    `links` what went over each until the sources were withdrawn, `withdrawal` what after that.
    `placed` is where subscriptions that may move ran from how many events on, `moves` how often
    one moved.
    """

    detected: list[DetectedResult]
    arrived: dict[str, list[ActorMessage]]
    listening: dict[str, tuple[str, ...]]
    links: Links
    brokers: dict[str, Worked]
    part_ms: int
    retained: dict[str, list[tuple[int, int]]]
    unsettled: list[str]
    kinds: tuple[Kinds, Kinds, Kinds] = ({}, {}, {})
    withdrawal: Kinds = field(default_factory=dict)
    placed: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    moves: int = 0


def rehearse(
    material: Material, faults: Sequence[NetworkFault] = (), progress: Progress | None = None
) -> RehearsalOutcome:
    """Run it. Raises MaterialError where the network does not get ready, or the run has no end."""
    for lead_ms in LEADS_MS:
        run = _Run(material, faults, progress or (lambda _done, _total: None), lead_ms)
        if run.gets_ready():
            return run.run()
    raise MaterialError(
        f"not all subscriptions are active after {LEADS_MS[-1] // 1000} s: links are too slow"
    )


class _Run:
    """One run of the rehearsal, from the first broker's start to the outcome."""

    def __init__(
        self, material: Material, faults: Sequence[NetworkFault], progress: Progress, lead_ms: int
    ) -> None:
        self._material = material
        self._faults = faults
        self._progress = progress
        begin_ms = material.first_ms - lead_ms
        self.world = World(Random(SEED), begin_ms, ACTIONS_MAX)
        self._over_ms = max([material.last_ms, *(fault.over_ms for fault in faults)])
        self._part_ms = max(1, -(-(self._over_ms - material.first_ms + 1) // PARTS))
        self.sites = {name: self._site(name) for name in material.network.brokers}
        self.lines: dict[tuple[str, str], RehearsalLink] = {}
        for pair, delay_ms in material.network.delays.items():
            a, b = self.sites[pair[0]], self.sites[pair[1]]
            line = RehearsalLink(self.world, a, b, delay_ms, self._part_ms)
            a.links[b.name] = b.links[a.name] = line
            self.lines[pair] = line
        self._sources: dict[str, Sender] = {}
        self._clients: list[Sender] = []
        self._sent = 0
        self._sizes: dict[str, int] = {}
        self._placed: list[tuple[int, dict[str, str]]] = []
        self._retained: dict[str, list[tuple[int, int]]] = {name: [] for name in self.sites}

    def run(self) -> RehearsalOutcome:
        """All from the first event on."""
        before = self._kinds()
        try:
            self._plan()
            self._play()
            meanwhile = self._kinds()
            links = self._taken()
            moves = sum(site.counted("cells_moved") for site in self.sites.values())
            unsettled = self._settle()
        except RuntimeError as error:
            raise MaterialError(
                f"{error}; choose a part of the recording, by --since and --until"
            ) from None
        for line in self.lines.values():
            line.end()
        until = table_of([carried.kinds for carried in links.values()])
        return RehearsalOutcome(
            detected=[detection for site in self.sites.values() for detection in site.found],
            arrived={name: site.arrived for name, site in self.sites.items()},
            listening={name: site.actors for name, site in self.sites.items()},
            links=links,
            brokers={name: self._worked(site) for name, site in self.sites.items()},
            part_ms=self._part_ms,
            retained=self._retained,
            unsettled=unsettled,
            kinds=(before, meanwhile, self._kinds()),
            withdrawal=less(self._kinds(), until),
            placed=self._placed,
            moves=moves,
        )

    def _note_hosts(self) -> None:
        """Keep where subscriptions run, if that is not where they ran before."""
        hosts: dict[str, str] = {}
        for site in self.sites.values():
            if site.process is not None:
                for cell in site.process.core.network.book.cells.values():
                    hosts |= {name: cell.serving.broker for _, name in cell.keys}
        if not self._placed or hosts != self._placed[-1][1]:
            self._placed.append((self._sent, hosts))

    def _kinds(self) -> Kinds:
        ends = [end for line in self.lines.values() for end in line.carried.values()]
        return table_of([end.kinds for end in ends])

    # --- before ----------------------------------------------------------------------------

    def _site(self, name: str) -> RehearsalSite:
        material = self._material
        options = BrokerOptions(
            name=name,
            lateness_ms=material.lateness_ms,
            idle_timeout_ms=material.idle_ms,
            drift_ppm=material.drift_ppm,
            networked=True,
            correlate=material.correlate,
            cells=material.coordinator is not None,
            tables=dict(material.tables),
        )
        machine = Machine(
            disk=Disk(self.world.random),
            outbox=SimulatedOutbox(),
            options=options,
            limits=material.limits,
            sync_ms=SYNC_MS,
            commit_ms=COMMIT_MS,
            snapshot_records=SNAPSHOT_RECORDS,
            segment_bytes=SEGMENT_BYTES,
            functions=dict(material.functions),
        )
        listen = [actor for actor, broker in material.network.described.actors if broker == name]
        actors = tuple(dict.fromkeys(listen))
        return RehearsalSite(self.world, machine, actors, material.stand_in, material.coordinator)

    def gets_ready(self) -> bool:
        """Advertise and install; whether all is active everywhere before the first event."""
        material = self._material
        types: dict[str, dict[str, None]] = {}
        for name, source in material.network.sources.items():
            types[name] = dict.fromkeys(source.types)
        for event in material.events:
            types.setdefault(event["source"], {})[event["type"]] = None
        for name, sends in types.items():
            broker = material.network.broker_of(name)
            if broker is not None and sends:
                described = material.network.sources.get(name)
                sender = self._sources[name] = Sender(self.sites[broker], name)
                sender.advertise(list(sends), described.location if described else None)
        for home, text in texts_by_home(material.specification, material.network).items():
            client = Sender(self.sites[home], CLIENT)
            client.submit(text)
            self._clients.append(client)
        for site in self.sites.values():
            site.start()
        while self.world.now + READY_STEP_MS < material.first_ms:
            self.world.run(self.world.now + READY_STEP_MS)
            refused = [reason for client in self._clients for reason in client.refused]
            if refused:
                raise MaterialError(f"a broker refuses the specification: {refused[0]}")
            if self._is_ready():
                return True
        return False

    def _is_ready(self) -> bool:
        senders = [*self._sources.values(), *self._clients]
        others = len(self.sites) - 1
        return all(sender.idle for sender in senders) and all(
            site.process is not None
            and reached(site) == others
            and not site.process.network.hosting.needs.waits
            and (not self._material.moment_ms or is_calm(site))
            for site in self.sites.values()
        )

    # --- meanwhile -------------------------------------------------------------------------

    def _plan(self) -> None:
        """Have all events sent, and all faults happen, each at its time."""
        for at_ms, events in self._material.sent():
            self.world.at(at_ms, partial(self._publish, events))
        for fault in self._faults:
            self.world.at(fault.at_ms, partial(self._begin, fault))

    def _publish(self, events: list[Said]) -> None:
        """Publish what is of one time: one message of each source."""
        self._note_hosts()
        by_source: dict[str, list[tuple[str, bytes]]] = {}
        for event in events:
            data = msgspec.msgpack.encode(event)
            by_source.setdefault(event["source"], []).append((event["type"], data))
        for source, payloads in by_source.items():
            self._sources[source].publish(payloads)
        self._sent += len(events)

    def _begin(self, fault: NetworkFault) -> None:
        if fault.kind == "end":
            self.sites[fault.brokers[0]].end_for(fault.lasts_ms)
            return
        line = self.lines[fault.brokers[0], fault.brokers[1]]
        if fault.kind == "cut":
            line.cut(fault.lasts_ms, lost=False)
            return
        line.more_ms += fault.by_ms

        def over() -> None:
            line.more_ms -= fault.by_ms

        self.world.after(fault.lasts_ms, over)

    def _play(self) -> None:
        total = len(self._material.events)
        part = 0
        while self.world.now < self._over_ms:
            at_ms = max(self.world.now, self._material.first_ms - 1)
            self.world.run(min(at_ms + self._part_ms, self._over_ms))
            self._look(sized=part % SIZED_EACH == 0)
            self._progress(self._sent, total)
            part += 1

    def _look(self, *, sized: bool) -> None:
        for name, site in self.sites.items():
            _, retained = site.look()
            self._retained[name].append((self.world.now, retained))
            if sized and site.process is not None:
                size = len(site.process.core.snapshot())
                self._sizes[name] = max(self._sizes.get(name, 0), size)

    # --- afterwards ------------------------------------------------------------------------

    def _taken(self) -> Links:
        """Let all events be taken, and return what went over links until then."""
        for _ in range(SETTLES_MAX):
            self.world.run(self.world.now + SETTLE_MS)
            if all(sender.idle for sender in self._sources.values()):
                break
        for line in self.lines.values():
            line.end()
        return {
            (name, line.other(name).name): deepcopy(carried)
            for line in self.lines.values()
            for name, carried in line.carried.items()
        }

    def _settle(self) -> list[str]:
        """Withdraw all sources, and let all be decided; what has not come to rest.

        What waits for sources that are gone is decided as time goes on, so that time has to.
        """
        world, senders = self.world, list(self._sources.values())
        for sender in senders:
            sender.withdraw()
        begin_ms, step_ms = world.now, SETTLE_MS
        while world.now < begin_ms + SETTLED_MS_MAX:
            world.run(world.now + step_ms)
            if all(sender.idle for sender in senders) and not (
                self._at_work() or self._undecided()
            ):
                break
            step_ms = min(2 * step_ms, SETTLED_MS_MAX // 16)
        late = [sender.name for sender in senders if not sender.idle]
        return list(dict.fromkeys([*late, *self._at_work(), *self._undecided()]))

    def _undecided(self) -> list[str]:
        """The brokers where time alone will decide something, or what an origin says of time."""
        return [
            name
            for name, site in self.sites.items()
            if site.process is None
            or site.process.core.next_wake() is not None
            or _waits_for_origins(site.process.core.network)
        ]

    def _at_work(self) -> list[str]:
        """The brokers where something waits for another, or for the disk."""
        return [
            name
            for name, site in self.sites.items()
            if site.process is None
            or not site.process.idle
            or len(site.process.core.network.own)
            or len(site.process.core.network.copies)
            or site.process.network.hosting.needs.asked
        ]

    def _worked(self, site: RehearsalSite) -> Worked:
        """Called at the end, when there is a process again."""
        assert site.process is not None
        ledger = site.process.core.ledger
        events = ledger.events
        return Worked(
            received=events.received,
            processed=events.out,
            late=events.dropped.get("late", 0),
            rejected=site.published["rejected"],
            held_most=site.held_most,
            state_bytes_most=self._sizes.get(site.name, 0),
            retained_most=site.retained_most,
            ends=site.ends,
            notes=dict(sorted(ledger.notes.items())),
        )


def less(until: Kinds, before: Kinds) -> Kinds:
    """Return what went over links between two looks, by kind."""
    nothing = {"messages": 0, "bytes": 0}
    return {
        kind: {key: row[key] - before.get(kind, nothing)[key] for key in row}
        for kind, row in until.items()
    }


def _waits_for_origins(network: NetworkedBroker) -> bool:
    """Return if tasks wait for other brokers to say how far they have come.

    Those say that they have no source any more, each when it pays: it may take its time.
    """
    promised = [network.watermarks_of(origin) for origin in network.upstream]
    return any(
        watermarks.get(name, time) < time
        for times in network.awaited().values()
        for name, time in times.items()
        for watermarks in promised
    )
