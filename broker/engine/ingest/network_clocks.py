"""The clocks of a broker that hears of events at other brokers, too.

Owns what other origins promise, and what is promised to others. Must not know links. Invariant: no
watermark that was given out goes back, and what is promised to others rests on this broker's own
sources alone, so that no two brokers wait for each other.

The watermark of a type is the least of the sources here and of every origin that says something of
the type. An origin that has gone silent is waited for without end.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.ingest.source_clocks import SourceClocks, Split

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.engine.event.event import Event

_end = attrgetter("end")


# `_afar`, `_passed`, `_promised`: what others said, what tasks here have been
# told, and what others were told. A broker that promised on by what it hears would wait for itself
# around a circle of two.
# `promise_of`: a far source may be the foremost of all: types without a source follow it, as
# otherwise a broker without sensors would stand still.
# `behind`: lateness is judged at the origin alone; here only what a task has already been told
# counts, so that the same event is not late at one broker and on time at another by the clocks of
# each.
# `watermark`: no idle timeout for a far origin: while its link is cut its events are kept there and
# come later; passing over them would lose results.
# `_wake`: waking up by the clock of the wall would find the same.
# `restore`: a broker that stood alone and gets its first link has no such part; all it gave out it
# gave to its own tasks.
class NetworkClocks(SourceClocks):
    """Keep the clocks of own sources together with what other origins promise."""

    def __init__(
        self, lateness_ms: int, idle_timeout_ms: int | None, *, sources_max: int = 100_000
    ) -> None:
        super().__init__(lateness_ms, idle_timeout_ms, sources_max=sources_max)
        self._afar: dict[str, dict[str, int]] = {}  # by type: origin → what it promises
        self._passed: dict[str, int] = {}  # what was given out to tasks here, by type
        self._promised: dict[str, int] = {}  # what was promised to others, by type

    # --- other origins ---------------------------------------------------------------------

    def promise_of(self, origin: str, watermarks: Mapping[str, int | None], now: int) -> None:
        """Record what an origin states about types; None: nothing any more."""
        for name, watermark in watermarks.items():
            if watermark is None:
                known = self._afar.get(name, {})
                known.pop(origin, None)
                if not known:
                    self._afar.pop(name, None)
                continue
            self._afar.setdefault(name, {})[origin] = watermark
            self._asked.pop(name, None)
            if watermark > WATERMARK_NONE:
                reached = watermark + self._lateness_ms + 1
                if reached >= self._foremost:
                    self._foremost, self._foremost_at = reached, now

    def forget_origin(self, origin: str) -> None:
        """Wait for it no more."""
        for name in [name for name, known in self._afar.items() if origin in known]:
            del self._afar[name][origin]
            if not self._afar[name]:
                del self._afar[name]

    def behind(self, events: list[Event], now: int) -> Split:
        """Events that another broker judged: late are those that a task here has left behind.

        The others show how far the foremost source has come: all that is promised of a type may be
        that it has ended, and types without a source go on from there.
        """
        passed = self._passed
        late = [one for one in events if one.end <= passed.get(one.event_type, WATERMARK_NONE)]
        if late:
            gone = set(map(id, late))
            events = [one for one in events if id(one) not in gone]
        newest = max(map(_end, events), default=WATERMARK_NONE)
        if newest > WATERMARK_NONE and newest >= self._foremost:
            self._foremost, self._foremost_at = newest, now
        return Split(events, late, [])

    def hindmost(self, type_name: str, now: int) -> str:
        """Return the source or broker whose clock holds a type's watermark, for people, if any."""
        least, afar = self._least(type_name, now), self.waited_for(type_name)
        if afar and (least is None or afar[0][0] < least[0] - self._lateness_ms - 1):
            return f"broker {afar[0][1]}"
        return super().hindmost(type_name, now)

    def passed(self, type_name: str) -> int:
        """Events of the type that end at or before this are late, whoever judged them."""
        return self._passed.get(type_name, WATERMARK_NONE)

    def waited_for(self, type_name: str) -> list[tuple[int, str]]:
        """The origins that say something of the type, the hindmost first."""
        known = self._afar.get(type_name, {})
        return sorted((watermark, origin) for origin, watermark in known.items())

    def hears(self, type_name: str, origin: str) -> bool:
        """Tell whether the origin states anything about the type."""
        return origin in self._afar.get(type_name, ())

    def types_of(self, origin: str) -> set[str]:
        """The types of which an origin says something."""
        return {name for name, known in self._afar.items() if origin in known}

    def sending(self) -> list[tuple[str, str]]:
        """(source, type) of all sources here."""
        return [(one.name, name) for one in self._sources.values() for name in one.types if name]

    # --- what others may rely on -----------------------------------------------------------

    def promised(self, type_name: str, now: int) -> int | None:
        """No event of the type that is let in here from now on ends at or before this.

        None: there is no source of it here that would have to be waited for.
        """
        reached = self.would_promise(type_name, now)
        if reached is not None:
            self._promised[type_name] = reached
            self.give(type_name, reached)
        return reached

    def give(self, type_name: str, reached: int) -> None:
        """Let in no event of the type any more that ends at or before this."""
        self._given[type_name] = max(reached, self._given.get(type_name, WATERMARK_NONE))

    def would_promise(self, type_name: str, now: int) -> int | None:
        """The same; asking changes nothing."""
        least = self._least(type_name, now)
        if least is None:
            return None
        reached = least[0] - self._lateness_ms - 1 if least[0] > WATERMARK_NONE else least[0]
        return max(reached, self._promised.get(type_name, WATERMARK_NONE))

    def promised_last(self, type_name: str) -> int:
        """Return what was promised of the type last, which holds for ever."""
        return self._promised.get(type_name, WATERMARK_NONE)

    # --- watermarks ------------------------------------------------------------------------

    def watermark(self, type_name: str, now: int = 0) -> int:
        """Return a type's watermark, given what other origins promise; it is then given out."""
        afar = self._afar.get(type_name)
        if not afar or self._finished:
            reached = super().watermark(type_name, now)
        else:
            reached = min(afar.values())
            least = self._least(type_name, now)
            if least is not None:
                reached = min(reached, least[0] - self._lateness_ms - 1)
        passed = self._passed.get(type_name, WATERMARK_NONE)
        if reached <= passed:
            return passed
        self._passed[type_name] = reached
        self.give(type_name, reached)
        return reached

    def foreseen(self, type_name: str, now: int = 0) -> int:
        """Return the watermark that would be given out; asking changes nothing."""
        passed = self._passed.get(type_name)
        reached = super().foreseen(type_name, now)
        if passed is None:
            self._passed.pop(type_name, None)
        else:
            self._passed[type_name] = passed
        return reached

    def floor(self, now: int) -> int:
        """Return the instant up to which no event of any source or origin can be on time now."""
        promised = [one for known in self._afar.values() for one in known.values()]
        heard = [one for one in promised if one > WATERMARK_NONE]
        if not self._sources or self._finished:
            return min(heard, default=super().floor(now))
        return min([super().floor(now), *heard])

    def _wake(self, type_name: str, target: int, now: int) -> int | None:
        afar = self._afar.get(type_name)
        if afar:
            if min(afar.values()) < target:
                return None  # its origin will tell
            if self._least(type_name, now) is None:
                return now
        return super()._wake(type_name, target, now)

    # --- snapshots -------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Plain data."""
        said = {"afar": self._afar, "passed": self._passed, "promised": self._promised}
        return {**super().state(), "network": said}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up such a state, in the place of all that is here."""
        super().restore(state)
        said = state.get("network")
        if said is None:  # it was not one of several before
            self._passed = dict(self._given)
            return
        self._afar = {name: dict(known) for name, known in said["afar"].items()}
        self._passed, self._promised = dict(said["passed"]), dict(said["promised"])
