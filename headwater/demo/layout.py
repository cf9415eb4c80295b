"""Where the demonstration's brokers, stations and subscribers are.

Owns the tree, who is where, and what a central server would have had to carry over each link. Must
not know processes or MQTT. Invariant: stations and subscribers of one place never change brokers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from zlib import crc32

ROOT = "centre"
PARENTS = {"pass": ROOT, "city": ROOT, "north": "pass", "south": "pass", "harbour": "city"}
NAMES = (ROOT, *PARENTS)

# The stations of a network are spread over the brokers that they can reach.
_REACHED = {"grand-st-bernard": ("north", "south"), "singapore": ("city", "harbour")}
_HOMES = {
    "ColdStation": "pass",
    "WindChill": "pass",
    "HotStation": "city",
    "StormCell": "harbour",
}  # all others: at the root
_SUBSCRIPTION = re.compile(r"subscription\s+(\w+)")


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """One link: what went over it, and what would have gone over it to a server at the root."""

    child: str
    parent: str
    events: int
    central: int


def origin_of(location: str) -> str:
    """The broker to which a station at the location sends."""
    network, _, name = location.partition("/")
    reached = _REACHED.get(network, (ROOT,))
    return reached[crc32(name.encode()) % len(reached)]


def home_of(subscription: str) -> str:
    """The broker at which a subscription is submitted."""
    return _HOMES.get(subscription, ROOT)


def texts_by_home(text: str, subscriptions: Iterable[str]) -> dict[str, str]:
    """The text for each home: all declarations, and the subscriptions that are submitted there."""
    homes = dict.fromkeys(map(home_of, subscriptions))
    items = re.split(r"\n(?=\S)", text)
    return {home: "\n".join([item for item in items if _belongs(item, home)]) for home in homes}


def _belongs(item: str, home: str) -> bool:
    match = _SUBSCRIPTION.match(item)
    return match is None or home_of(match[1]) == home


def links(
    sent: Mapping[tuple[str, str], int], readings: Mapping[str, int], results: Mapping[str, int]
) -> list[LinkLoad]:
    """All links; `sent` are events by (from, to), `readings` by origin, `results` by home.

    A server at the root gets every reading and sends every result to its subscriber's broker.
    """
    beyond = {child: _beneath(child) for child in PARENTS}
    return [
        LinkLoad(
            child,
            parent,
            sent.get((child, parent), 0) + sent.get((parent, child), 0),
            sum(readings.get(name, 0) + results.get(name, 0) for name in beyond[child]),
        )
        for child, parent in PARENTS.items()
    ]


def _beneath(name: str) -> list[str]:
    """A broker and all whose way to the root leads over it."""
    children = [child for child, parent in PARENTS.items() if parent == name]
    return [name, *(descendant for child in children for descendant in _beneath(child))]
