"""How names stand in topics: Headwater's own topics below the prefix, written and read.

Owns the shapes of these topics. Must not know the prefix or MQTT's packets. Invariant: what is
written is a topic name (no wildcard, no control character), and two names never share a topic.

MQTT forbids `+`, `#` and NUL in a topic name, and names may hold `/`, which parts levels there. So:

- `%`, `+`, `#` and control characters are percent-encoded as UTF-8 (`%2B`), everywhere;
- the last name of a topic keeps its `/`: the source of `events/Temp/floor-1/t7` is `floor-1/t7`,
  and an actor `AirFlow/room-3` is reached at `actors/AirFlow/room-3`;
- a name before the last has its `/` percent-encoded (`%2F`): the subscription `pass/frost` of
  `team/a` is at `results/team%2Fa/pass/frost`.

A reader decodes what can be decoded and takes the rest as it stands.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

NAMES_CACHED = 4_096  # names repeat: a broker has few actors and sources at a time

_ENCODED_LAST = re.compile("[%+#\x00-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")
_ENCODED = re.compile("[/%+#\x00-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")

ACTORS: Final = "actors"
EVENTS: Final = "events"
SOURCES: Final = "sources"
STATUS: Final = "status"
SUBMIT: Final = "submit"
CANCEL: Final = "cancel"
RESUME: Final = "resume"
PREVIEW: Final = "preview"
LIST: Final = "list"
REJECTED: Final = "rejected"

# Below these a client may publish; how many names follow.
NAMES_AFTER: Final = {EVENTS: 2, SOURCES: 1, SUBMIT: 2, PREVIEW: 2, CANCEL: 2, RESUME: 2, LIST: 2}


class Address(NamedTuple):
    """Hold what a topic that a client may publish to says: its kind and its names, decoded."""

    kind: str
    names: tuple[str, ...]


@lru_cache(maxsize=NAMES_CACHED)
def last(name: str) -> str:
    """A name as the end of a topic."""
    return _ENCODED_LAST.sub(_percent, name)


@lru_cache(maxsize=NAMES_CACHED)
def level(name: str) -> str:
    """A name as one level."""
    return _ENCODED.sub(_percent, name)


def name_of(text: str) -> str:
    """The name that stands in a topic so."""
    if "%" not in text:
        return text
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        return text


@lru_cache(maxsize=NAMES_CACHED)
def read(topic: str) -> Address | None:
    """Read what a topic below the prefix says; None if no client may publish to it."""
    kind, _, rest = topic.partition("/")
    count = NAMES_AFTER.get(kind)
    if count is None:
        return None
    levels = rest.split("/", count - 1)
    if len(levels) < count or "" in levels:
        return None
    return Address(kind, tuple(map(name_of, levels)))


def events(type_name: str, source: str) -> str:
    """Return the topic of a source's events of a type."""
    return f"{EVENTS}/{level(type_name)}/{last(source)}"


def result(subscriber: str, subscription: str) -> str:
    """Return the topic of a subscription's results."""
    return f"results/{level(subscriber)}/{last(subscription)}"


def is_of_suspended(topic: str) -> bool:
    """Tell whether a topic is one on which it is told that a subscription is suspended."""
    return topic.startswith("suspended/")


def suspended(subscriber: str, subscription: str) -> str:
    """The topic on which it is told that a subscription is suspended."""
    return f"suspended/{level(subscriber)}/{last(subscription)}"


def actor(name: str) -> str:
    """Return the topic at which an actor listens."""
    return f"{ACTORS}/{last(name)}"


def late(type_name: str) -> str:
    """Return the topic of events that came too late."""
    return f"late/{last(type_name)}"


def source(name: str) -> str:
    """Return the topic of a source's advertisement."""
    return f"{SOURCES}/{last(name)}"


def status(broker: str) -> str:
    """Return the topic of a broker's state."""
    return f"{STATUS}/{last(broker)}"


def reply(request: str) -> str:
    """Return the topic of the answer to a request for which no other topic was named.

    With the levels of the request's own topic, so that who wrote a name in another way than it is
    written here (`%20` for a blank) finds the answer under that.
    """
    return f"reply/{request.partition('/')[2]}"


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass"))
