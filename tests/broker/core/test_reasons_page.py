"""The page about MQTT tells of each reason for which an event is not taken what it means."""

import re
from pathlib import Path

from broker.engine.ingest.reasons import REASONS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "mqtt.md"


def test_every_reason_is_told_as_the_program_words_it():
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| (.+) \|$", PAGE.read_text("utf-8"), re.MULTILINE))
    assert {name: rows.get(name) for name in REASONS} == REASONS
