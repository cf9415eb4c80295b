"""Event types that several specifications declare, while events of earlier shapes are held."""

from __future__ import annotations

import gc
import json

import pytest

from broker.core.intake import ConflictError, Intake
from broker.engine.filter.filterer import Filterer
from broker.engine.limits import LimitReachedError, make_limits
from language.specification import EventType
from language.tree import Comparison, Constant, Name


def payload(type_name: str = "Temp", **fields: object) -> bytes:
    return json.dumps({"type": type_name, "id": "1", "timestamp": 5, **fields}).encode()


def test_two_declarations_of_one_type_give_it_the_attributes_of_both():
    intake = Intake()
    assert intake.declare(EventType("Temp", {"val": "float"}), "first")
    assert intake.declare(EventType("Temp", {"val": "float", "count": "int"}), "second")
    [event] = intake.decode(payload(val=1, count=2)).events
    assert (event.a_val, event.a_count) == (1.0, 2)
    assert event.attributes == ("val", "count")


def test_declaring_the_same_again_changes_nothing():
    intake = Intake()
    intake.declare(EventType("Temp", {"val": "float"}), "first")
    version = intake.registry.version
    assert not intake.declare(EventType("Temp", {"val": "float"}), "first")
    assert not intake.declare(EventType("Temp", {"val": "float"}), "second")
    assert intake.registry.version == version


def test_an_attribute_cannot_have_two_types():
    intake = Intake()
    intake.declare(EventType("Temp", {"val": "float"}), "meadow.hw")
    with pytest.raises(ConflictError, match=r"Temp.*val as int.*meadow\.hw declares it as float"):
        intake.declare([EventType("Hum", {}), EventType("Temp", {"val": "int"})], "wood.hw")
    assert list(intake.registry.entries) == ["Temp"]
    assert intake.decode(payload(val=1.5)).events[0].a_val == 1.5
    assert intake.decode(payload("Hum")).skipped == 1


def test_what_is_declared_of_durations_is_held_to_while_anybody_says_it():
    intake = Intake()
    lasting = payload(timestamp=None, start=6_000 - 1_001, end=6_000)
    just = payload(timestamp=None, start=6_000 - 1_000, end=6_000)
    intake.declare(EventType("Temp", {}), "silent")
    intake.declare(EventType("Temp", {}, lasts_ms=1_000), "first")
    intake.declare(EventType("Temp", {}, lasts_ms=1_000), "second")
    for owner in ("first", "second"):
        [rejected] = intake.decode(lasting).rejections
        assert rejected.reason == "duration_too_long"
        assert "1001 ms, declared as at most 1000" in str(rejected)
        assert len(intake.decode(just).events) == 1
        intake.release(owner)
    assert len(intake.decode(lasting).events) == 1


def test_what_is_declared_of_durations_outlives_a_new_attribute():
    intake = Intake()
    intake.declare(EventType("Temp", {}, lasts_ms=0), "first")
    intake.declare(EventType("Temp", {"val": "float"}), "second")
    lasting = payload(timestamp=None, start=6_000 - 1, end=6_000, val=1.5)
    assert [one.reason for one in intake.decode(lasting).rejections] == ["duration_too_long"]
    intake.release("second")
    assert len(intake.decode(lasting).rejections) == 1


def test_two_cannot_declare_different_durations():
    intake = Intake()
    intake.declare(EventType("Temp", {}, lasts_ms=3_600_000), "meadow.hw")
    with pytest.raises(ConflictError, match=r"Temp.*at most` 2 h.*meadow\.hw declares 1 h"):
        intake.declare(EventType("Temp", {}, lasts_ms=7_200_000), "wood.hw")
    intake.declare(EventType("Temp", {}, lasts_ms=7_200_000), "meadow.hw")  # its own


def test_an_owner_may_declare_otherwise_what_nobody_else_declares():
    intake = Intake()
    intake.declare(EventType("Temp", {"val": "float"}), "a")
    assert intake.declare(EventType("Temp", {"val": "int"}), "a")
    assert intake.decode(payload(val=1.5)).rejections[0].reason == "wrong_type"


def test_an_event_held_from_before_reads_a_new_attribute_as_null():
    intake = Intake()
    intake.declare(EventType("Temp", {"val": "float"}), "a")
    [old] = intake.decode(payload(val=1)).events
    intake.declare(EventType("Temp", {"val": "float", "count": "int"}), "b")
    [new] = intake.decode(payload(val=2, count=3)).events
    assert (old.a_val, old.a_count) == (1.0, None)
    filterer = Filterer()
    wanted = filterer.add("Temp", (Comparison((Name("count"), Constant(0)), (">",)),))
    assert filterer.route([old, new]) == [(wanted, [new])]
    for number in range(20):  # and so under an index
        filterer.add("Temp", (Comparison((Name("count"), Constant(number)), ("=",)),))
    assert filterer.route([old]) == []
    assert (wanted, [new]) in filterer.route([old, new])


def test_a_class_of_its_own_serves_each_door():
    """What one door adds to its classes does not show in another's."""
    one, two = Intake(), Intake()
    for intake in (one, two):
        intake.declare(EventType("Temp", {"val": "float"}), "a")
    [first] = one.decode(payload()).events
    one.declare(EventType("Temp", {"count": "int"}), "b")
    assert "a_count" in vars(type(first))
    assert "a_count" not in vars(type(two.decode(payload()).events[0]))


def test_what_is_released_is_undeclared_when_nobody_else_needs_it():
    intake = Intake()
    intake.declare(EventType("Temp", {"val": "float"}), "a")
    intake.declare([EventType("Temp", {"count": "int"}), EventType("Hum", {})], "b")
    assert intake.release("b")
    assert not intake.release("b")
    assert intake.decode(payload(count="x")).events[0].attributes == ("val",)
    assert intake.decode(payload("Hum")).skipped == 1
    intake.declare(EventType("Temp", {"count": "text"}), "c")  # no conflict with what is gone
    assert intake.decode(payload(count="x")).events[0].a_count == "x"
    intake.release("a")
    intake.release("c")
    assert intake.decode(payload()).skipped == 1


def test_declaring_and_releasing_does_not_pile_up():
    intake = Intake()
    for number in range(300):
        intake.declare(EventType(f"T{number}", {"x": "int"}), "client")
        intake.release("client")
    gc.collect()
    intake.declare(EventType("Temp", {}), "client")
    intake.release("client")
    assert len(intake.registry._classes) < 10
    assert intake.registry.entries == {}


def test_what_a_definition_makes_cannot_be_sent_from_outside():
    intake = Intake()
    intake.declare([EventType("Frost", {"x": "int"}, defined=True)], "a")
    assert intake.decode(payload("Frost", x=1)).skipped == 1


@pytest.mark.parametrize("name", ["id", "type", "timestamp", "position", "end"])
def test_a_reserved_key_is_no_attribute(name):
    with pytest.raises(ConflictError, match=name):
        Intake().declare(EventType("Temp", {name: "int"}))


def test_types_and_attributes_are_bounded():
    intake = Intake(limits=make_limits(types_max=2, attributes_max=3))
    intake.declare([EventType("A", {"x": "int", "y": "int"}), EventType("B", {})], "a")
    with pytest.raises(LimitReachedError, match="types_max"):
        intake.declare(EventType("C", {}), "b")
    with pytest.raises(LimitReachedError, match="attributes_max"):
        intake.declare(EventType("A", {"z": "int", "w": "int"}), "b")
    assert intake.registry.entries["A"].attributes == {"x": "int", "y": "int"}


def test_a_type_name_that_looks_like_ours_is_only_undeclared():
    """No text makes the decoder give out anything but events of declared types."""
    intake = Intake()
    intake.declare(EventType("Temp", {}))
    for name in ("\0", "", "Event", "_Nothing"):
        assert intake.decode(payload(name, impossible=1)).skipped == 1
