"""After a change, a broker gives what one gives that had the new text from the beginning.

The oracle is a broker that never had another text. Both are told the same, one of them ends again
and again, and their results are compared from the change on.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from broker.core.messages import SpecificationSubmitted, Woken
from tests.broker.core.generated_runs import END_MS, ENDS_SHARE, WAKES_MAX, Case, Site, drawn
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE

SUBSCRIBED = re.compile(r"^subscription (\w+)(?: seq \d+)? from tester to out", re.MULTILINE)
DEFINED = re.compile(r"^define (\w+)\(([^)]*)\)", re.MULTILINE)
SEEDS = 2
SEEDS_LONG = 40


def _to_another_actor(text: str) -> str:
    return SUBSCRIBED.sub(r"subscription \1 seq 9 from tester to elsewhere", text)


def _assigned_otherwise(text: str) -> str:
    """Have subscriptions assign what they did not, and nothing where they did."""
    lines: list[str] = []
    own = False
    for line in _to_another_actor(text).splitlines():
        own = line.startswith("subscription") if not line.startswith(" ") else own
        if own and line.startswith("  assign"):
            lines.pop()
            continue
        lines.append(line)
        if own and line.startswith("  detect"):
            lines.append("  assign added = end")
    return "\n".join(lines) + "\n"


def _assigned_more(text: str) -> str:
    """Have definitions assign one attribute more."""
    text = DEFINED.sub(r"define \1(\2, added)", _to_another_actor(text))
    lines = []
    own = False
    for line in text.splitlines():
        own = line.startswith("define") if not line.startswith(" ") else own
        lines.append(line + ", added = 1" if own and line.startswith("  assign") else line)
    return "\n".join(lines) + "\n"


CHANGES = {
    "actor": _to_another_actor,
    "assign": _assigned_otherwise,
    "definition": _assigned_more,
}


class Changed:
    """Three brokers: one is changed, one as well and ends at times, one never had another text."""

    def __init__(self, case: Case, text: str) -> None:
        self._case = case
        self._text = text
        self._draw = random.Random(f"change of {case.name}")
        self.sites = [Site(case) for _ in range(3)]
        self.since = [0, 0, 0]  # how many results there were before the change
        self.answer: dict[str, Any] = {}

    def run(self) -> None:
        messages = self._case.messages
        # After all sources are there, and before the last of them goes.
        place = self._draw.randint(1, len(messages) - 1)
        for number, (now, message) in enumerate(messages):
            self._wait(now)
            if number == place:
                self._change(now)
            texts = [self._case.text, self._case.text, self._text]
            for site, text in zip(self.sites, texts, strict=True):
                mine = message if number else _submission(text)
                site.tell(mine, max(now, site.broker.now))
            self._end_one()
        self._wait(messages[-1][0] + END_MS)

    def _change(self, now: int) -> None:
        self.since = [len(site.results) for site in self.sites]
        for site in self.sites:
            site.tell(_submission(self._text), max(now, site.broker.now))
        self.answer = self.sites[0].said[-1]

    def _end_one(self) -> None:
        ended = self.sites[1]
        if self._draw.random() < 0.5:
            ended.save()
        if self._draw.random() < ENDS_SHARE:
            ended.end(self._draw)
            for site in (self.sites[0], self.sites[2]):
                site.pause()

    def _wait(self, until: int) -> None:
        for _ in range(WAKES_MAX):
            wakes = [site.broker.next_wake() for site in self.sites]
            due = min([until, *(wake for wake in wakes if wake is not None)])
            if due >= until:
                return
            for site in self.sites:
                site.tell(Woken(), max(due, site.broker.now))
        raise AssertionError(f"{self._case.name} is woken for nothing, without end")

    def results(self, number: int, *, bare: bool) -> list[Any]:
        rows = [json.loads(one.payload) for one in self.sites[number].results[self.since[number] :]]
        return [_bare(row) for row in rows] if bare else rows


def _submission(text: str) -> SpecificationSubmitted:
    return SpecificationSubmitted("tester", "1", text, "here", "token")


def _bare(row: dict[str, Any]) -> dict[str, Any]:
    """A result without what tells an event that was detected before from one detected now."""
    values = {
        name: {key: one for key, one in value.items() if key != "added"}
        if isinstance(value, dict)
        else value
        for name, value in row["values"].items()
    }
    return {**row, "id": "", "events": {}, "values": values}


def compare(seed: int, construct: str, context: Any, change: str) -> bool:
    """Run a case of a seed; return whether anything was kept and told of."""
    case = drawn(seed, construct, context)
    text = CHANGES[change](case.text)
    if case.changed or (change == "definition" and "define" not in text):
        return False
    changed = Changed(case, text)
    changed.run()
    if not changed.sites[2].said[0]["ok"]:
        return False
    assert changed.answer["ok"], changed.answer
    rows = changed.answer["changes"]
    if not all(row["goes_on"] for row in rows):
        return False
    bare = change == "definition"
    expected = changed.results(2, bare=bare)
    assert changed.results(0, bare=bare) == expected
    assert changed.results(1, bare=bare) == expected
    return bool(expected)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("construct", CONSTRUCTS_WHOLE)
def test_what_goes_on_gives_what_it_would_have_given_from_the_beginning(construct, change):
    for context in CONTEXTS_WHOLE:
        for seed in range(SEEDS):
            compare(seed, construct, context, change)
