"""A generated case on one broker and on six: what travels, and what comes of that.

Owns how a case is run over all of its events and over those that its operators let travel. Must not
know which operators are right.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from broker.core.intake import IntakeOptions
from broker.engine.event.event import in_order
from broker.network.operators.conditions import compile_condition
from broker.network.operators.derivation import operators_of
from broker.network.operators.times import Times
from broker.network.routing.advertisement.operator import Operator
from headwater.engine import Extent, Pipeline
from headwater.replays.release import Release
from language import Specification, check_text
from tests.oracles import spec as s
from tests.oracles.draw import SeededDraw
from tests.oracles.generate import CONSTRUCTS_WHOLE, primitive_types, random_case
from tests.oracles.recipes_values import files_of
from tests.oracles.render import text_of
from tests.oracles.traces import TYPES, Profile, trace
from tests.oracles.travelling import Identity, identity, travelling

BROKERS = 6
Making = Callable[[Specification, str, Times], tuple[Operator, ...]]


def operators_for(specification: Specification, root: str, times: Times) -> tuple[Operator, ...]:
    """What the product makes of a subscription."""
    return operators_of(specification.graph, root, times)


@dataclass
class World:
    """A checked specification, its events, and its results over all of them."""

    specification: Specification
    events: list[Any]
    extent: Extent
    drift: float

    @staticmethod
    def of(spec: s.Spec, events: Iterable[dict[str, Any]], drift: float = 0.0) -> World | None:
        """None where the specification is refused."""
        tables = dict(files_of(spec))
        checked = check_text(text_of(spec), tables=tables.__getitem__)
        if checked.specification is None:
            return None
        return World.over(checked.specification, events, drift)

    @staticmethod
    def over(
        specification: Specification, events: Iterable[dict[str, Any]], drift: float = 0.0
    ) -> World:
        """Of a specification that was checked."""
        intake = Pipeline(specification, IntakeOptions()).intake
        decoded = intake.from_mappings(list(events)).events
        extent = Extent()
        extent.add(decoded)
        return World(specification, decoded, extent, drift)

    @property
    def times(self) -> Times:
        """What is known of times: no more than these events need."""
        return Times(
            uncertainty_ms_max=self.extent.uncertainty_ms,
            drift=Fraction(str(self.drift)),
            duration_ms_max=max(self.extent.longest_ms.values(), default=0),
        )

    def results(self, wanted: Collection[Identity] | None = None) -> list[dict[str, Any]]:
        """The results of one engine fed with some of the events, or with all; told is of all how
        long they last and when the first begins, which no home learns from events either.
        """
        pipeline = Pipeline(self.specification, IntakeOptions(), self.drift)
        pipeline.foresee(self.extent)
        some = [one for one in self.events if wanted is None or identity(one) in wanted]
        release = Release()
        release.add(pipeline.admit(in_order(some)))
        release.add(pipeline.finish())
        return [one.to_dict() for one in release.rest()]

    def operators(self, making: Making = operators_for) -> list[Operator]:
        """The operators of all subscriptions."""
        found: dict[str, Operator] = {}
        for root in self.specification.graph.roots:
            found |= {one.id: one for one in making(self.specification, root, self.times)}
        return list(found.values())

    def travelling(self, operators: Iterable[Operator]) -> set[Identity]:
        """All that some operator lets travel."""
        found: set[Identity] = set()
        for operator in operators:
            found |= travelling(operator, self.events, compile_condition)
        return found

    def at_home(self, draw: random.Random) -> set[Identity]:
        """Of events spread over six brokers those that came to the home itself."""
        return {identity(one) for one in self.events if draw.randrange(BROKERS) == 0}


# --- cases ----------------------------------------------------------------------------------------

SPARSER = 3  # a trace over so much more time, so that events lie alone
CLOSED_MS = (1_000, 2_000, 3_000, 5_000, 8_000)


def drawn(seed: int, construct: str, context: s.Context) -> World | None:
    """A case of the generators, as it is or with every pattern closed by `within` and a sparser
    trace: what is bounded by nothing never travels correlated.
    """
    spec, events = random_case(seed, construct, context)
    name = f"{construct}/{context}/{seed}"
    draw = SeededDraw(name)
    if draw.chance(60):
        spec = closed(spec, draw.pick(CLOSED_MS))
        profile = CONSTRUCTS_WHOLE[construct].profile
        sparse = replace(profile, span_s=profile.span_s * draw.integer(1, SPARSER))
        events = trace(SeededDraw(name), primitive_types(spec), sparse)
    return World.of(spec, *_doubted(draw, events))


DECLARED = "".join(
    f"event {one.name}({', '.join(f'{name}: {kind}' for name, kind in one.attributes)})\n"
    for one in TYPES
)


def written(seed: int, detect: str) -> World:
    """A `detect` that was written by hand, over a generated trace of the types A to D."""
    draw = SeededDraw(f"{detect}/{seed}")
    text = f"{DECLARED}subscription S seq 1 from me to you detect{detect}"
    profile = Profile(9, 16, span_s=draw.integer(6, 16), durative=draw.pick((0, 20)), null=4)
    profile = replace(profile, positions=draw.pick(("plane", "plane", "mixed")))
    named = tuple(one.name for one in TYPES if re.search(rf"\b{one.name}\b", detect))
    events = trace(draw, named, profile)
    return World.over(check_text(text).demand(), *_doubted(draw, events))


def _doubted(draw: SeededDraw, events: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], float]:
    """The events, at times with uncertain times, and the drift of their clocks."""
    if draw.chance(25):
        for event in events:
            event["uncertainty"] = draw.pick((0, 0, 500, 1_000))
    uncertain = any(event.get("uncertainty") for event in events)
    return _alike(events), draw.pick((0.0, 0.1, 0.25)) if uncertain else 0.0


def _alike(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Repeats say the same as what they repeat."""
    first: dict[Any, dict[str, Any]] = {}
    for event in events:
        first.setdefault((event["id"], event.get("end", event.get("timestamp"))), event)
    return [
        event | {"uncertainty": first[key].get("uncertainty", 0)}
        for event in events
        for key in [(event["id"], event.get("end", event.get("timestamp")))]
    ]


def closed(spec: s.Spec, within_ms: int) -> s.Spec:
    """The same with `within` around every pattern that is no window's."""
    definitions = tuple(
        one
        if one.window is not None
        else replace(one, cases=tuple(_closed(case, within_ms) for case in one.cases))
        for one in spec.definitions
    )
    subscriptions = tuple(
        replace(one, case=_closed(one.case, within_ms)) for one in spec.subscriptions
    )
    return replace(spec, definitions=definitions, subscriptions=subscriptions)


def _closed(case: s.Case, within_ms: int) -> s.Case:
    return replace(case, pattern=s.Suffixed(case.pattern, (s.Within(within_ms),)))
