"""Definitions that run once for all subscriptions that need them, whoever submitted these.

Owns which instance of each definition a subscription uses. Must not know texts, nor how states are
compared (`broker.engine.runtime.instances`). Invariant: a subscription gets what it would get if it
were the only one at its broker.

So a subscription that comes to a definition which runs already shares that only if a new one would
hold the same. Else it has an instance of its own beside it, and each time that this has become
twice as old the two are compared, first after a second: from the moment on at which they hold the
same one of them goes. No result depends on when that is found out.

Each instance counts as a definition. Where no more of them may run, a text is refused. What becomes
active just then was accepted already: it shares what runs, whatever that holds, which is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from broker.engine.limits import LimitReachedError
from broker.engine.runtime.likeness import like, merge
from broker.engine.runtime.succession import Heir, take_over

if TYPE_CHECKING:
    from broker.core.catalogue import Catalogue, Installed
    from broker.engine.ledger import Ledger
    from broker.engine.limits import Limits
    from broker.engine.runtime.matcher import Matcher
    from language import Task

FIRST_LOOK_MS = 1_000  # after an instance began beside another: what is empty then is found soon

Key: TypeAlias = tuple[str, str]
Keeps = Callable[["Installed", str], bool]


class Beside(Struct):
    """An instance that began beside another, and when the two are compared next; in ms."""

    begun: int
    due: int


class SharedTasks:
    """Runs what subscriptions need in one matcher."""

    def __init__(
        self, catalogue: Catalogue, matcher: Matcher, limits: Limits, ledger: Ledger
    ) -> None:
        self._catalogue = catalogue
        self._matcher = matcher
        self._most = limits.definitions_max
        self._ledger = ledger
        self.beside: dict[str, Beside] = {}  # by the name of the instance that came later

    # --- beginning and end -----------------------------------------------------------------

    def run_all(
        self,
        subs: Sequence[Installed],
        tasks: Mapping[str, Task],
        now: int,
        replaced: Mapping[Key, Installed],
        heirs: Mapping[Key, Mapping[str, Heir]],
    ) -> bool:
        """Run what subscriptions need and them; tell whether any task began with nothing.

        `replaced`: those that ran here and which they replace; `heirs`: their tasks that go on from
        the state of others. Raises LimitReachedError; then nothing has begun.
        """
        new: list[str] = []
        some_begin = False
        try:
            for sub in subs:
                kept, own = self._going_on(sub, replaced.get(sub.key), heirs.get(sub.key, {}))
                begun = self.run(sub, tasks, now, kept, own)
                whole = {key for key, (heir, _) in own.items() if not heir.parts}
                keys = [self._matcher.running[name].task.key for name in begun]
                some_begin = some_begin or not whole.issuperset(keys)
                new += begun
            self._check(new)
        except BaseException:
            for name in reversed(new):
                self._matcher.remove(name)
            raise
        return some_begin

    def _going_on(
        self, sub: Installed, before: Installed | None, heirs: Mapping[str, Heir]
    ) -> tuple[dict[str, str], dict[str, tuple[Heir, str]]]:
        """Return the instances that a subscription goes on with, and those whose state it takes."""
        if before is None:
            return {}, {}
        names = {key: before.instance_of(key) for key in (*before.definitions, before.task)}
        kept = {key: names[key] for key in sub.definitions if names.get(key, "") in self._matcher}
        return kept, {key: (heir, names[heir.predecessor.key]) for key, heir in heirs.items()}

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
            self._check(begun)
        except BaseException:
            for name in reversed(begun):
                self._matcher.remove(name)
            raise
        sub.instances = {key: name for key, name in names.items() if key != name}
        return begun

    def _check(self, begun: Iterable[str]) -> None:
        """Raise LimitReachedError if with these more definitions run than may."""
        uses, running = self._catalogue.definitions, self._matcher.running
        self._check_count(sum([name not in uses and bool(running[name].outlet) for name in begun]))

    def _check_count(self, more: int) -> None:
        if more and len(self._catalogue.definitions) + more > self._most:
            raise LimitReachedError("definitions_max", self._most, "definitions")

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
            try:
                self.run(sub, tasks, now, goes_on, {})
            except LimitReachedError:
                self._ledger.note("definitions_joined")
                self.run(sub, tasks, now, self._joined(sub, tasks, goes_on), {})
            for key in sub.definitions:
                if key not in goes_on:
                    uses.take(sub.instance_of(key))

    def _joined(
        self, sub: Installed, tasks: Mapping[str, Task], kept: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the instances that a subscription shares for want of room for its own."""
        names = dict(kept)
        suspended, running = self._matcher.suspensions.why, self._matcher.running
        for key in sub.definitions:
            needs = {kind: names.get(need) for kind, need in tasks[key].needs.items()}
            for name in self._matcher.instances(key):
                if name not in suspended and running[name].needs == needs:
                    names.setdefault(key, name)
        return names

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

    def check_room(self, sub: Installed) -> None:
        """Raise LimitReachedError if a subscription must not be resumed, as others keep theirs."""
        uses, why = self._catalogue.definitions, self._matcher.suspensions.why
        self._check_count(sum([name in why and uses.count(name) > 1 for name in sub.uses]))

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


class JoinedTasks:
    """Runs what subscriptions need as it was run when records of an earlier version were written.

    A definition ran once, under its key, and who came later joined it, whatever it held. Behind a
    journal that is handled again come results under the offsets that these had then.
    """

    def __init__(self, catalogue: Catalogue, matcher: Matcher) -> None:
        self._catalogue = catalogue
        self._matcher = matcher

    def run_all(
        self,
        subs: Sequence[Installed],
        tasks: Mapping[str, Task],
        now: int,
        replaced: Mapping[Key, Installed],
        heirs: Mapping[Key, Mapping[str, Heir]],
    ) -> bool:
        """Run what subscriptions need and them; tell whether any task began with nothing."""
        wanted = {key for sub in subs for key in (*sub.definitions, sub.task)}
        all_heirs = {key: heir for sub in replaced for key, heir in heirs.get(sub, {}).items()}
        new: list[str] = []
        try:
            for key in [key for key in tasks if key in wanted and key not in self._matcher]:
                self._matcher.install(tasks[key], now)
                new.append(key)
                if (heir := all_heirs.get(key)) is not None:
                    take_over(self._matcher, heir, heir.predecessor.key, key)
        except BaseException:
            for key in reversed(new):
                self._matcher.remove(key)
            raise
        return any(key not in all_heirs or all_heirs[key].parts for key in new)

    def begin_anew(self, subs: Sequence[Installed], now: int, apart: Container[Key]) -> None:
        """Have tasks begin anew that nothing active uses, and no text has kept.

        Those of the subscriptions `apart` do not run here.
        """
        running = {
            key
            for sub in self._catalogue.subscriptions.values()
            if sub.key not in apart
            for key in ((*sub.definitions, sub.task) if sub.state == "active" else sub.kept)
        }
        keys = dict.fromkeys([key for sub in subs for key in (*sub.definitions, sub.task)])
        self._install_anew([key for key in keys if key not in running], now)

    def resume(self, sub: Installed, now: int) -> None:
        """Have those tasks of a subscription begin anew that are suspended, for all."""
        why = dict(self._matcher.suspensions.why)
        own = {key for key in (*sub.definitions, sub.task) if key in why}
        anew = dict.fromkeys([key for key in self._matcher.running if key in own])
        for name, instance in self._matcher.running.items():
            if not anew.keys().isdisjoint(instance.needs.values()):
                anew[name] = None  # it is suspended with what it needs, and stays so
        self._install_anew([name for name in self._matcher.running if name in anew], now)
        for name in anew:
            if name not in own:
                self._matcher.suspensions.suspend(name, why[name])

    def _install_anew(self, keys: Sequence[str], now: int) -> None:
        """Have these begin with nothing, each behind what it needs."""
        tasks = self._matcher.tasks()
        for key in reversed(keys):
            self._matcher.remove(key)
        for key in keys:
            self._matcher.install(tasks[key], now)
