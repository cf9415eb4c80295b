"""Counts of events by link and type, against a count of the events themselves."""

import random

import msgspec

from broker.engine.ingest.event_bytes import packed, unpacked
from broker.network.frames import frames
from broker.network.frames.told import Forwarded
from broker.network.neighbours.sessions import OTHERS, TYPES_MAX, LinkTraffic


def body(names):
    """A frame with an event of each of these types."""
    rows = [
        {"type": name, "id": f"e{number}", "timestamp": number, "val": 1.5}
        for number, name in enumerate(names)
    ]
    data = packed(unpacked(msgspec.msgpack.encode(rows)))
    return frames.Passed(Forwarded("b1", 1, 0, len(rows), list(range(len(rows))), data, {}), 1)


def test_events_by_type_add_up_to_those_of_the_frames():
    """Whatever their types, and however they are cut into frames."""
    rng = random.Random(5)
    traffic, expected, total = LinkTraffic(), {}, 0
    for _ in range(100):
        names = rng.choices(["Temp", "Hum", "Wind"], k=rng.randrange(5))
        traffic.count("sent", "b2", body(names))
        total += len(names)
        for name in names:
            expected[name] = expected.get(name, 0) + 1
    assert traffic.by_type("sent", "b2") == dict(sorted(expected.items()))
    assert traffic.totals("sent") == {"b2": total}
    assert traffic.totals("received") == {}


def test_frames_without_events_count_as_nothing():
    traffic = LinkTraffic()
    traffic.count("sent", "b2", frames.Here("b1", ("Temp",)))
    traffic.count("received", "b2", body([]))
    assert traffic.totals("sent") == traffic.totals("received") == {}


def test_a_body_that_cannot_be_read_is_left_to_whoever_handles_it():
    traffic = LinkTraffic()
    traffic.count("received", "b2", frames.Passed(Forwarded("b1", 1, 0, 1, [1], b"\xc1", {}), 1))
    assert traffic.totals("received") == {}


def test_a_neighbour_that_invents_types_takes_bounded_memory():
    """All that it sent is still counted."""
    traffic = LinkTraffic()
    for number in range(0, TYPES_MAX + 500, 100):
        traffic.count("received", "b2", body([f"T{number + i}" for i in range(100)]))
    counts = traffic.by_type("received", "b2")
    assert len(counts) == TYPES_MAX + 1
    assert counts[OTHERS] == 500
    assert traffic.totals("received") == {"b2": TYPES_MAX + 500}
