"""A described network: brokers and links, sources with their rates, homes, and listening actors.

Owns the form of the description. Must not know specifications. Invariant: what is refused is
refused with the path of the key; every broker that is named is one of the network's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.network import Network
from planner.problem import Number, Problem, ProblemError
from planner.reading import number, read_problem, text

SOURCES_MAX = 100_000
USUAL_BYTES = 150  # of an event of which nobody says it: id, source, time and two numbers


@dataclass(frozen=True, slots=True)
class Sending:
    """Events of one type: so many a second, of so many bytes each."""

    per_s: Number
    bytes: Number


@dataclass(frozen=True)
class Source:
    """A source, or `count` of its kind at one broker; `measured` says that rates are not told."""

    id: str
    broker: str
    location: str | None
    types: Mapping[str, Sending]
    count: int = 1


@dataclass(frozen=True)
class Estimate:
    """Hold what is known of a task beyond its text; None: nothing.

    `passes` are events sent for each that comes in, `per_s` events sent a second; `work` is for
    each event that comes in; `groups` are keys of its `group by`; `only` is, by input type, the
    part of the events that pass the task's own conditions.
    """

    passes: Number | None = None
    per_s: Number | None = None
    bytes: Number | None = None
    work: Number | None = None
    groups: int | None = None
    only: Mapping[str, Number] = field(default_factory=dict)
    hosts: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Described:
    """A network as somebody described it; `bare` has its brokers and links alone."""

    bare: Problem
    sources: tuple[Source, ...] = ()
    homes: Mapping[str, str] = field(default_factory=dict)
    home: str | None = None
    actors: tuple[tuple[str, str], ...] = ()
    estimates: Mapping[str, Estimate] = field(default_factory=dict)

    def home_of(self, subscriber: str, name: str) -> str:
        """The home of a subscription. Raises ProblemError where none is told."""
        for key in (f"{subscriber}/{name}", name):
            if key in self.homes:
                return self.homes[key]
        if self.home is None:
            raise ProblemError("homes", f"no home is told for the subscription {name}")
        return self.home

    def strange_homes(self, subscriptions: Collection[tuple[str, str]]) -> list[str]:
        """The homes that are told for no subscription of these (subscriber, name), in sentences."""
        known = {name for _, name in subscriptions}
        known |= {f"{subscriber}/{name}" for subscriber, name in subscriptions}
        strange = [name for name in self.homes if name not in known]
        return [f"homes.{name}: the text has no such subscription" for name in strange]

    def strange_estimates(self, tasks: Collection[str]) -> list[str]:
        """Likewise of what is told of no task of these names."""
        strange = [name for name in self.estimates if name not in tasks]
        return [f"estimates.{name}: the text has no such task" for name in strange]

    def listeners(self, name: str, home: str, *, below: bool, nearest: bool) -> tuple[str, ...]:
        """The brokers where an actor listens; `below`: any actor below that name.

        The nearest is the one fewest hops from the home, of equally near ones that of the least
        name; where none listens the result goes to none but the home.
        """
        if not (below or nearest):
            return tuple(dict.fromkeys(b for actor, b in self.actors if actor == name))
        found = [(actor, b) for actor, b in self.actors if actor.startswith(f"{name}/")]
        if not nearest:
            return tuple(dict.fromkeys(broker for _, broker in found))
        net = Network.of(self.bare)
        hops = net.hops(net.numbers[home])
        away = [
            (hops[net.numbers[broker]], actor, broker)
            for actor, broker in found
            if net.numbers[broker] in hops
        ]
        return (min(away)[2],) if away else ()


def read_network(document: object) -> Described:
    """The network that a decoded document describes. Raises ProblemError, naming the key."""
    top = _object(document, "")
    bare = {key: top.get(key) for key in ("name", "server", "nodes", "links")}
    problem = read_problem({**bare, "contents": [], "tasks": []})
    known = {node.id for node in problem.nodes}
    actors = []
    for path, entry in _entries(top, "actors"):
        name = text(entry.get("actor"), f"{path}.actor")
        actors.append((name, _broker(entry.get("broker"), f"{path}.broker", known)))
    homes = {
        key: _broker(broker, f"homes.{key}", known)
        for key, broker in _object(top.get("homes", {}), "homes").items()
    }
    home = top.get("home")
    return Described(
        problem,
        tuple(_source(path, entry, known) for path, entry in _entries(top, "sources")),
        homes,
        None if home is None else _broker(home, "home", known),
        tuple(actors),
        {
            name: _estimate(f"estimates.{name}", _object(entry, f"estimates.{name}"), known)
            for name, entry in _object(top.get("estimates", {}), "estimates").items()
        },
    )


def _source(path: str, entry: Mapping[str, Any], known: set[str]) -> Source:
    """A rate that was measured goes before the one that the source advertised."""
    types = {}
    for name, told in _object(entry.get("types"), f"{path}.types").items():
        at = f"{path}.types.{name}"
        sending = _object(told, at)
        key = "measured" if sending.get("measured") is not None else "rate"
        rate = number(sending.get(key), f"{at}.{key}")
        types[name] = Sending(rate, number(sending.get("bytes", USUAL_BYTES), f"{at}.bytes"))
    count = entry.get("count", 1)
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= SOURCES_MAX:
        raise ProblemError(f"{path}.count", f"expected a whole number from 1 to {SOURCES_MAX}")
    location = entry.get("location")
    return Source(
        text(entry.get("source"), f"{path}.source"),
        _broker(entry.get("broker"), f"{path}.broker", known),
        None if location is None else text(location, f"{path}.location"),
        types,
        count,
    )


def _estimate(path: str, entry: Mapping[str, Any], known: set[str]) -> Estimate:
    def given(key: str) -> Number | None:
        return None if entry.get(key) is None else number(entry[key], f"{path}.{key}")

    only = {}
    for name, part in _object(entry.get("only", {}), f"{path}.only").items():
        only[name] = number(part, f"{path}.only.{name}")
        if only[name] > 1:
            raise ProblemError(f"{path}.only.{name}", "a part of the events is at most 1")
    groups = given("groups")
    hosts = entry.get("hosts")
    if hosts is not None:
        if not isinstance(hosts, list):
            raise ProblemError(f"{path}.hosts", "not an array")
        hosts = tuple(_broker(one, f"{path}.hosts[{i}]", known) for i, one in enumerate(hosts))
    return Estimate(
        given("passes"),
        given("per_s"),
        given("bytes"),
        given("work"),
        None if groups is None else max(1, round(groups)),
        only,
        hosts,
    )


def _entries(top: Mapping[str, Any], name: str) -> list[tuple[str, Mapping[str, Any]]]:
    value = top.get(name, [])
    if not isinstance(value, list):
        raise ProblemError(name, "not an array")
    if len(value) > SOURCES_MAX:
        raise ProblemError(name, f"has {len(value)} entries, more than {SOURCES_MAX}")
    return [(f"{name}[{i}]", _object(entry, f"{name}[{i}]")) for i, entry in enumerate(value)]


def _object(value: object, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ProblemError(path, "not an object" if path else "the document is not an object")
    return value


def _broker(value: object, path: str, known: set[str]) -> str:
    name = text(value, path)
    if name not in known:
        raise ProblemError(path, f"no broker is called {name}")
    return name
