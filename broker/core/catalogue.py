"""What is installed: subscriptions, the definitions that they need, and who declared which types.

Owns these records in memory. Must not know agents or clients' connections. Invariant: a definition
is counted once for each subscription that needs it, directly or through others, and has not ended;
it stands here exactly while that count is above zero; likewise the declarations of a specification,
which outlast an end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from broker.engine.clock_names import clock_name
from language.tree import Definition

if TYPE_CHECKING:
    from language.taskgraph import Task

LONGEST_DAY_MS = 25 * 3_600_000  # when clocks are put back an hour

# Of a subscription: its home has taken it on; it runs at every broker that it needs; and it was
# active, and nothing can be a result of it any more.
State: TypeAlias = Literal["accepted", "active", "ended"]

TOO_MUCH_WORK = "too_much_work"  # why a subscription is suspended, in logs, counters and messages


class Installed(Struct):
    """A subscription that was taken on.

    `client` submitted it, `proven` if by a password or certificate; `definitions` are the keys of
    those that it needs, each before its users;
    `declared` names the declarations that its file made; `since` is when it was installed, in ms,
    and `ends` the time from which on nothing is a result of it, None if no such time is set.
    """

    subscriber: str
    name: str
    seq: int
    actor: str
    task: str
    client: str
    definitions: tuple[str, ...]
    declared: str
    since: int
    results: int = 0
    state: State = "accepted"
    proven: bool = False
    ends: int | None = None
    nearest: bool = False  # results go to the nearest of the actors below `actor`
    suspended: str = ""  # what a step of it exceeded, until it is resumed
    # Of one that does not wait without end for brokers that are away: the clocks of its types, and
    # how far from its own times a result may reach.
    clocks: tuple[str, ...] = ()
    reach_ms: int = 0
    resumed: int = 0  # how often it has begun anew
    kept: tuple[str, ...] = ()  # of its tasks those that went on when its text was changed
    # By key, the names of the instances that it uses of its definitions, other than the key.
    instances: dict[str, str] = {}

    @property
    def key(self) -> tuple[str, str]:
        """(subscriber, name), which is unique."""
        return (self.subscriber, self.name)

    def instance_of(self, key: str) -> str:
        """Return the name of the instance that it uses of a task."""
        return self.instances.get(key, key)

    @property
    def uses(self) -> list[str]:
        """Return the names of the instances of its definitions, each before its users."""
        return [self.instances.get(key, key) for key in self.definitions]


def waiting_on(tasks: Sequence[Task]) -> tuple[tuple[str, ...], int]:
    """Return the clocks of the types that `tasks` need, where these have a wait, and their reach.

    A result reaches as far from its own times as the windows of all its definitions are long.
    """
    clocks: dict[str, None] = {}
    reach_ms = 0
    for task in tasks:
        if task.wait_ms is not None:
            types = [name for name in task.types if name not in task.needs]
            clocks |= {clock_name(name, task.wait_ms): None for name in types}
            window = task.node.window if isinstance(task.node, Definition) else None
            if window is not None and window.aggregated:
                days_ms = (window.every_days or 0) * LONGEST_DAY_MS
                lengths = (window.range_ms, window.every_ms, window.run_open_ms, days_ms)
                reach_ms += max(length or 0 for length in lengths)
    return tuple(clocks), reach_ms


class Uses:
    """Count how often each of some keys is used; a key is there while it is used."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._counts

    def __len__(self) -> int:
        return len(self._counts)

    def take(self, key: str) -> None:
        """One use more."""
        self._counts[key] = self._counts.get(key, 0) + 1

    def drop(self, key: str) -> bool:
        """One use less; whether it was the last."""
        self._counts[key] -= 1
        if self._counts[key]:
            return False
        del self._counts[key]
        return True

    def count(self, key: str) -> int:
        """Return how often it is used."""
        return self._counts.get(key, 0)

    def counts(self) -> dict[str, int]:
        """A copy of the counts."""
        return dict(self._counts)


class Catalogue:
    """All subscriptions of one broker, in the order of their installation."""

    def __init__(self) -> None:
        self.subscriptions: dict[tuple[str, str], Installed] = {}
        self.definitions = Uses()
        self.declared = Uses()

    def __len__(self) -> int:
        return len(self.subscriptions)

    @property
    def suspended(self) -> int:
        """The number of subscriptions that are suspended."""
        return sum([bool(each.suspended) for each in self.subscriptions.values()])

    def add(self, one: Installed) -> None:
        """Record a subscription; of its name there must be none."""
        if one.key in self.subscriptions:
            raise ValueError(f"{one.name} of {one.subscriber} is recorded already")
        self.subscriptions[one.key] = one
        if one.state != "ended":
            for name in one.uses:
                self.definitions.take(name)
        self.declared.take(one.declared)

    def remove(self, one: Installed) -> tuple[list[str], bool]:
        """Strike a subscription out: (definitions that nobody needs now, users first; whether
        nobody is left of those who share its declarations).
        """
        del self.subscriptions[one.key]
        return self._let_go(one), self.declared.drop(one.declared)

    def end(self, one: Installed) -> list[str]:
        """A subscription is over, and stays: the definitions that nobody needs now, users first."""
        idle = self._let_go(one)
        one.state = "ended"
        return idle

    def _let_go(self, one: Installed) -> list[str]:
        if one.state == "ended":
            return []
        return [name for name in reversed(one.uses) if self.definitions.drop(name)]

    def use_instead(self, one: Installed, key: str, name: str) -> None:
        """Have a subscription use another instance of a definition."""
        if one.state != "ended":
            self.definitions.drop(one.instance_of(key))
            self.definitions.take(name)
        one.instances.pop(key, None)
        if name != key:
            one.instances[key] = name

    def freed(self, leaving: Iterable[Installed]) -> list[str]:
        """The declarations that nobody would share if these left."""
        counts = self.declared.counts()
        for one in leaving:
            counts[one.declared] -= 1
        return [key for key, count in counts.items() if not count]

    def submitted_by(self, client: str, name: str) -> list[Installed]:
        """The subscriptions of this name that a client submitted, whoever they are for."""
        return [
            one for one in self.subscriptions.values() if one.client == client and one.name == name
        ]

    def sharing(self, cells: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], int]:
        """Return with how many others each subscription shares what most share with it.

        `cells`: of those that run in one, its name. Instances there are not known here, and one is
        taken to share with all that need the same.
        """
        used: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for key, sub in self.subscriptions.items():
            if sub.state != "ended":
                names = sub.definitions if key in cells else sub.uses
                used[key] = [(cells.get(key, ""), name) for name in names]
        counts = Counter([use for uses in used.values() for use in uses])
        return {
            key: max([counts[use] - 1 for use in uses], default=0) for key, uses in used.items()
        }

    @property
    def shared(self) -> int:
        """Return the number of definitions that run once for several subscriptions."""
        return sum([count > 1 for count in self.definitions.counts().values()])

    def check_invariants(self) -> None:
        """Raise AssertionError unless the counts are those of the subscriptions."""
        definitions, declared = Uses(), Uses()
        for key, one in self.subscriptions.items():
            assert key == one.key
            declared.take(one.declared)
            for name in one.uses if one.state != "ended" else ():
                definitions.take(name)
        assert definitions.counts() == self.definitions.counts()
        assert declared.counts() == self.declared.counts()
