"""Events of the repeat memory come back from a snapshot with all that they say."""

from broker.core.intake import Intake, to_mapping
from broker.engine.ingest.event_bytes import packed, said_again, unpacked, written_out
from language import EventType

READINGS = [
    {"type": "T", "id": "plain", "source": "s", "timestamp": 5, "val": 1.5},
    {"type": "T", "id": "lasting", "start": 1, "end": 9, "val": -0.0, "uncertainty": 7},
    {
        "type": "T",
        "id": "placed",
        "timestamp": 5,
        "location": "a/b",
        "position": [46.0, 7.0, 300.0],
    },
    {"type": "T", "id": "metric", "timestamp": 5, "position": {"x": 1.0, "y": 2.0}},
    {"type": "T", "id": "all", "timestamp": -5, "word": "ü", "n": 2**62, "flag": False, "a-b": 1},
    {"type": "T", "id": "bytes", "timestamp": 5, "picture": b"\x00\xff"},
    {"type": "U", "id": "other", "timestamp": 6},
]
TYPES = [
    EventType(
        "T",
        {
            "val": "float",
            "word": "text",
            "n": "int",
            "flag": "bool",
            "a-b": "int",
            "picture": "bytes",
        },
    ),
    EventType("U"),
]


def said(event):
    return (
        event.event_type, event.id, event.source, event.location, event.position, event.start,
        event.end, event.uncertainty, event.attribute_values(),
    )  # fmt: skip


def test_events_come_back_with_all_that_they_say():
    intake = Intake()
    intake.declare(TYPES)
    events = intake.from_mappings(READINGS).events
    assert len(events) == len(READINGS)
    again = unpacked(packed(events))
    assert [said(one) for one in again] == [said(one) for one in events]
    assert [to_mapping(one) for one in again] == [to_mapping(one) for one in events]
    assert written_out(again) == said_again(packed(again)) == written_out(unpacked(packed(again)))
    # Also those that came from a snapshot themselves, beside others.
    mixed = unpacked(packed([*again, *events]))
    assert [said(one) for one in mixed] == [said(one) for one in events] * 2
