"""When a broker looks whether time alone lets it promise something."""

from itertools import pairwise

from broker.core.network.event_relay import TICK_MS, TICK_MS_MAX, Tick


def test_nothing_is_due_that_was_never_asked_for():
    assert not Tick().is_due(10**12)


def test_the_earliest_of_several_times_counts():
    tick = Tick()
    for time in (700, 300, 500):
        tick.by(time)
    assert [time for time in range(0, 400, 50) if tick.is_due(time)] == [300]


def test_while_nothing_happens_it_is_looked_ever_more_rarely_up_to_a_limit():
    tick = Tick()
    tick.by(0)
    times = []
    for _ in range(8):
        times.append(tick.due_at)
        assert tick.is_due(tick.due_at)
    gaps = [later - before for before, later in pairwise(times)]
    assert gaps[0] == TICK_MS
    assert gaps == [min(TICK_MS * 2**number, TICK_MS_MAX) for number in range(len(gaps))]


def test_what_is_asked_for_sooner_does_not_make_later_looks_rarer():
    tick = Tick()
    tick.by(10_000)
    tick.by(100)
    assert tick.is_due(100)
    assert tick.due_at == 100 + TICK_MS
