"""A running broker's place among other brokers: links, frames and what they wait for.

Owns the line of frames that wait for the journal, and the joining of links with the core. Must not
know what frames say or how a link works. Invariant: no frame leaves before the record that it rests
on is durable, and frames leave in the order in which they came.
"""

import logging
import secrets
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.admission.former_names import FormerNames, settled
from broker.config import Config, ConfigError
from broker.core.cells.cell_views import knows
from broker.core.effects import CommitGate
from broker.core.network.network_broker import NetworkBroker
from broker.core.recovery.durable import DurableBroker
from broker.driver.runner import Runner
from broker.errors import StartError
from broker.links.face import LinkFace, LinkNews, own_traffic
from broker.links.securing import LinkConfigError, Security, load_security
from broker.network.effects import SendFrame
from broker.network.frames.messages import (
    DrainRequested,
    ForgetRequested,
    FramesReceived,
    LinkDown,
    LinkRefused,
    LinkUp,
    NameRefused,
    ResultsDelivered,
    ResultsRead,
)
from broker.network.overlay.calls import CallArrived
from broker.network.overlay.kinds import table_of
from broker.network.replication.absence_watch import away
from broker.network.routing.entry import Joining
from broker.network.session.told import Congested, Delivered, Down, NameInUse, Refused, Up
from broker.remote.desk import CallDesk
from broker.remote.home_copies import HomeCopies
from broker.remote.states import StandInState
from broker.site.network_view import network_view
from broker.site.power import CpuReports
from broker.site.unread import unread
from broker.store import Outbox, StoreError

if TYPE_CHECKING:
    from broker.core.network.planning import Planning

CALL_BITS = 20  # calls of one process, before they would count on into those of the next
IDENTITY_BITS = 53  # as JSON's numbers keep them
LAGS_MAX = 1_000  # series of a scrape; of more pairs of an origin and a task those furthest behind

logger = logging.getLogger(__name__)


class Networking:
    """Join the broker to its network; `attach` before anything else. Raises StartError."""

    def __init__(self, config: Config, core: DurableBroker, now_ms: int, log: Outbox) -> None:
        import_module("networkx")  # which the tree asks for: not in the midst of other work
        self._epoch = epoch = max(core.now, now_ms)
        links = config.links
        listens = bool(links.host or links.seeds or links.discover)
        joining = Joining(links.peers, epoch, listens=listens)
        identity = 1 << IDENTITY_BITS - 1 | secrets.randbits(IDENTITY_BITS - 1)
        self.broker = NetworkBroker(core, epoch, joining=joining, identity=identity)
        self._log, inherited = log, core.network.adoption.inherited
        log.inherited = inherited.before
        settings = links.stand_in, links.stand_in_lease_ms
        self._fence = self.broker.stand_ins.home.set_up(*settings, log.epoch)
        self.planning: Planning | None = None
        if config.coordinator.enabled:
            from broker.site.coordinator import load, planning_of

            load()
            self.planning = planning_of(config.coordinator, self.broker, epoch)
        self.too_long = 0
        self._rewound = 0
        self._former: FormerNames | None = None
        self._reports: CpuReports | None = None
        self._measures = self.planning is not None and not config.coordinator.capacity_bytes_per_s
        self._down_after_ms = config.topology_limits.down_after_ms
        self._runner: Runner
        self._commits: CommitGate
        self.calls: CallDesk
        self.copies: HomeCopies
        try:
            self._face = LinkFace(config.broker.name, epoch, config.links, self, config.link_limits)
        except LinkConfigError as error:
            raise StartError(str(error)) from None

    def attach(self, runner: Runner, commits: CommitGate) -> None:
        """Tell this runner what links bring; what waits for the journal does so at this gate."""
        self._runner = runner
        self._commits = commits
        commits.fence = self._fence
        me, first = self.broker.me, self._epoch << CALL_BITS
        self.calls = CallDesk(me, first, self.broker.calls, runner.put, self._known)
        core = self.broker.durable.network
        self.copies = HomeCopies(me, self.calls, core.standing_in, core.successions)
        runner.carry_by(CallArrived, self.calls.receive)

    async def settled(self, folder: Path | None) -> None:
        """Wait, before anything is served, where this broker was renamed a moment ago."""
        if folder is not None:
            await settled(folder, self._down_after_ms)

    async def start(self, folder: Path | None = None) -> str:
        """Listen and dial; where other brokers are to link to, "" if nowhere. Raises StartError.

        `folder` is the data directory: it has the names of before.
        """
        if self._fence is not None:
            await self._recall()
        self._runner.perform(self.broker.begun())
        try:
            await self._face.start()
        except LinkConfigError as error:
            raise StartError(str(error)) from None
        if folder is not None:
            self._former = FormerNames(folder, self)
            self._former.start()
        if self._measures:
            self._reports = CpuReports(self._runner.put)
            self._reports.start()
        host = self._face.settings.host
        return f"{host}:{self._face.port}" if host else ""

    async def _recall(self) -> None:
        """Have the stand-in know what readers of the log have not read, from now on."""
        log = self._log
        end = log.end
        try:
            least = await log.least_read()
            results, first = await unread(log, least, end)
        except StoreError as error:
            raise StartError(f"the output log cannot be read: {error}") from None
        self.broker.stand_ins.home.recall(results, first, end)
        self._runner.put(ResultsRead(least))
        log.on_read = lambda offset: self._runner.put(ResultsRead(offset))

    @property
    def port(self) -> int:
        """The port where other brokers link to this one; 0: they cannot."""
        return self._face.port if self._face.settings.host else 0

    async def stop(self) -> None:
        """Close all links."""
        if self._former is not None:
            self._former.stop()
        if self._reports is not None:
            self._reports.stop()
        await self._face.stop()

    def read_security(self) -> Security:
        """Read secrets and certificates again. Raises ConfigError."""
        try:
            return load_security(self._face.settings)
        except LinkConfigError as error:
            raise ConfigError(str(error)) from None

    def secure(self, security: Security) -> None:
        """Put other secrets and certificates in force."""
        self._face.secure(security)

    # --- frames ----------------------------------------------------------------------------

    def send(self, frame: SendFrame) -> None:
        """Bring a frame to its link; the journal has what it rests on."""
        try:
            self._face.offer(frame.link, [frame.data], control=frame.control, events=frame.events)
        except ValueError:
            self.too_long += 1
            logger.exception("a frame for %s is too long for a link, and is lost", frame.link)

    def durable(self, _number: int) -> None:
        """Look, as records became durable, whether this broker's disk had gone back in time."""
        if self.broker.counts["rewound"] > self._rewound:
            self._rewound = self.broker.counts["rewound"]
            self._log.renew()
            self.broker.stand_ins.home.name_log(self._log.epoch)

    def holding(self, hold: Callable[..., None]) -> Callable[..., None]:
        """`hold`, and hold the events of neighbours, too."""

        def both(*, on: bool) -> None:
            self._face.hold(on=on)
            hold(on=on)

        return both

    # --- links -----------------------------------------------------------------------------

    def on_link(self, news: LinkNews) -> None:
        """Take news of links as `broker.links.face.LinkReceiver` asks for."""
        match news:
            case Delivered(peer, messages):
                self._runner.put(FramesReceived(peer, tuple(messages)))
            case Up(peer, _, fresh, version):
                self._runner.put(LinkUp(peer, fresh, version=version))
            case Down(peer):
                self._runner.put(LinkDown(peer))
            case Refused(peer):
                self._runner.put(LinkRefused(peer))
            case NameInUse(peer, reason):
                self._runner.put(NameRefused(peer, reason))
            case Congested():
                pass  # what waits is bounded by the link; what it refuses is offered again

    # --- what is to be seen ----------------------------------------------------------------

    def forget(self, broker: str) -> bool:
        """Nobody is to wait for a broker any more; False where it is not known."""
        # A stand-in that was gone before this process began is in no topology.
        is_stand_in = bool(broker) and broker == self.broker.stand_ins.feed.stand_in
        if not (is_stand_in or knows(self.broker.durable.network, self.broker.topology, broker)):
            return False
        self._runner.put(ForgetRequested(broker))
        return True

    def delivered(self, offset: int) -> None:
        """Take in that the results before an offset were given out."""
        if self._fence is not None:
            self._runner.put(ResultsDelivered(offset))

    def standing(self, broker: str) -> str:
        """Return how another broker is, see `broker.admission.former_names.Renamed`."""
        topology = self.broker.topology
        if len(topology.tree.hops) == 1:
            return ""
        if broker in topology.tree.hops:
            return "reachable"
        is_known = knows(self.broker.durable.network, topology, broker)
        return "away" if is_known else "unknown"

    def drain(self, *, drained: bool) -> bool:
        """Have all tasks go elsewhere, or let them come again; False where nobody plans."""
        if self.planning is not None:
            self._runner.put(DrainRequested(drained))
        return self.planning is not None

    def _known(self) -> Sequence[str]:
        return self.broker.topology.known

    def status(self) -> dict[str, Any]:
        """For people: each link, each broker, and who waits for whom."""
        discovery = self._face.discovery
        return {
            "links": self._face.status(),
            "discovery": None if discovery is None else discovery.status(),
            **self.broker.status(),
            "frames_waiting": self._commits.frames_waiting,
            "frames_too_long": self.too_long,
            "coordinator": self.planning.status() if self.planning is not None else None,
        }

    def view(self, now_ms: int) -> dict[str, Any]:
        """Return the network as this broker sees it, and what goes over its links."""
        return network_view(self.broker, self._face.status(), now_ms)

    def links_up(self) -> dict[str, int]:
        """1 for each link that is up, by neighbour."""
        return {name: int(link["state"] == "up") for name, link in self._face.status().items()}

    def waited_for(self) -> dict[str, int]:
        """Return 1 for each broker that somebody here waits for, 0 while its promise holds."""
        brokers = away(self.broker.durable.network, self.broker.now)
        return {
            name: int(absence["overdue"])
            for name, absence in brokers.items()
            if absence["subscriptions"]
        }

    def stand_in_state(self) -> StandInState | None:
        """Return how far the stand-in of this home follows; None where there is none."""
        status = self.broker.stand_ins.home.status()
        if not status["stand_in"]:
            return None
        words = status["stand_in"], status["state"], status["behind"], status["lease_ms"]
        return StandInState(*words, leased=status.get("leased", True))

    def stand_ins(self) -> dict[str, dict[str, int]]:
        """Return who stands in for this broker and for whom it does, as metrics."""
        feed, copies = self.broker.stand_ins.feed, self.broker.durable.network.standing_in
        name = feed.stand_in
        wanted = name or feed.setting  # one that there is not follows as little
        return {
            "stand_in": {wanted: int(feed.state == "following")} if wanted else {},
            "stand_in_behind": {name: feed.behind} if name else {},
            "stands_in_for": {home: len(copy.rows) for home, copy in copies.homes.items()},
        }

    def limits_broken(self) -> dict[str, int]:
        """Return 1 for each limit of a broker that the plan breaks."""
        return {} if self.planning is None else self.planning.violations.broken()

    def capacity(self) -> dict[str, int]:
        """Return what tasks here may take in, in bytes a second, by how that is known."""
        status = {} if self.planning is None else self.planning.status()
        if not status.get("capacity_bytes_per_s"):
            return {}
        how = "measured" if status["capacity_measured"] else "configured"
        return {how: status["capacity_bytes_per_s"]}

    def lag_s(self, time_of_day_ms: int) -> dict[tuple[str, str], float]:
        """Return how far the promises of origins for tasks here lie behind, by (origin, task)."""
        status = self.broker.status()
        runs = [status["promised"], *(cell["promised"] for cell in status["run_here"].values())]
        lags = {
            (origin, task): (time_of_day_ms - promise_ms) / 1000
            for run in runs
            for task, promises in run.items()
            for origin, promise_ms in promises.items()
        }
        worst = sorted(lags, key=lambda key: (-lags[key], key))[:LAGS_MAX]
        return {key: lags[key] for key in worst}

    def sent_by_kind(self, what: str) -> dict[str, int]:
        """Return the `messages`, or the `bytes`, sent over all links, by kind."""
        table = table_of(
            [*self.broker.sessions.outlet.sent.values(), own_traffic(self._face.links)]
        )
        return {kind: row[what] for kind, row in table.items()}

    def sent(self) -> dict[str, int]:
        """Events sent over each link, by neighbour."""
        return self.broker.traffic.totals("sent")
