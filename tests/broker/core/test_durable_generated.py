"""Whatever is detected, a broker that ends again and again gives what one gives that goes on."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import headwater
from broker.core.effects import Emission
from language import check_text
from tests.broker.core.generated_runs import WINDOWS_CHOSEN, Case, Pair, Site, drawn
from tests.oracles import spec as s
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE

CONSTRUCTS = [*CONSTRUCTS_WHOLE, WINDOWS_CHOSEN]
WHOLE_MS = 2**45
SEEDS_LONG = 25
TIMED = re.compile(r"\b(start|end) = ")  # what is assigned may last for a week


def compare(case: Case) -> Counter[str]:
    """Run it with ends and without; what could be compared."""
    pair = Pair(case)
    whole, ended = pair.whole, pair.ended
    pair.run()
    if not whole.said[0]["ok"]:
        assert not _checked(case).ok, whole.said[0]
        return Counter(refused=1)
    assert ended.results == whole.results
    assert ended.said == whole.said
    assert _plain(ended) == _plain(whole)
    replayed = _comparable(case, whole)
    if replayed is not None:
        assert _bare(whole.results) == replayed
    return Counter(
        runs=1,
        results=bool(whole.results),
        ends=pair.ends,
        results_again=ended.repeated,
        replays=replayed is not None,
        replays_with_results=bool(replayed),
    )


def _checked(case: Case) -> Any:
    return check_text(case.text, functions=case.functions, tables=case.options.tables.get)


def _plain(site: Site) -> Any:
    found = msgspec.msgpack.decode(site.broker.snapshot())
    del found["state"]["tasks"]  # stores may forget later, and be in another order
    del found["number"], found["state"]["ledger"]["notes"]
    del found["state"]["intake"]["repeats"]  # some are kept longer than they are needed
    return found


def _bare(results: list[Emission]) -> list[str]:
    found = [json.loads(one.payload) for one in results]
    for one in found:
        del one["detected_at"]
    return sorted(json.dumps(one, sort_keys=True) for one in found)


def _comparable(case: Case, site: Site) -> list[str] | None:
    """The results of an engine that has all events at once, where the settings allow that.

    Silence is counted from when a broker began, but from the first event of a recording. What only
    the end of all time decides is in neither.
    """
    lasting = any("start" in one for one in case.events) or TIMED.search(case.text)
    if case.changed or site.late or lasting or {"absent", "for"} & set(case.text.split()):
        return None
    engine = headwater.Engine(
        case.text,
        lateness_ms=WHOLE_MS,
        drift=case.options.drift_ppm / 1_000_000,
        functions=case.functions,
        tables=case.options.tables,
    )
    found = engine.push(case.events) + engine.advance(WHOLE_MS)
    return sorted(json.dumps(one, sort_keys=True) for one in found)


def test_neither_a_snapshot_nor_a_look_at_what_is_held_decides_what_is_found() -> None:
    """How long events last is learnt from those that came: what waits must not be asked early."""
    text = (
        "event A() event B() event D() subscription S from x to y\n"
        "detect[first] A as x then B parallel D"
    )
    found = []
    for asks in (False, True):
        engine = headwater.Engine(text, lateness_ms=WHOLE_MS)
        engine.push([_lasting("A", 0, 1_000), _lasting("B", 2_000, 6_000)])
        for watermark_ms in (1_000, 6_000):
            engine.advance(watermark_ms)
        if asks:
            engine.counts  # noqa: B018  # the look
            state = engine.state()
            engine = headwater.Engine(text, lateness_ms=WHOLE_MS)
            engine.restore(state)
        found.append(engine.push([_lasting("D", 5_000, 7_000)]) + engine.advance(WHOLE_MS))
    assert len(found[0]) == 1
    assert found[0] == found[1]


def _lasting(kind: str, start: int, end: int) -> dict[str, Any]:
    return {"type": kind, "id": f"{kind}{end}", "start": start, "end": end}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("context", CONTEXTS_WHOLE)
def test_an_end_shows_in_nothing(context: s.Context) -> None:
    counts: Counter[str] = Counter()
    for number, construct in enumerate(CONSTRUCTS):
        if construct == WINDOWS_CHOSEN or CONTEXTS_WHOLE[number % len(CONTEXTS_WHOLE)] == context:
            counts += compare(drawn(0, construct, context))
    assert counts["results"] > counts["runs"] / 4
    assert counts["ends"] > counts["runs"]


@pytest.mark.long
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("context", CONTEXTS_WHOLE)
@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_an_end_shows_in_nothing_in_many_more_runs(
    construct: str, context: s.Context, record_property: Callable[[str, object], None]
) -> None:
    counts: Counter[str] = Counter()
    for seed in range(1, SEEDS_LONG):
        counts += compare(drawn(seed, construct, context))
    what = "runs of a broker that ends again and again"
    record_property("generated", [what, construct, context, counts["runs"], counts["results"]])
