"""Dependence grouping: which tasks a broker must take together so that no event is consumed apart.

Owns the merged forest of all requests, the closure of a choice and the groups that it leaves over
(paper 003, section 5). Must not know where anything runs, nor rates or costs. Invariant: every
alternative is closed; with the groups that it leaves, all consumers of an event stand together.

Where an event *moves* to whoever consumes it, a broker that consumes a Video keeps it from everyone
else: so it takes all of its consumers. Where streams are shared, as in `planner.problem`, that is
not needed; there the groups say what is worth moving together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from language.taskgraph import TaskGraph

ALTERNATIVES_MAX = 10_000  # unions may double with each event; a broker weighs no more than these


class CircularForestError(ValueError):
    """An event that comes from itself, directly or through others."""


@dataclass(frozen=True)
class Alternatives:
    """The choices of one broker, each in the forest's order; `complete`: none was left out."""

    groups: tuple[tuple[str, ...], ...]
    complete: bool


class Forest:
    """The events of all requests, an event under each that refers to it.

    `parents` says of each event what it is made from (nothing: it is atomic); what is named as a
    parent alone is atomic too. An event without consumers is a request, unless it is atomic.
    Raises CircularForestError.
    """

    def __init__(self, parents: Mapping[str, Sequence[str]]) -> None:
        names: dict[str, None] = {}
        for name, own in parents.items():
            names.update(dict.fromkeys((*own, name)))
        self._place = {name: place for place, name in enumerate(names)}
        self.parents = {name: tuple(dict.fromkeys(parents.get(name, ()))) for name in names}
        children: dict[str, list[str]] = {name: [] for name in names}
        for name, own in self.parents.items():
            for parent in own:
                children[parent].append(name)
        self.children = {name: tuple(own) for name, own in children.items()}
        self._refuse_circles()

    @classmethod
    def merged(cls, requests: Iterable[Mapping[str, Sequence[str]]]) -> Forest:
        """The forests of several requests as one; an event of one name is one event."""
        together: dict[str, tuple[str, ...]] = {}
        for request in requests:
            for name, own in request.items():
                together[name] = tuple(dict.fromkeys((*together.get(name, ()), *own)))
        return cls(together)

    @classmethod
    def of_graph(cls, graph: TaskGraph) -> Forest:
        """The forest of a checked specification: declared types by name, tasks by key."""
        return cls(
            {
                key: tuple(
                    graph.tasks[key].needs.get(name, name) for name in graph.tasks[key].inputs
                )
                for key in (*graph.active(graph.roots), *graph.roots)
            }
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Every event, parents before those that refer to them where the input said so."""
        return tuple(self._place)

    @property
    def atomic(self) -> tuple[str, ...]:
        """The events that no task makes."""
        return tuple(name for name in self._place if not self.parents[name])

    @property
    def requests(self) -> tuple[str, ...]:
        """What is made and nothing here refers to: the subscriptions."""
        return tuple(name for name in self._place if self.parents[name] and not self.children[name])

    def concatenating(self, name: str) -> tuple[str, ...]:
        """What `name` is made from, directly or through others, in order."""
        found: set[str] = set()
        stack = list(self.parents[name])
        while stack:
            parent = stack.pop()
            if parent not in found:
                found.add(parent)
                stack.extend(self.parents[parent])
        return self._ordered(found)

    def closure(self, chosen: Iterable[str]) -> tuple[str, ...]:
        """The least that a broker must process with `chosen`.

        With an event come those that it is made from; with an event that is consumed here come all
        that consume it.
        """
        found: set[str] = set()
        stack = list(chosen)
        while stack:
            name = stack.pop()
            if name in found:
                continue
            found.add(name)
            for parent in self.parents[name]:
                stack.append(parent)
                stack.extend(self.children[parent])
        return self._ordered(found)

    def ancestors(self, name: str) -> tuple[str, ...]:
        """The ancestor group of `name`: what its processing brings along, itself left out."""
        return tuple(one for one in self.closure((name,)) if one != name)

    def descendants(self, name: str, child: str) -> tuple[str, ...]:
        """The descendant group of `name` by one of its children: the child and what that brings.

        Left out are `name` and its ancestors. Raises KeyError where `child` is none of its own.
        """
        if child not in self.children[name]:
            raise KeyError(child)
        own = set(self.closure((name,)))
        return tuple(one for one in self.closure((child,)) if one not in own)

    def left(self, chosen: Iterable[str]) -> tuple[tuple[str, ...], ...]:
        """What a closed choice leaves over, in the fewest-membered groups that may part.

        Two events stay together where one is made from the other or both consume the same event.
        """
        taken = set(chosen)
        rest = [name for name in self._place if name not in taken]
        leader = {name: name for name in rest}

        def find(name: str) -> str:
            while leader[name] != name:
                leader[name] = leader[leader[name]]
                name = leader[name]
            return name

        for name in self._place:
            together = [one for one in (name, *self.children[name]) if one not in taken]
            for one in together[1:]:
                leader[find(one)] = find(together[0])
        groups: dict[str, list[str]] = {}
        for name in rest:
            groups.setdefault(find(name), []).append(name)
        return tuple(tuple(group) for group in groups.values())

    def alternatives(
        self, length: int | None = None, limit: int = ALTERNATIVES_MAX, *, whole: bool = False
    ) -> Alternatives:
        """The distinct groups that a broker may choose to process, the least-membered first.

        They are the closures of combinations of up to `length` events (None: of any number);
        events that share a direct parent bring each other along, so to combine them adds nothing.
        Requests are chosen by nobody unless `whole`; past `limit` no further ones are made.
        """
        requests = set() if whole else set(self.requests)
        single: dict[frozenset[str], None] = {}
        for name in self._place:
            if name not in requests:
                single[frozenset(self.closure((name,)))] = None
        found = dict(single)
        newest: list[frozenset[str]] = list(single)
        complete = len(found) <= limit
        rounds = 1
        while newest and complete and (length is None or rounds < length):
            rounds += 1
            made: dict[frozenset[str], None] = {}
            for group in newest:
                for more in single:
                    union = group | more
                    if union not in found and union not in made:
                        made[union] = None
            complete = len(found) + len(made) <= limit
            found.update(made)
            newest = list(made)
        return Alternatives(self._sorted(found)[:limit], complete)

    def folded(self, found: Alternatives) -> Alternatives:
        """`found` with the choices of atomic events alone told by one: all of the atomic events.

        To take in an atomic event is no work, so that these choices do not differ.
        """
        atomic = frozenset(self.atomic)
        kept = {frozenset(group): None for group in found.groups if not atomic.issuperset(group)}
        if atomic and len(kept) < len(found.groups):
            kept[atomic] = None
        return Alternatives(self._sorted(kept), found.complete)

    def _sorted(self, groups: Iterable[frozenset[str]]) -> tuple[tuple[str, ...], ...]:
        ordered = [self._ordered(group) for group in groups]
        return tuple(sorted(ordered, key=lambda one: (len(one), [self._place[n] for n in one])))

    def _ordered(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(names, key=self._place.__getitem__))

    def _refuse_circles(self) -> None:
        missing = {name: len(own) for name, own in self.parents.items()}
        ready = [name for name, count in missing.items() if not count]
        for name in _growing(ready):
            for child in self.children[name]:
                missing[child] -= 1
                if not missing[child]:
                    ready.append(child)
        if len(ready) < len(missing):
            circle = next(name for name, count in missing.items() if count)
            raise CircularForestError(f"{circle} comes from itself or from what does")


def _growing(names: list[str]) -> Iterator[str]:
    """The members of a list that grows while it is gone through."""
    at = 0
    while at < len(names):
        yield names[at]
        at += 1
