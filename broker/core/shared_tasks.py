"""Definitions that run once for all subscriptions that need them, whoever submitted these.

Owns which instance of each definition a subscription uses. Must not know texts, nor how states are
compared (`broker.engine.runtime.instances`). Invariant: a subscription gets what it would get if it
were the only one at its broker.

So a subscription that comes to a definition which runs already shares that only if a new one would
hold the same. Else it has an instance of its own beside it, and each time that this has become
twice as old the two are compared, first after a second: from the moment on at which they hold the
same one of them goes. No result depends on when that is found out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from broker.engine.runtime.likeness import like, merge
from broker.engine.runtime.succession import Heir, take_over

if TYPE_CHECKING:
    from broker.core.catalogue import Catalogue, Installed
    from broker.engine.runtime.matcher import Matcher
    from language import Task

FIRST_LOOK_MS = 1_000  # after an instance began beside another: what is empty then is found soon

Keeps = Callable[["Installed", str], bool]


class Beside(Struct):
    """An instance that began beside another, and when the two are compared next; in ms."""

    begun: int
    due: int


class SharedTasks:
    """Runs what subscriptions need in one matcher."""

    def __init__(self, catalogue: Catalogue, matcher: Matcher) -> None:
        self._catalogue = catalogue
        self._matcher = matcher
        self.beside: dict[str, Beside] = {}  # by the name of the instance that came later

    # --- beginning and end -----------------------------------------------------------------

    def run(
        self,
        sub: Installed,
        tasks: Mapping[str, Task],
        now: int,
        kept: Mapping[str, str],
        heirs: Mapping[str, tuple[Heir, str]],
    ) -> list[str]:
        """Run what a subscription needs and it; return the names of the instances that began.

        `kept`: by key the instances that it goes on with; `heirs`: those tasks that go on from the
        state of others, with the names of these. Raises LimitReachedError; then nothing has begun.
        """
        names = dict(kept)
        begun: list[str] = []
        moved: dict[str, None] = {}
        try:
            for key in (*sub.definitions, sub.task):
                needs = {type_name: names[need] for type_name, need in tasks[key].needs.items()}
                if key in kept:
                    others = self._matcher.running[kept[key]].needs != needs
                    if others or not moved.keys().isdisjoint(needs.values()):
                        self._matcher.rewire(kept[key], needs, last=True)
                        moved[kept[key]] = None
                    continue
                name = self._free_name(key)
                self._matcher.install(tasks[key], now, name, needs)
                begun.append(name)
                if key in heirs:
                    take_over(self._matcher, *heirs[key], name)
                names[key] = self._shared(name, now, begun)
        except BaseException:
            for name in reversed(begun):
                self._matcher.remove(name)
            raise
        sub.instances = {key: name for key, name in names.items() if key != name}
        return begun

    def _free_name(self, key: str) -> str:
        name, count = key, 1
        while name in self._matcher:
            count += 1
            name = f"{key}~{count}"
        return name

    def _shared(self, name: str, now: int, begun: list[str]) -> str:
        """Return the instance that stands for one that has just begun: one like it, or itself."""
        other = like(self._matcher, name)
        if other != name:
            self._matcher.remove(begun.pop())
        elif self._matcher.instances(self._matcher.running[name].task.key)[0] != name:
            self.beside[name] = Beside(now, now + FIRST_LOOK_MS)
        return other

    def stop(self, names: Iterable[str]) -> None:
        """Stop those of these instances that nobody needs; users stand before what they need."""
        for name in names:
            if name not in self._catalogue.definitions and name in self._matcher:
                self._matcher.remove(name)

    def begin_anew(self, subs: Sequence[Installed], now: int, keeps: Keeps) -> None:
        """Have subscriptions begin as if they came now, but for the tasks that one `keeps`."""
        tasks, uses = self._matcher.tasks(), self._catalogue.definitions
        kept = [self._kept(sub, keeps) for sub in subs]
        for sub, goes_on in zip(subs, kept, strict=True):
            if sub.task not in goes_on:
                self._matcher.remove(sub.task)
            for key in reversed(sub.definitions):
                if key not in goes_on and uses.drop(sub.instance_of(key)):
                    self._matcher.remove(sub.instance_of(key))
        for sub, goes_on in zip(subs, kept, strict=True):
            self.run(sub, tasks, now, goes_on, {})
            for key in sub.definitions:
                if key not in goes_on:
                    uses.take(sub.instance_of(key))

    def _kept(self, sub: Installed, keeps: Keeps) -> dict[str, str]:
        """Return what a subscription goes on with: nothing that others need in another wiring."""
        kept: dict[str, str] = {}
        uses = self._catalogue.definitions.counts()
        for key in (*sub.definitions, sub.task):
            name = sub.instance_of(key)
            if not keeps(sub, key) or name not in self._matcher:
                continue
            needs = self._matcher.running[name].task.needs.values()
            if all(need in kept for need in needs) or uses.get(name, 1) == 1:
                kept[key] = name
        return kept

    def resume(self, sub: Installed, now: int) -> None:
        """Have those tasks of a subscription begin anew that are suspended, if they run here."""
        if sub.task not in self._matcher:
            return
        why = self._matcher.suspensions.why
        self.begin_anew([sub], now, lambda one, key: one.instance_of(key) not in why)

    # --- becoming one ----------------------------------------------------------------------

    def look(self, now: int) -> None:
        """Have instances become one that hold the same, of those for which it is time."""
        for name, beside in list(self.beside.items()):
            if not self._is_beside(name):
                del self.beside[name]
            elif beside.due <= now:
                beside.due = now + max(now - beside.begun, FIRST_LOOK_MS)
                other = like(self._matcher, name)
                if other != name:
                    merge(self._matcher, name, other)
                    del self.beside[name]
                    self._renamed(name, other)

    def _is_beside(self, name: str) -> bool:
        instance = self._matcher.running.get(name)
        return instance is not None and self._matcher.instances(instance.task.key)[0] != name

    def _renamed(self, gone: str, into: str) -> None:
        for sub in self._catalogue.subscriptions.values():
            for key in sub.definitions:
                if sub.instance_of(key) == gone:
                    self._catalogue.use_instead(sub, key, into)

    # --- snapshots -------------------------------------------------------------------------

    def state(self) -> list[list[Any]]:
        """Return as plain data how instances are wired, where that is not by keys alone.

        A row is a name, the key of its task, and what it needs; beside another one, two times, too.
        """
        rows: list[list[Any]] = []
        for name, instance in self._matcher.running.items():
            key, needs = instance.task.key, dict(instance.needs)
            beside = self.beside.get(name) if self._is_beside(name) else None
            if beside is not None:
                rows.append([name, key, needs, beside.begun, beside.due])
            elif name != key or needs != instance.task.needs:
                rows.append([name, key, needs])
        return rows

    def restore(self, instances: Mapping[str, Sequence[Any]]) -> None:
        """Take up what `state` said of instances, by their names."""
        times = {name: row[2:] for name, row in instances.items()}
        self.beside |= {name: Beside(*both) for name, both in times.items() if both}
