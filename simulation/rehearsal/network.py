"""The network of a rehearsal: what a placement problem is made of, with delays.

Owns the keys that only a rehearsal reads (`delay_ms` of links, `entry`). Must not know events or
specifications. Invariant: what is refused is refused with the path of the key; every broker can be
reached from every other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from planner.network import Network
from planner.problem import ProblemError
from planner.tasks_network import Described, Source, read_network

DELAY_MS = 5  # of a link of which nobody tells it: a few hundred kilometres of cable
DELAY_MS_MAX = 3_600_000
BROKERS_MAX = 200  # each is a whole broker here; a hundred of them take minutes to get ready


@dataclass(frozen=True)
class Rehearsed:
    """A described network; `entry` is where sources enter that are not described."""

    described: Described
    delays: Mapping[tuple[str, str], int]
    entry: str | None
    sources: Mapping[str, Source]

    @property
    def brokers(self) -> list[str]:
        """The brokers' names, in order."""
        return [node.id for node in self.described.bare.nodes]

    @property
    def links(self) -> list[tuple[str, str]]:
        """The links, in order."""
        return list(self.delays)

    def broker_of(self, source: str) -> str | None:
        """Return the broker at which a source's events enter; None if none is given."""
        description = self.sources.get(source)
        return self.entry if description is None else description.broker


def read_rehearsed(document: object) -> Rehearsed:
    """The network that a decoded document describes. Raises ProblemError, naming the key."""
    top = document if isinstance(document, dict) else {}
    described = read_network(_with_types(top) if top else document)
    bare = described.bare
    names = [node.id for node in bare.nodes]
    if not 1 <= len(names) <= BROKERS_MAX:
        reason = f"has {len(names)} brokers, a rehearsal takes 1 to {BROKERS_MAX}"
        raise ProblemError("nodes", reason)
    entry = top.get("entry")
    if entry is not None and entry not in names:
        raise ProblemError("entry", f"no broker is called {entry}")
    delays = dict(_delays(top["links"]))
    hops = Network.of(bare).hops(0)
    cut_off = [name for number, name in enumerate(names) if number not in hops]
    if cut_off:
        raise ProblemError("links", f"no way leads from {names[0]} to {cut_off[0]}")
    sources: dict[str, Source] = {}
    for index, source in enumerate(described.sources):
        first = sources.setdefault(source.id, source)
        if first.broker != source.broker:
            reason = f"{source.id} is at {first.broker} and at {source.broker}"
            raise ProblemError(f"sources[{index}].broker", reason)
    return Rehearsed(described, delays, entry, sources)


def _with_types(top: Mapping[str, Any]) -> dict[str, Any]:
    """Rates are what a recording tells by itself, so that they may be left out."""
    sources = top.get("sources", [])
    if isinstance(sources, list):
        sources = [
            {"types": {}, **source} if isinstance(source, dict) else source for source in sources
        ]
    return {**top, "links": top.get("links", []), "sources": sources}


def _delays(links: Iterable[Mapping[str, Any]]) -> Iterable[tuple[tuple[str, str], int]]:
    """In whole milliseconds; the planner has seen that the links are links."""
    for index, link in enumerate(links):
        delay_ms = link.get("delay_ms", DELAY_MS)
        if isinstance(delay_ms, bool) or not isinstance(delay_ms, int):
            raise ProblemError(f"links[{index}].delay_ms", "not a whole number")
        if not 0 <= delay_ms <= DELAY_MS_MAX:
            reason = f"found {delay_ms}, expected 0 to {DELAY_MS_MAX}"
            raise ProblemError(f"links[{index}].delay_ms", reason)
        yield (link["a"], link["b"]), delay_ms
