"""The coordinator of a broker among brokers: what it hears of links, cells and time.

Owns the joining of both. Must not know how a plan is found, nor how a cell moves. Invariant: what
the coordinator decides comes about as the message `CellPlaced` alone, as if somebody had sent it.

It is made and set (`NetworkBroker.decide_with`) only where tasks are to follow the load, so that
the planner is not even loaded elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from broker.core.coordinator.bounds import CoordinatorSettings
from broker.core.coordinator.coordinator import Coordinator
from broker.core.coordinator.metering import Counts
from broker.core.coordinator.seen import plan, violations
from broker.core.coordinator.statement import Piece, StatementError
from broker.core.coordinator.violations import Violations
from broker.core.coordinator.works import Work
from broker.network.effects import Note
from broker.network.frames import frames
from broker.network.frames.messages import CellPlaced
from broker.network.overlay.tree import Tree
from broker.network.placement.cell_view import is_cell
from broker.network.placement.snapshot_pace import SAVE_BYTES_S, SAVE_MS, SAVE_MS_MAX, SAVE_SHARE
from broker.network.routing.advertisement.operator import Operator
from planner.rounds.machine import Rounds

if TYPE_CHECKING:
    from broker.core.network.network_broker import NetworkBroker


class Planning:
    """Run the coordinator of a broker among brokers, and bring it links, cells and time.

    `life` ascends with each process; `rounds` is new.

    A fault of planning ends planning, and nothing else: tasks stay where they are, and `failed`
    says why.
    """

    def __init__(
        self, broker: NetworkBroker, life: int, settings: CoordinatorSettings, rounds: Rounds
    ) -> None:
        self._broker = broker
        self._decided: list[CellPlaced] = []
        self.failed = ""
        self.violations = Violations()
        self.coordinator = Coordinator(broker.me, life, settings, rounds, self)

    # --- what happens ----------------------------------------------------------------------

    def heard(self, peer: str, data: bytes) -> None:
        """A neighbour's word; of an earlier version none is understood. Raises ValueError."""
        if self._understands(peer):
            self._do(lambda one: one.heard(peer, data, self._now))

    def stands(self, peer: str) -> None:
        """A session stands with a neighbour since now; cells have nothing to decide."""
        if is_cell(peer) or not self._understands(peer):
            return
        self._do(lambda one: one.stands(peer, self._now))

    def gone(self, broker: str) -> None:
        """There is no way to a broker any more."""
        if is_cell(broker):
            return
        self._do(lambda one: one.gone(broker, self._now))

    def tree_changed(self) -> None:
        """The tree of all brokers is another."""
        self._do(lambda one: one.tree_changed(self._now))

    def touched(self) -> None:
        """Cells may have come, gone or moved."""
        self._do(lambda one: one.touched(self._now))

    def drain(self, *, drained: bool) -> None:
        """This broker is to be rid of all tasks, or may take some up again."""
        self._do(lambda one: one.drain(self._now, drained=drained))

    def used(self, used_ms: int, granted_ms_per_s: int) -> None:
        """So much CPU was used by now, and so much may be used in a second."""
        self._do(lambda one: one.used(used_ms, granted_ms_per_s, self._now))

    def wake(self) -> None:
        """Some time has passed."""
        due = self.coordinator.next_wake()
        if due is not None and due <= self._now:
            self._do(lambda one: one.wake(self._now))
            if self.violations.is_due(self._now):
                self._do(self._look_at_limits)

    def _look_at_limits(self, coordinator: Coordinator) -> None:
        rows = []
        if coordinator.laid is not None:
            rows = violations(coordinator.running(), coordinator.known)
        note = self.violations.look(rows, self._now)
        if note is not None:
            self._broker.note(note)

    def _do(self, action: Callable[[Coordinator], None]) -> None:
        if self.failed:
            return
        try:
            action(self.coordinator)
        except StatementError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it was, the broker goes on without
            self.failed = f"{type(error).__name__}: {error}"
            self._broker.note(Note("error", "planning_failed", {"reason": self.failed}))

    def next_wake(self) -> int | None:
        """When to wake next."""
        return None if self.failed else self.coordinator.next_wake()

    def decided(self) -> list[CellPlaced]:
        """Return what was decided since this was asked last."""
        found, self._decided = self._decided, []
        return found

    @property
    def _now(self) -> int:
        return self._broker.now

    # --- what the coordinator asks, see `broker.core.coordinator.around` -------------------

    def peers(self) -> list[str]:
        """The neighbours with whom a session stands."""
        standing = self._broker.sessions.standing
        return [peer for peer in standing if not is_cell(peer) and self._understands(peer)]

    def _understands(self, peer: str) -> bool:
        return self._broker.sessions.version(peer) >= frames.SCOPES_SINCE

    def via(self, broker: str) -> str | None:
        """The neighbour through whom another broker is reached."""
        return self._broker.ways.via.get(broker)

    def overlay(self) -> Tree:
        """The tree of all brokers."""
        return self._broker.topology.tree

    def say(self, peer: str, data: bytes) -> None:
        """Tell a neighbour; one of an earlier version would not understand."""
        if self._understands(peer):
            self._broker.say(peer, frames.Planned(data))

    def works(self) -> Iterable[Work]:
        """The cells that are at home here."""
        return [
            Work(
                one.cell,
                ", ".join(name for _, name in one.subscriptions),
                one.moving_to or one.host,
                one.state != "active",
                bool(one.reason),
            )
            for one in self._broker.cells()
            if one.home == self._broker.me
        ]

    def counted(self) -> Mapping[Piece, Counts]:
        """Of the cells that run here."""
        found = {}
        for one in self._broker.cells():
            if one.counts is not None:
                inputs = {place: load.size_bytes for place, load in one.counts.inputs.items()}
                sent = one.counts.results.size_bytes
                asked = tuple([each for each in one.asked if isinstance(each, Operator)])
                figures = (one.life, inputs, sent, one.snapshot_bytes)
                found[one.home, one.cell] = Counts(*figures, asked)
        return found

    def state_rate(self, takes: int, size_bytes: int) -> int:
        """As `snapshot_pace` paces snapshots: a share of what comes in, or one now and then."""
        seldom_ms = max(SAVE_MS_MAX, size_bytes * 1000 // SAVE_BYTES_S)
        gap_ms = min(seldom_ms, SAVE_SHARE * size_bytes * 1000 // max(takes, 1))
        return size_bytes * 1000 // max(gap_ms, SAVE_MS) if takes else 0

    def place(self, key: str, broker: str) -> None:
        """Have a cell run there."""
        self._decided.append(CellPlaced(key, broker))

    # --- what is to be seen ----------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """For people, as plain data."""
        one = self.coordinator
        return {
            "epoch": f"{one.epoch:016x}" if one.epoch >= 0 else None,
            "brokers": len(one.known.brokers),
            "quiet": one.quiet,
            "drained": one.drained,
            "capacity_bytes_per_s": one.capacity.bytes_per_s or None,
            "capacity_measured": bool(one.capacity.bytes_per_s) and not one.capacity.is_configured,
            "infeasible": (one.laid is not None and one.rounds.infeasible)
            or bool(self.violations.rows),
            "limits_broken": self.violations.rows,
            "failed": self.failed,
            "submissions_untold": one.untold,
            "counts": dict(one.counts),
        }

    def plan(self) -> dict[str, Any]:
        """Which task runs where, why there, and what travels for it."""
        one, status = self.coordinator, self.status()
        told = {"broker": one.me}
        told |= {name: status[name] for name in ("epoch", "quiet", "drained", "infeasible")}
        if one.laid is None:
            nothing: dict[str, Any] = {"limits_broken": [], "brokers": [], "links": [], "tasks": []}
            return {**told, "flow_bytes_per_s": None, **nothing, "tasks_left_out": 0}
        account = plan(one.running(), one.known, one.settings.price_percent)
        infeasible = one.rounds.infeasible or bool(account["limits_broken"])
        return told | account | {"infeasible": infeasible}
