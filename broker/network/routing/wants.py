"""The types that each host wants, as far as they have been told here.

Owns which types each host wants, and how it declares them. Must not know events, positions or
frames. Invariant: what stands here was said by the host behind all that it had said before; a word
that was overtaken by a later one changes nothing.

An origin asks all whom it can reach when a type is new there. A host that wanted the type before,
and cannot be reached at that moment, is known from here: what comes is kept for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Protocol, TypeAlias

from msgspec import Struct

Types: TypeAlias = dict[str, dict[str, str]]  # by name: its attributes, as they are declared


class HostWants(Struct, array_like=True, frozen=True, tag="wants"):
    """A host wants these types, wherever they are sent; none: nothing any more.

    `number` ascends with each word of the host.
    """

    outlasts: ClassVar[bool] = True

    host: str  # a broker, or a cell
    number: int
    types: Types  # what it asks for


class HostInterest(Protocol):
    """The types that a host has asked for; it has stored all up to `position`."""

    types: Types
    position: int


class Wants:
    """The wants of at most `hosts_max` hosts; of types that are not `sound`, nothing."""

    def __init__(
        self, hosts_max: int = 1_000, sound: Callable[[Types], bool] = lambda _: True
    ) -> None:
        self._by_host: dict[str, HostWants] = {}  # the last word of each
        self._hosts_max = hosts_max
        self._sound = sound

    def __contains__(self, host: str) -> bool:
        return host in self._by_host

    @property
    def hosts(self) -> Sequence[str]:
        """Return the hosts that want anything."""
        return tuple(self._by_host)

    def news(self, heard: Iterable[HostWants]) -> list[HostWants]:
        """Return those of the words that `handle` would change anything by."""
        return [word for word in heard if self._is_new(word)]

    def _is_new(self, word: HostWants) -> bool:
        before = self._by_host.get(word.host)
        if not self._sound(word.types):
            return False
        if before is None:
            return bool(word.types) and len(self._by_host) < self._hosts_max
        return word.number > before.number and word.types != before.types

    def handle(self, word: HostWants) -> None:
        """Take up what a host wants."""
        if not word.types:
            self._by_host.pop(word.host, None)
        else:
            self._by_host[word.host] = word

    def due(
        self, type_name: str, interests: Mapping[str, HostInterest]
    ) -> list[tuple[str, Types, int | None]]:
        """Return what is to be kept of a type that is new here: (host, types, since when).

        `interests` are those that hosts have asked for themselves; None: from now on.
        """
        words = []
        for host, word in self._by_host.items():
            interest = interests.get(host)
            before = {} if interest is None else interest.types
            if type_name in word.types and type_name not in before:
                types = {**before, type_name: word.types[type_name]}
                words.append((host, types, None if interest is None else interest.position))
        return words

    # --- snapshots -------------------------------------------------------------------------

    def state(self) -> list[list[object]]:
        """Return plain data."""
        return [[word.host, word.number, word.types] for word in self._by_host.values()]

    def restore(self, state: Iterable[tuple[str, int, Mapping[str, Mapping[str, str]]]]) -> None:
        """Take up such a state in the place of all that is here."""
        self._by_host = {
            host: HostWants(host, number, {name: dict(types[name]) for name in types})
            for host, number, types in state
        }
