"""Clocks with a wait: what they pass over, what they still wait for, and that none goes back."""

from dataclasses import dataclass, field

import pytest

from broker.engine.clock_names import clock_name
from broker.network.replication.absence import AbsentOrigins, OriginAway, OriginBack
from broker.network.replication.absence_watch import AWAY_MS, AbsenceWatch
from broker.network.replication.waiting_clocks import WATERMARK_NONE, WaitingClocks

NAME = clock_name("Temp", 1_000)


@dataclass
class Clocks:
    """The promises of origins, of this broker's own sources, and the least of all of them."""

    promises: dict[str, int]
    own: int | None = None
    foremost: int = WATERMARK_NONE

    def watermark(self, _type_name, _now):
        return min([*self.promises.values(), *([] if self.own is None else [self.own])])

    foreseen = watermark

    def waited_for(self, _type_name):
        return [(promise, origin) for origin, promise in self.promises.items()]

    def would_promise(self, _type_name, _now):
        return self.own

    def foremost_clock(self, _now):
        return self.foremost


@pytest.fixture
def clocks():
    return Clocks({"hall": 100, "yard": 500})


def waiting(clocks):
    made = WaitingClocks(clocks, lateness_ms=0)
    made.absent.handle(OriginAway("hall", 0, 0))
    return made


def test_who_is_away_is_waited_for_until_the_wait_is_over_and_not_longer(clocks):
    made = waiting(clocks)
    assert made.watermark(NAME, 999) == 100
    assert made.watermark(NAME, 1_000) == 500
    assert clocks.watermark("Temp", 1_000) == 100


def test_where_all_others_are_away_the_sources_here_are_waited_for(clocks):
    clocks.promises, clocks.own, clocks.foremost = {"hall": 100}, 40, 900
    made = waiting(clocks)
    assert made.watermark(NAME, 5_000) == 40
    clocks.own = 300
    assert made.watermark(NAME, 5_000) == 300


def test_a_clock_that_passed_somebody_over_stays_where_it_is_when_he_comes_back(clocks):
    made = waiting(clocks)
    assert made.watermark(NAME, 2_000) == 500
    made.absent.handle(OriginBack("hall"))
    assert made.foreseen(NAME, 2_001) == 500
    assert made.watermark(NAME, 2_001) == 500
    clocks.promises = {"hall": 700, "yard": 800}
    assert made.foreseen(NAME, 2_002) == made.watermark(NAME, 2_002) == 700


# --- who counts as back ----------------------------------------------------------------------


@dataclass
class Needed:
    """What tasks need of an origin."""

    types: tuple[str, ...] = ("Temp",)


@dataclass
class Host:
    """One that needs events of the hall, and has no subscription of its own."""

    absent: AbsentOrigins
    upstream: dict[str, Needed] = field(default_factory=lambda: {"hall": Needed()})
    subscriptions: tuple[object, ...] = ()

    def tasks(self):
        return ()


@dataclass
class Open:
    """Questions to origins."""

    asked: tuple[str, ...]
    waits: dict[object, dict[str, int]] = field(default_factory=dict)


def test_an_origin_that_is_reached_again_is_back_when_it_has_answered():
    """Its events of the time between come with the answer."""
    absent = AbsentOrigins()
    watch, host = AbsenceWatch(absent, (), 0), Host(absent)
    watch.lose("hall", 0)
    (away,) = watch.handle(AWAY_MS, host, (), Open(("hall",)))
    absent.handle(away)
    assert watch.handle(AWAY_MS + 1, host, ("hall",), Open(("hall",))) == []
    assert watch.handle(AWAY_MS + 2, host, ("hall",), Open(())) == [OriginBack("hall")]
