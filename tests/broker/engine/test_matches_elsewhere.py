"""A match of a definition as an event that comes from elsewhere: encoded, sent, decoded, admitted.

Owns that where a definition runs does not show downstream: an engine to which matches come as bytes
gives the same results as one in which the definition runs, byte for byte, each at the same step.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from headwater.engine import Extent
from language import check_text
from tests.broker.engine.elsewhere import DEFINING, Apart, said
from tests.oracles.draw import SeededDraw
from tests.oracles.generate import CONSTRUCTS_WHOLE, CONTEXTS_WHOLE, primitive_types, random_case
from tests.oracles.render import text_of
from tests.oracles.traces import trace
from tests.streams import batches, delayed

FAST, LONG = range(1), range(1, 7)


def compared(construct: str, context: Any, seed: int) -> tuple[int, int]:
    """(matches that came from elsewhere, results), where both engines gave the same."""
    spec, _ = random_case(seed, construct, context)
    checked = check_text(text_of(spec))
    if not checked.ok:
        return 0, 0
    name = f"elsewhere/{construct}/{context}/{seed}"
    draw = random.Random(name)
    specification = checked.demand()
    definitions = [key for key, task in specification.graph.tasks.items() if task.output]
    elsewhere = {key for key in definitions if seed % 2 == 0 or draw.random() < 0.6}
    lateness_ms = draw.choice((0, 1_000, 4_000))
    events = trace(SeededDraw(name), primitive_types(spec), CONSTRUCTS_WHOLE[construct].profile)
    extent = Extent()
    apart = Apart(specification, elsewhere, lateness_ms)
    extent.add(apart.intake.from_mappings(events).events)
    apart.foresee(extent)
    apart.part()
    found = 0
    for batch in batches(delayed(events, lateness_ms, draw), draw):
        admitted = apart.intake.admit(apart.intake.from_mappings(batch).events).events
        whole, rest = apart.push(list(admitted))
        assert said(rest) == said(whole), f"{name}\n{text_of(spec)}\n{events}"
        found += len(whole)
    apart.intake.finish()
    whole, rest = apart.push([])
    assert said(rest) == said(whole), f"{name} (end)\n{text_of(spec)}\n{events}"
    return sum(stand_in.came for _, stand_in, _ in apart.pairs), found + len(whole)


def agree(context: Any, seeds: range) -> None:
    counts = [compared(construct, context, seed) for construct in DEFINING for seed in seeds]
    assert sum(came for came, _ in counts) > len(DEFINING)
    assert sum(found for _, found in counts) > len(DEFINING)


@pytest.mark.parametrize("context", ["unrestricted", "first"])
def test_where_a_definition_runs_does_not_show_downstream(context):
    agree(context, FAST)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("context", CONTEXTS_WHOLE)
def test_in_many_texts_where_a_definition_runs_does_not_show_downstream(context):
    agree(context, LONG)
