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

from broker.engine.ingest.event_bytes import packed, unpacked
from broker.engine.ingest.repeats import Repeats
from broker.engine.window.splitting import Sources

RAW_PANES = 8
SOURCES_MAX = 1_000_000  # digests in panes that are not complete: some 100 MB


class Held(Struct):
    """Hold what came of a maker for a pane: the first of it behind a position, and whose events.

    `unknown`: too much would have to be remembered; then it may be anybody's.
    """

    after: int
    of_rows: set[bytes] = field(default_factory=set)  # digests of sources
    of_events: set[bytes] = field(default_factory=set)  # likewise, of what came raw
    unknown: bool = False
    rows: bool = False  # whether there are any

    @property
    def flags(self) -> tuple[bool, bool]:
        """Return what else there is to say of it."""
        return self.unknown, self.rows


class Gathered:
    """Keep what a header has of incomplete panes: of whom, and whose events they are of.

    A *maker* is an origin in one of its lives (`maker_of`).
    """

    def __init__(self, events_max: int, sources_max: int = SOURCES_MAX) -> None:
        self.began = False
        self.doubted: dict[str, int] = {}  # by maker: the position to begin again behind
        self.raw: dict[str, int] = {}  # by maker: panes since it shared a source
        self.first_open: int | None = None  # all panes before are complete
        self._panes: dict[int, dict[str, Held]] = {}  # by pane, maker
        self._count = 0  # digests that are remembered
        self._sources_max = sources_max
        self._events_max = events_max
        self.repeats = Repeats(events_max)

    def sharing(self, maker: str, sources: Sources, *, raw: bool) -> list[str]:
        """Return who has to send events and does not, as sources are shared with this one."""
        found: dict[str, None] = {}
        for pane, some in sources.items():
            for other, held in self._panes.get(pane, {}).items():
                if other == maker:
                    continue
                if held.rows and (held.unknown or not some.isdisjoint(held.of_rows)):
                    found[other] = None
                elif raw or not (held.unknown or not some.isdisjoint(held.of_events)):
                    continue
                if not raw:
                    found[maker] = None
        return list(found)

    def take(self, maker: str, after: int, sources: Sources, *, raw: bool) -> None:
        """Something of an origin came, behind a position."""
        self.began = True
        for pane, some in sources.items():
            if self.first_open is not None and pane < self.first_open:
                continue
            held = self._panes.setdefault(pane, {}).setdefault(maker, Held(after))
            held.rows = held.rows or not raw
            known = held.of_events if raw else held.of_rows
            before = len(known)
            known.update(some)
            self._count += len(known) - before
        if self._count > self._sources_max:
            for makers in self._panes.values():
                for held in makers.values():
                    held.unknown, held.of_rows, held.of_events = True, set(), set()
            self._count = 0

    def doubt(self, maker: str, position: int) -> None:
        """Have an origin send again what is not complete, as events."""
        self.doubted[maker] = self.safe(maker, position)
        self.raw[maker] = 0

    def safe(self, maker: str, position: int) -> int:
        """Behind which position of an origin something may have to be asked for again."""
        held = [some[maker].after for some in self._panes.values() if maker in some]
        return min([position, *held, self.doubted.get(maker, position)])

    def drop(self, maker: str) -> None:
        """Take back what came of it for panes that are not complete."""
        self.doubted.pop(maker, None)
        for pane, some in list(self._panes.items()):
            some.pop(maker, None)
            if not some:
                del self._panes[pane]
        self._recount()

    def forget(self, maker: str) -> bool:
        """It will not send anything again; whether that was waited for."""
        self.raw.pop(maker, None)
        return self.doubted.pop(maker, None) is not None

    def rename(self, maker: str, name: str) -> None:
        """It lives on under this name: what came of it can be asked for again."""
        memories: list[dict[str, Any]] = [self.doubted, self.raw, *self._panes.values()]
        for memory in memories:
            if maker in memory:
                memory[name] = memory.pop(maker)

    def complete(self, first_open: int) -> list[str]:
        """All panes before this one are complete; who need not send events any more."""
        if self.first_open is None or first_open > self.first_open:
            self.first_open = first_open
        over = sorted(pane for pane in self._panes if pane < first_open)
        for pane in over:
            some = self._panes.pop(pane)
            for maker, held in some.items():
                if maker in self.raw and maker not in self.doubted:
                    own = held.of_events | held.of_rows
                    others = [one for name, one in some.items() if name != maker]
                    shared = any(own & (one.of_rows | one.of_events) for one in others)
                    self.raw[maker] = 0 if shared else self.raw[maker] + 1
        if over:
            self._recount()
        calm = [maker for maker, count in self.raw.items() if count >= RAW_PANES]
        for maker in calm:
            del self.raw[maker]
        return calm

    def clear(self) -> None:
        """Nothing that came is in a window that is open."""
        self._panes.clear()
        self._count = 0

    def _recount(self) -> None:
        held = [one for some in self._panes.values() for one in some.values()]
        self._count = sum(len(one.of_rows) + len(one.of_events) for one in held)

    def held(self) -> dict[str, int]:
        """By maker, behind which position it may be asked again."""
        makers = dict.fromkeys([name for some in self._panes.values() for name in some])
        return {name: self.safe(name, 2**62) for name in (*makers, *self.doubted)}

    def state(self) -> list[Any]:
        """Plain data."""
        panes = [
            [pane, name, held.after, sorted(held.of_rows), sorted(held.of_events), *held.flags]
            for pane, some in self._panes.items()
            for name, held in some.items()
        ]
        return [self.doubted, self.raw, self.first_open, panes, packed(self.repeats.events())]

    def restore(self, state: list[Any]) -> None:
        """Take up such a state."""
        doubted, raw, self.first_open, panes, events = state
        self.began = True
        self.doubted, self.raw = dict(doubted), dict(raw)
        self._panes = {}
        for pane, name, after, of_rows, of_events, *flags in panes:
            held = Held(after, set(of_rows), set(of_events), *flags)
            self._panes.setdefault(pane, {})[name] = held
        self._recount()
        self.repeats = Repeats(self._events_max)
        self.repeats.restore(unpacked(events))


def maker_of(origin: str, life: int) -> str:
    """Name an origin in one of its lives."""
    return f"{origin} {life}"


def origin_of(maker: str) -> tuple[str, int]:
    """(origin, life) of such a name."""
    origin, _, life = maker.rpartition(" ")
    return origin, int(life)
