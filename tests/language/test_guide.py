"""The guide of the language: every example in it does what it says beside it.

A block `headwater` is a whole text. A block `trace` behind it tells events and results: a line
`id Type time attribute = value, …` is an event, and a line `→ Subscription …` a result, in order,
with the ids of the events bound or, where there is a `=`, the values (and perhaps the certainty).
"""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from headwater import Engine
from language import functions, lexicon, limits
from language.lexicon import UNITS_MS
from language.messages import TABLE
from language.relations import CONTEXTS

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "language.md"
TEXT = GUIDE.read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(match[1], match[2], TEXT.count("\n", 0, match.start()) + 1)
          for match in FENCE.finditer(TEXT)]  # fmt: skip
TRACES = [
    pytest.param(BLOCKS[index - 1][1], block, id=f"line {line}")
    for index, (kind, block, line) in enumerate(BLOCKS)
    if kind == "trace"
]
EVENT = re.compile(r"(\S+) +(\w+) +([\d.]+ \w+(?:\.\.[\d.]+ \w+)?)(?: +(\S.*))?")
DAY_MS = UNITS_MS["day"]
DURATION = re.compile(r"([\d.]+) (\w+)")


def milliseconds(text):
    number, unit = DURATION.fullmatch(text).groups()
    return round(float(number) * UNITS_MS[unit])


def value_of(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def values_of(text):
    """`a = 1, b = [1, 2], c = word`."""
    pairs = re.findall(r"([\w.-]+) = (\[.*?\]|\{.*?\}|[^,]+)(?:, |$)", text)
    assert ", ".join(f"{name} = {value}" for name, value in pairs) == text
    return {name: value_of(value) for name, value in pairs}


def event_of(line):
    found = EVENT.fullmatch(line)
    assert found is not None, line
    name, kind, time, rest = found.groups()
    times = [milliseconds(part) for part in time.split("..")]
    made = {"type": kind, "id": name, "source": "s", "start": times[0], "end": times[-1]}
    return made | values_of(rest or "")


def told(result, *, by_values):
    if by_values:
        more = {"certainty": result["certainty"]} if "certainty" in by_values else {}
        return result["subscription"], result["values"] | more
    bound = [one for ids in result["events"].values() for one in ids]
    return result["subscription"], sorted(bound)


def expected(line):
    name, _, rest = line.removeprefix("→ ").partition(" ")
    return name, values_of(rest) if "=" in rest else sorted(rest.split())


@pytest.mark.parametrize(("specification", "trace"), TRACES)
def test_an_example_gives_the_results_that_it_says(specification, trace):
    lines = [line.split("#")[0].rstrip() for line in trace.splitlines()]
    events = [event_of(line) for line in lines if line and not line.startswith("→")]
    results = [expected(line) for line in lines if line.startswith("→")]
    engine = Engine(specification, lateness_ms=None, file=str(GUIDE))
    found = engine.push(events) + engine.finish()
    if lines[-1] == "→ nothing":
        assert found == []
        return
    by_values = [rest if isinstance(rest, dict) else None for _, rest in results]
    assert len(found) == len(results), found
    assert [told(one, by_values=way) for one, way in zip(found, by_values, strict=True)] == results


def test_nothing_that_the_language_has_is_refused_as_not_running_yet():
    assert [code for code in TABLE if code.startswith("HW9")] == []
    assert "pending" not in {kind for kind, _, _ in BLOCKS}


def test_there_are_traces_and_every_trace_has_its_text():
    kinds = [kind for kind, _, _ in BLOCKS]
    assert kinds.count("trace") >= 25
    for before, kind in pairwise(kinds):
        assert kind != "trace" or before == "headwater"


WORDS = sorted(
    (lexicon.KEYWORDS | lexicon.RESERVED)
    | {*CONTEXTS, *lexicon.ATTRIBUTE_TYPES, *lexicon.SHAPES, *lexicon.COMMON_ATTRIBUTES}
    | {"next", "one", "collect", "maybe", "max", "nearest", "srcid"}
)


@pytest.mark.parametrize("word", WORDS)
def test_every_word_of_the_language_is_told_of(word):
    code = " ".join(re.findall(r"^```.*?^```|`[^`\n]+`", TEXT, flags=re.MULTILINE | re.DOTALL))
    assert re.search(rf"\b{word}\b", code)


@pytest.mark.parametrize("name", [*functions.SCALARS, *functions.AGGREGATES])
def test_every_function_is_told_of_with_its_form(name):
    function = {**functions.SCALARS, **functions.AGGREGATES}[name]
    row = next(line for line in TEXT.splitlines() if line.startswith(f"| `{name}("))
    assert row.count("number") >= min(1, function.arguments.count("number"))
    assert function.meaning in row


def test_the_limits_are_those_of_the_reader():
    rows = TEXT[TEXT.index("\n## Limits\n") : len(TEXT)].splitlines()
    told = [int(one.replace(",", "")) for one in re.findall(r"\d[\d,]*", " ".join(rows))]
    years, days = limits.DURATION_MS_MAX / (365.25 * DAY_MS), limits.WINDOW_MS_MAX // DAY_MS
    assert told == [
        limits.TEXT_LENGTH_MAX,
        limits.ITEMS_MAX,
        limits.NESTING_MAX,
        limits.NAME_LENGTH_MAX,
        limits.STRING_LENGTH_MAX,
        limits.SET_MEMBERS_MAX,
        limits.LIST_LENGTH_MAX,
        years,
        days,
        limits.WINDOWS_AT_ONCE_MAX,
        limits.INTEGER_MAX.bit_length() + 1,
    ]


def test_every_link_within_the_guide_leads_somewhere():
    heads = re.findall(r"^#+ (.*)$", TEXT, flags=re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}
    assert set(re.findall(r"\]\(#([^)]*)\)", TEXT)) <= anchors
