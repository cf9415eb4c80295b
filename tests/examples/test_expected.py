"""The expectations themselves: how many results each subscription of the examples has.

The table, examples/expected.json, comes from the scripts beside this file, which share no code with
the product; the demonstration reads it too. A change of the data, of an example or of a script
shows here first.
"""

import gzip
import importlib.util
import json
from types import ModuleType

import pytest

from tests.examples import expected_small, expected_weather
from tests.examples.recordings import DATA, EXAMPLES, json_lines

COUNTS = json.loads((EXAMPLES / "expected.json").read_text())
COMPUTED = {"weather": expected_weather.expected, **expected_small.EXPECTED}


@pytest.mark.parametrize("example", COUNTS)
def test_the_scripts_give_the_table(example):
    found = COMPUTED[example]()
    assert {name: len(results) for name, results in found.items()} == COUNTS[example]


def test_the_readme_tells_the_totals():
    lines = (EXAMPLES / "README.md").read_text().splitlines()
    for example, counts in COUNTS.items():
        (row,) = [line for line in lines if line.startswith(f"| [{example}.hw]")]
        assert row.endswith(f"| {sum(counts.values())} |")


def test_the_data_readme_tells_the_rows():
    text = (DATA / "README.md").read_text()
    for path in sorted(DATA.glob("*.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            rows = sum(1 for _ in lines) - path.name.endswith(".csv.gz")
        assert f"| `{path.name}` | {rows:,} |" in text


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_synthetic_day_is_what_its_seed_draws(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "make_people", people := script("make_people"))
    _, events = people.day()
    assert events == json_lines("people.jsonl.gz")


def test_the_counted_people_are_those_who_passed(monkeypatch):
    """The synthetic day knows who passed: the pairs of beams must tell the same."""
    monkeypatch.setitem(__import__("sys").modules, "make_people", people := script("make_people"))
    passages, events = people.day()
    for door in people.ROOM_OF:
        seen = [event for event in events if event["source"] == door]
        for way, first, second in (("in", "outer", "inner"), ("out", "inner", "outer")):
            counted = [start for _, start, _ in expected_small.passages(seen, first, second)]
            assert sorted(counted) == [p.at_ms for p in passages if (p.door, p.way) == (door, way)]
        back = [r["start"] for r in expected_small.turned_back(door, seen)]
        assert back == [p.at_ms for p in passages if (p.door, p.way) == (door, "back")]
