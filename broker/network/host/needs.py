"""What this broker's own subscriptions need of others, and what they still wait for.

Owns the operators of the tasks that run here, which origins were asked, and which subscription
waits for whose answer. Must not know frames or ways. Invariant: a subscription waits for an origin
from the moment when it was installed until the origin has answered a question that was asked after
its operators went out; and until every broker that can be reached has echoed a probe behind that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from broker.engine.event.identity import digest
from broker.network.frames.told import TimesPromised
from broker.network.operators.derivation import task_operators
from broker.network.operators.times import Times
from broker.network.replication.time_promises import UNBOUNDED, KnownPromises, TimeBound
from broker.network.routing.advertisement.operator import Operator

if TYPE_CHECKING:
    from language import Task

Key = tuple[str, str]


class Asked(Struct):
    """A question to an origin that is not answered yet."""

    serial: int  # of the question under way
    at: int


class _TaskNeed(Struct):
    """Operators of a task, by what was known of the times of its events."""

    bounds: dict[str, TimeBound]  # under which the operators were made
    operators: tuple[Operator, ...]  # of this task alone
    far: dict[str, int]


class Needs:
    """Keep what this broker's own subscriptions need of others, and what they still wait for.

    Serial numbers begin behind `first`, which ascends with each process.

    `joins_ms`: operators may ask for events that have partners no further away than that; None: of
    each event only what itself says is asked. `promised`: what is known of the times of a type.
    """

    def __init__(
        self,
        times: Times,
        first: int,
        joins_ms: int | None = None,
        promised: KnownPromises | None = None,
    ) -> None:
        self.operators: dict[str, Operator] = {}  # by id, of all tasks
        self.asked: dict[str, Asked] = {}  # by origin
        self.waits: dict[Key, dict[str, int]] = {}  # by subscription: origin → least serial
        self.probe = 0  # behind whose answer all that can be reached know what is needed
        self._times = times  # without any promise
        self._joins_ms = joins_ms
        self._serial = first  # ascends behind a number of this process
        self._promised = promised  # by type
        self._version = 0
        self._uncertainty_ms = 0
        self._by_task: dict[str, _TaskNeed] = {}  # by the task's key

    def changed(
        self, tasks: Mapping[str, Task], tell: Callable[[TimesPromised], None] | None = None
    ) -> tuple[list[Operator], list[str]]:
        """(operators that are needed now, ids of those that are needed no more).

        `tell` has tasks here hear of a greater uncertainty: the first event that has it may pass no
        filter of theirs, and they would forget partners of those behind it that were kept so far.
        """
        if self._promised is not None:
            self._version = self._promised.version
        for key in [key for key in self._by_task if key not in tasks]:
            del self._by_task[key]
        for key, task in tasks.items():
            bounds = self._bounds(primitives(task, tasks))
            if key not in self._by_task or self._by_task[key].bounds != bounds:
                times = self._times.promised(bounds)
                asked = asked_operators(task, times, self._joins_ms)
                self._by_task[key] = _TaskNeed(bounds, asked, self._far(task, times))
        if tell is not None and (uncertainty_ms := self._take_uncertainty()) is not None:
            tell(TimesPromised(uncertainty_ms))
        wanted = {one.id: one for need in self._by_task.values() for one in need.operators}
        came = [one for name, one in wanted.items() if name not in self.operators]
        gone = [name for name in self.operators if name not in wanted]
        self.operators = wanted
        return came, gone

    def _take_uncertainty(self) -> int | None:
        """Return how uncertain events may be that are needed, if that was less so far."""
        bounds = [bound for need in self._by_task.values() for bound in need.bounds.values()]
        most_ms = max([bound.uncertainty_ms or 0 for bound in bounds], default=0)
        most_ms = min(most_ms, self._times.uncertainty_ms_max)  # what is beyond is not taken in
        if most_ms <= self._uncertainty_ms:
            return None
        self._uncertainty_ms = most_ms
        return most_ms

    def is_outdated(self) -> bool:
        """Tell whether other times are promised than when needs were looked at."""
        return self._promised is not None and self._promised.version != self._version

    def _far(self, task: Task, times: Times) -> dict[str, int]:
        """Return the types that travel at once for a task, as their partners may be too far."""
        far: dict[str, int] = {}
        for operator in task_operators(task, times) if self._joins_ms is not None else ():
            if _joins(operator, operator.delta_t_ms) and not _joins(operator, self._joins_ms):
                far |= {key.type_name: operator.delta_t_ms or 0 for key in operator.keys}
        return far

    def far(self) -> dict[str, int]:
        """Return by type how far partners may be, where that is too far for any to wait."""
        far: dict[str, int] = {}
        for need in self._by_task.values():
            for name, apart_ms in need.far.items():
                far[name] = max(apart_ms, far.get(name, 0))
        return far

    def joined(self) -> set[str]:
        """Return the types of which events are asked for only with partners."""
        joins = [operator for operator in self.operators.values() if operator.correlated]
        return {key.type_name for operator in joins for key in operator.keys}

    def _bounds(self, types: Iterable[str]) -> dict[str, TimeBound]:
        if self._promised is None:
            return dict.fromkeys(types, UNBOUNDED)
        return {name: self._promised.of(name) for name in types}

    def tasks_of(self, operator: str) -> list[str]:
        """Return the keys of the tasks here that need an operator of this id."""
        return [
            key
            for key, need in self._by_task.items()
            if any(needed.id == operator for needed in need.operators)
        ]

    # --- questions -------------------------------------------------------------------------

    def ask(self, origin: str, now: int) -> int:
        """Another question to an origin, which takes the place of an earlier one."""
        self._serial += 1
        self.asked[origin] = Asked(self._serial, now)
        return self._serial

    def quietly(self) -> int:
        """The number of a question to which no answer is waited for."""
        self._serial += 1
        return -self._serial

    @staticmethod
    def is_quiet(serial: int) -> bool:
        """Tell whether that is the number of a question to which no answer is waited for."""
        return serial < 0

    def answered(self, origin: str, serial: int) -> bool:
        """The question was answered; False where it is not the last one."""
        asked = self.asked.get(origin)
        if asked is None or asked.serial != serial:
            return False
        del self.asked[origin]
        for waits in self.waits.values():
            if waits.get(origin, serial + 1) <= serial:
                del waits[origin]
        return True

    def overdue(self, now: int, after_ms: int) -> list[str]:
        """The origins that have not answered for so long."""
        return [origin for origin, one in self.asked.items() if now - one.at >= after_ms]

    # --- subscriptions ---------------------------------------------------------------------

    def wait(self, key: Key, origins: Iterable[str]) -> None:
        """A subscription waits for the next answer of these."""
        self.waits[key] = dict.fromkeys(origins, self._serial + 1)

    def forget(self, origin: str) -> None:
        """Nobody waits for this origin any more."""
        self.asked.pop(origin, None)
        for waits in self.waits.values():
            waits.pop(origin, None)

    def ready(self, known: Iterable[Key]) -> list[Key]:
        """The subscriptions, of these, that wait for nobody; they are forgotten here."""
        names = set(known)
        for key in [key for key in self.waits if key not in names]:
            del self.waits[key]
        found = [key for key, waits in self.waits.items() if not waits]
        for key in found:
            del self.waits[key]
        return found


def primitives(task: Task, tasks: Mapping[str, Task]) -> list[str]:
    """Return the types of which a task, and the definitions that it needs, are made."""
    types: dict[str, None] = {}
    seen, waiting = {task.key: None}, [task]
    while waiting:
        user = waiting.pop()
        types |= dict.fromkeys([name for name in user.types if name not in user.needs])
        for key in user.needs.values():
            if key in tasks and key not in seen:
                seen[key] = None
                waiting.append(tasks[key])
    return list(types)


def asked_operators(task: Task, times: Times, joins_ms: int | None) -> tuple[Operator, ...]:
    """Return what the home of a task asks other brokers for; `joins_ms` as in Needs."""
    operators = task_operators(task, times)
    joins = [operator for operator in operators if _joins(operator, joins_ms)]
    return (*joins, *_alone([each for each in operators if not _joins(each, joins_ms)]))


def _joins(operator: Operator, most_ms: int | None) -> bool:
    delta_t_ms = operator.delta_t_ms
    if most_ms is None or delta_t_ms is None:
        return False
    return operator.correlated and len(operator.keys) > 1 and delta_t_ms <= most_ms


def _alone(operators: Iterable[Operator]) -> tuple[Operator, ...]:
    """Each key by itself: what it takes travels whether or not it finds a partner."""
    found: dict[str, Operator] = {}
    for operator in operators:
        for key in operator.keys:
            plain = replace(key, name=key.type_name, optional=False)
            name = digest("operator", repr(plain))
            found[name] = Operator(name, (plain,), correlated=False)
    return tuple(found.values())
