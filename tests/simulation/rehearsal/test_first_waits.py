"""The first event of a source that was passed over waits for partners as any other does."""

from simulation.rehearsal.run import rehearse
from tests.simulation.rehearsal.small import FIRST_MS, material

SPEC = """
event Temp(val: float)
event Wind(val: float)

subscription Chill seq 1 from team to alarm
  detect Temp(val < 6) as t and Wind(val > 4) as w within 60 s
  assign t = t.val, w = w.val
"""
AT_ONE_END = {
    "sources": [{"source": "t1", "broker": "west"}, {"source": "w1", "broker": "west"}],
    "home": "east",
    "homes": {},
}
AT_BOTH_ENDS = {
    "sources": [
        {"source": "t1", "broker": "mid"},
        {"source": "t2", "broker": "west"},
        {"source": "w1", "broker": "west"},
    ],
    "home": "east",
    "homes": {},
}
IDLE_MS = 20_000
EACH_S = 200  # further apart than partners may be, and than what is idle is waited for
SPEAKS_S = 703  # when the other source has been advertised and silent for long


def reading(kind, source, at_s, val=5.0):
    at_ms = FIRST_MS + round(at_s * 1_000)
    return {
        "type": kind,
        "id": f"{source} {at_s}",
        "source": source,
        "timestamp": at_ms,
        "val": val,
    }


WINDS = [reading("Wind", "w1", at_s) for at_s in range(0, 1_000, EACH_S)]


def rehearsed(network, events):
    one = material(
        spec=SPEC,
        network=network,
        events=sorted(events, key=lambda each: each["timestamp"]),
        idle_ms=IDLE_MS,
    )
    outcome = rehearse(one)
    return len(outcome.detected), {link: each.events for link, each in outcome.links.items()}


def test_without_a_partner_it_travels_over_no_link():
    count, events = rehearsed(AT_ONE_END, [*WINDS, reading("Temp", "t1", SPEAKS_S)])
    assert count == 0
    assert not any(events.values())


def test_what_its_broker_has_just_said_makes_no_difference():
    """Times are promised now and then, and with the first event of a type in any case."""
    just_before = reading("Wind", "w1", SPEAKS_S - 0.01, 0.0)
    count, events = rehearsed(AT_ONE_END, [*WINDS, just_before, reading("Temp", "t1", SPEAKS_S)])
    assert count == 0
    assert not any(events.values())


def test_with_a_partner_both_travel():
    first, second = reading("Temp", "t1", SPEAKS_S), reading("Temp", "t1", 795)
    count, events = rehearsed(AT_ONE_END, [*WINDS, first, second])
    assert count == 1
    assert events["west", "mid"] == events["mid", "east"] == 2


def test_it_waits_on_its_way_too():
    """What leads to its broker without partners goes no further than where these are."""
    others = [reading("Temp", "t1", at_s, 9.0) for at_s in range(0, 1_000, EACH_S)]
    first = reading("Temp", "t2", SPEAKS_S)
    count, events = rehearsed(AT_BOTH_ENDS, [*WINDS, *others, first])
    assert count == 0
    assert events["mid", "east"] == 0
