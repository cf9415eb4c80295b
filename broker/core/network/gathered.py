"""What a header has of panes that are not complete: of whom, and whose events they are of.

Owns this memory and the finding of conflicts. Must not know windows or frames. Invariant: of a
pane that is complete no source has rows from two origins: the same event could be in both, and be
counted twice. Where one has, these origins send that source's pane again, as events; events fall by
id and end as they do where nothing is split.

An origin is *doubted* until it has done so, and its time stands still meanwhile; then it is *raw*,
which it stays until it has shared no source for `RAW_PANES` panes.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from broker.core.durable_events import packed, unpacked
from broker.core.repeats import Repeats
from broker.core.splitting import Sources

RAW_PANES = 8


class Held(Struct):
    """What came of an origin for a pane: the first of it behind a position."""

    after: int
    of_rows: set[bytes] = field(default_factory=set)
    of_events: set[bytes] = field(default_factory=set)


class Gathered:
    """See the module. A *maker* is an origin in one of its lives (`maker_of`)."""

    def __init__(self, events_max: int) -> None:
        self.doubted: dict[str, int] = {}  # by maker: the position to begin again behind
        self.raw: dict[str, int] = {}  # by maker: panes since it shared a source
        self.first_open: int | None = None  # all panes before are complete
        self._panes: dict[int, dict[str, Held]] = {}
        self._events_max = events_max
        self.repeats = Repeats(events_max)

    def sharing(self, maker: str, sources: Sources, *, raw: bool) -> list[str]:
        """Who has to send events and does not, as sources are shared with this one."""
        found: dict[str, None] = {}
        for pane, some in sources.items():
            for other, held in self._panes.get(pane, {}).items():
                if other == maker:
                    continue
                if not some.isdisjoint(held.of_rows):
                    found[other] = None
                    if not raw:
                        found[maker] = None
                elif not raw and not some.isdisjoint(held.of_events):
                    found[maker] = None
        return list(found)

    def take(self, maker: str, after: int, sources: Sources, *, raw: bool) -> None:
        """Something of an origin came, behind a position."""
        for pane, some in sources.items():
            if self.first_open is not None and pane < self.first_open:
                continue
            held = self._panes.setdefault(pane, {}).setdefault(maker, Held(after))
            (held.of_events if raw else held.of_rows).update(some)

    def doubt(self, maker: str, position: int) -> None:
        """Have an origin send again what is not complete, as events."""
        self.doubted[maker] = self.safe(maker, position)
        self.raw[maker] = 0

    def safe(self, maker: str, position: int) -> int:
        """Behind which position of an origin something may have to be asked for again."""
        held = [some[maker].after for some in self._panes.values() if maker in some]
        return min([position, *held, self.doubted.get(maker, position)])

    def drop(self, maker: str) -> None:
        """What came of it for panes that are not complete was taken back."""
        self.doubted.pop(maker, None)
        for pane, some in list(self._panes.items()):
            some.pop(maker, None)
            if not some:
                del self._panes[pane]

    def forget(self, maker: str) -> bool:
        """It will not send anything again; whether that was waited for."""
        self.raw.pop(maker, None)
        return self.doubted.pop(maker, None) is not None

    def complete(self, first_open: int) -> list[str]:
        """All panes before this one are complete; who need not send events any more."""
        if self.first_open is None or first_open > self.first_open:
            self.first_open = first_open
        for pane in sorted(pane for pane in self._panes if pane < first_open):
            some = self._panes.pop(pane)
            for maker, held in some.items():
                if maker in self.raw and maker not in self.doubted:
                    own = held.of_events | held.of_rows
                    others = [one for name, one in some.items() if name != maker]
                    shared = any(own & (one.of_rows | one.of_events) for one in others)
                    self.raw[maker] = 0 if shared else self.raw[maker] + 1
        calm = [maker for maker, count in self.raw.items() if count >= RAW_PANES]
        for maker in calm:
            del self.raw[maker]
        return calm

    def clear(self) -> None:
        """Nothing that came is in a window that is open."""
        self._panes.clear()

    def held(self) -> dict[str, int]:
        """By maker, behind which position it may be asked again."""
        makers = dict.fromkeys([name for some in self._panes.values() for name in some])
        return {name: self.safe(name, 2**62) for name in (*makers, *self.doubted)}

    def state(self) -> list[Any]:
        """Plain data."""
        panes = [
            [pane, name, held.after, sorted(held.of_rows), sorted(held.of_events)]
            for pane, some in self._panes.items()
            for name, held in some.items()
        ]
        return [self.doubted, self.raw, self.first_open, panes, packed(self.repeats.events())]

    def restore(self, state: list[Any]) -> None:
        """Take up such a state."""
        doubted, raw, self.first_open, panes, events = state
        self.doubted, self.raw = dict(doubted), dict(raw)
        self._panes = {}
        for pane, name, after, of_rows, of_events in panes:
            held = Held(after, set(of_rows), set(of_events))
            self._panes.setdefault(pane, {})[name] = held
        self.repeats = Repeats(self._events_max)
        self.repeats.restore(unpacked(events))


def maker_of(origin: str, life: int) -> str:
    """What an origin is called in one of its lives."""
    return f"{origin} {life}"


def origin_of(maker: str) -> tuple[str, int]:
    """(origin, life) of such a name."""
    origin, _, life = maker.rpartition(" ")
    return origin, int(life)
