"""Why intake is held: exactly while there is a reason, and told once."""

import pytest

from broker import logs
from broker.driver.promises import IntakeGate


@pytest.fixture
def gate(monkeypatch):
    lines = []
    monkeypatch.setattr(logs, "tell", lambda level, event, **fields: lines.append((event, fields)))
    calls = []
    one = IntakeGate(lambda: calls.append("hold"), lambda: calls.append("release"))
    one.calls, one.lines = calls, lines
    return one


def test_it_is_held_from_the_first_reason_to_the_last(gate):
    gate.open("disk")
    gate.shut("disk", "the disk is full")
    gate.shut("line")
    gate.shut("disk", "the disk is full")
    gate.open("disk")
    assert gate.calls == ["hold"]
    assert gate.is_shut
    gate.open("line")
    gate.open("line")
    assert gate.calls == ["hold", "release"]
    assert not gate.is_shut


def test_a_sentence_is_told_once_and_where_it_changes(gate):
    gate.put("disk", "full")
    gate.put("disk", "full")
    gate.shut("line")
    assert gate.reasons() == ["full"]
    gate.put("disk", "read-only")
    gate.put("disk", "")
    gate.put("disk", "")
    gate.open("line")
    assert [fields.get("reason") for _, fields in gate.lines] == ["full", "read-only", None]
    assert gate.reasons() == []
