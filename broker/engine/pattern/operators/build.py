"""From a layout to stages: everything compiled once, made anew for each partition.

Owns the choice of a stage for each operand. Must not know agents or events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker.engine.event.occurrence import Occurrence, events_of, flat
from broker.engine.pattern.layout.operands import (
    Count,
    Distinct,
    Gathered,
    Joint,
    Kth,
    Leaf,
    Member,
    Negation,
    Operand,
    Padded,
    Run,
    Silence,
    composite,
    least,
    run_of,
    types_of,
)
from broker.engine.pattern.layout.pattern import Layout
from broker.engine.pattern.operators.chronicle import ChronicleStage
from broker.engine.pattern.operators.course import CoursePlan, CourseStage
from broker.engine.pattern.operators.gathered import (
    GatheredPlan,
    GatheredStage,
    ListPlan,
    PaddedStage,
)
from broker.engine.pattern.operators.join import JoinWriter
from broker.engine.pattern.operators.joint import JointPlan, JointStage
from broker.engine.pattern.operators.negation import NegationPlan, NegationStage
from broker.engine.pattern.operators.pick import DistinctStage, KthStage
from broker.engine.pattern.operators.repeats import CountPlan, CountStage, RunPlan, RunStage
from broker.engine.pattern.operators.silence import SilenceStage
from broker.engine.pattern.operators.silence_weighed import WeighedSilenceStage
from broker.engine.pattern.stage.base import Make, Site, Stage
from broker.engine.pattern.stage.leaf import LeafStage
from broker.engine.pattern.times.durations import longest_asked
from broker.engine.pattern.times.timing import Between, Span, between, reaches_ms
from broker.engine.pattern.uncertainty.judge import Judge
from broker.engine.pattern.uncertainty.verdicts import Doubt
from broker.engine.pattern.uncertainty.weighed import Weighed
from broker.engine.pattern.uncertainty.whole import Passes, fits_test, negation_test, place_end


class Builder:
    """Compiles the operands of one layout."""

    def __init__(
        self,
        layout: Layout,
        keys: tuple[str, ...],
        doubt: Doubt | None = None,
        *,
        at_once: bool = False,
    ) -> None:
        self.doubt = doubt
        self._at_once = at_once
        self.layout = layout
        self._keys = keys
        self._between: dict[int, Between] = {}  # by the identity of the operator

    def build(self, operand: Operand) -> Make:
        """Return what makes the operand's stage, with those beneath, for a partition."""
        builders: dict[type[Operand], Callable[[Any], Make]] = {
            Leaf: self._leaf,
            Joint: self._joint,
            Negation: self._negation,
            Silence: self._silence,
            Count: self._count,
            Run: self._run,
            Kth: self._kth,
            Distinct: self._distinct,
            Padded: self._padded,
            Gathered: self._gathered,
        }
        make = builders[type(operand)](operand)
        for negation in operand.denied:
            make = self._denied(operand, negation, make)
        return make

    def _denied(self, holder: Operand, negation: Negation, beneath: Make) -> Make:
        """A `without` that is judged over the whole of what its conjuncts name."""
        plan = NegationPlan(
            negation.window_ms,
            negation_test(self.layout, negation, self._keys, holder),
            0,
            self._span(holder),
            self.doubt,
            holder,
            bool(types_of(negation.left) & types_of(negation.right)),
            (negation.left.low - holder.low, negation.left.high - holder.low),
        )
        right = self.build(negation.right)
        return lambda site: NegationStage(plan, site, beneath(site), right(site))

    def _span(self, operand: Operand) -> Span:
        return Span(operand, self.doubt)

    def _leaf(self, leaf: Leaf) -> Make:
        asked_ms = longest_asked(leaf.conditions)
        if self.doubt is None:
            asked_ms = least(asked_ms, leaf.within_ms)

        def make(site: Site) -> Stage:
            stage = LeafStage(site, leaf.event_type, asked_ms)
            site.leaves[leaf.low] = stage
            return stage

        return make

    # --- operators of two sides ----------------------------------------------------------

    def writer(self, joint: Joint, *, ordered: bool) -> JoinWriter:
        """Return what writes one function of an operator; `ordered`: what follows comes later."""
        weighed = None if self.doubt is None else Weighed(joint, self.doubt)
        return JoinWriter(self.layout, joint, self._keys, ordered=ordered, weighed=weighed)

    def plan(self, joint: Joint) -> JointPlan:
        """Compile an operator of two sides."""

        def writer() -> JoinWriter:
            return self.writer(joint, ordered=not self._at_once)

        parts = (joint.left, joint.right)
        either = joint.operator == "or"
        return JointPlan(
            joint,
            writer().build(),
            writer().build_test() if not either else _never,
            writer().build_pair() if not either else _never,
            writer().build_follows() if not either else _never,
            (composite(joint.left), composite(joint.right)),
            reaches_ms(joint),
            self._span(joint),
            tuple([self._span(part) for part in parts if composite(part)]),
            self.doubt,
            self._at_once,
            bool(types_of(joint.left) & types_of(joint.right)),
            self._between.get(id(joint)),
        )

    def _joint(self, joint: Joint) -> Make:
        if joint.operator != "or" and joint.context.runs:
            return self._course(joint)
        plan = self.plan(joint)
        left, right = self.build(joint.left), self.build(joint.right)
        if joint.context.spends and joint.operator != "or":
            return lambda site: ChronicleStage(plan, site, left(site), right(site))
        return lambda site: JointStage(plan, site, left(site), right(site))

    def _course(self, joint: Joint) -> Make:
        plan = self.course(run_of(joint))
        elements = [self.build(one) for one in plan.elements]
        return lambda site: CourseStage(plan, site, [make(site) for make in elements])

    def course(self, links: Sequence[Joint]) -> CoursePlan:
        """Compile a chain of like links; `links[i]` joins elements 0..i with element i + 1."""
        judge = Judge(self.layout, list(links), self._keys, self.doubt)
        return CoursePlan([self.plan(link) for link in links], judge)

    def _negation(self, negation: Negation) -> Make:
        if negation.further_out:
            left, after = self.build(negation.left), negation.high - negation.right.low
            return lambda site: PaddedStage(0, after, site, left(site))
        plan = self.denial(negation)
        left, right = self.build(negation.left), self.build(negation.right)
        return lambda site: NegationStage(plan, site, left(site), right(site))

    def denial(self, negation: Negation) -> NegationPlan:
        """Compile a `without`."""
        return NegationPlan(
            negation.window_ms,
            negation_test(self.layout, negation, self._keys),
            negation.high - negation.right.low,
            self._span(negation),
            self.doubt,
            negation.left,
            bool(types_of(negation.left) & types_of(negation.right)),
        )

    # --- operators of one side -----------------------------------------------------------

    def _silence(self, silence: Silence) -> Make:
        beneath, doubt = self.build(silence.operand), self.doubt
        if doubt is not None:
            return lambda site: WeighedSilenceStage(silence, site, beneath(site), doubt)
        return lambda site: SilenceStage(silence, site, beneath(site))

    def _count(self, count: Count) -> Make:
        passes = Passes(self.layout, count, self._keys, self.doubt)
        # One that is past is still one of those that follow each other where rows are disjoint.
        forgets = not count.disjoint and self.doubt is None
        expire_ms = count.within_ms if forgets else None
        plan = CountPlan(count.count, count.disjoint, passes, self._span(count), expire_ms)
        beneath = self.build(count.operand)
        return lambda site: CountStage(plan, site, beneath(site))

    def _run(self, run: Run) -> Make:
        passes = Passes(self.layout, run, self._keys, self.doubt)
        low_ms, high_ms = run.gap_low_ms, run.gap_high_ms
        plan = RunPlan(low_ms, high_ms, passes, self._span(run))
        beneath = self.build(run.operand)
        return lambda site: RunStage(plan, site, beneath(site))

    def _kth(self, kth: Kth) -> Make:
        passes = Passes(self.layout, kth, self._keys, self.doubt)
        beneath = self.build(kth.operand)
        span = self._span(kth)
        return lambda site: KthStage(kth.k, passes, site, beneath(site), span)

    def _distinct(self, distinct: Distinct) -> Make:
        beneath = self.build(distinct.operand)
        span = self._span(distinct)
        key = _key_of(distinct.keys)
        return lambda site: DistinctStage(key, distinct.window_ms, site, beneath(site), span)

    def _padded(self, padded: Padded) -> Make:
        beneath = self.build(padded.operand)
        before = padded.operand.low - padded.low
        after = padded.high - padded.operand.high
        return lambda site: PaddedStage(before, after, site, beneath(site))

    # --- lists ---------------------------------------------------------------------------

    def lists_of(self, gathered: Gathered) -> GatheredPlan:
        """Return how a chain's lists are filled."""
        lists = tuple([self._list(gathered, at) for at in range(len(gathered.members))])
        passes = Passes(self.layout, gathered, self._keys, self.doubt)
        return GatheredPlan(lists, passes, self._span(gathered), self.doubt)

    def _gathered(self, gathered: Gathered) -> Make:
        plan = self.lists_of(gathered)
        self._between |= {id(joint): gap for joint, gap in between(gathered)}
        base = self.build(gathered.base)
        members = [self.build(member.operand) for member in gathered.members]
        return lambda site: GatheredStage(plan, site, base(site), [m(site) for m in members])

    def _list(self, gathered: Gathered, at: int) -> ListPlan:
        member = gathered.members[at]
        ends: list[Callable[[Occurrence], int]] = []
        starts: list[Callable[[Occurrence], int]] = []
        if gathered.within_ms is not None:
            ends.append(_start_plus(gathered.within_ms, self.doubt))
        for place, within_ms in gathered.anchors:
            if gathered.low <= place < gathered.high and place not in self.layout.listed:
                ends.append(_end_plus(place - gathered.low, within_ms, self.doubt))
        bound = member.after_bound
        if member.after is not None and bound is not None and bound.high_ms is not None:
            low, high = member.after.low - gathered.low, member.after.high - gathered.low
            starts.append(_after_plus(low, high, bound.high_ms))
        return ListPlan(
            member.operand.low - gathered.low,
            member.operand.high - gathered.low,
            member.optional,
            fits_test(self.layout, gathered, member, self._keys, certain=self.doubt is None),
            tuple(ends),
            tuple(starts),
            _places_of(member.after, gathered),
            _places_of(member.before, gathered),
            not composite(member.operand),
            # Where times are uncertain another element of the chain may lie between the two.
            self.doubt is None and _is_plain(gathered, member),
            member.leads_ms(gathered.within_ms),
        )


def _never(*_: Any) -> Any:
    raise AssertionError("`or` joins nothing")


def _key_of(keys: Sequence[str]) -> Callable[[Occurrence], Any]:
    """Return what gives an occurrence's values for `distinct`, or its end; None: one is null."""
    if not keys:
        return lambda item: item[0] if item.__class__ is tuple else item.end
    reserved = {"source", "location", "position", "start", "end", "id", "uncertainty"}
    names = [key if key in reserved else f"a_{key}" for key in keys]

    def key(item: Occurrence) -> Any:
        events = flat(events_of(item))
        values = [_plain(getattr(event, name, None)) for event in events for name in names]
        return None if None in values else tuple(values)

    return key


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _places_of(element: Operand | None, chain: Gathered) -> tuple[int, int] | None:
    return None if element is None else (element.low - chain.low, element.high - chain.low)


def _is_plain(gathered: Gathered, member: Member) -> bool:
    """Tell whether what lies between a list's neighbours is in it, whatever else it is."""
    asks = member.conjuncts or member.after_bound or member.before_bound or gathered.anchors
    return not (asks or composite(member.operand))


def _slack_ms(limit_ms: int, doubt: Doubt | None) -> int:
    return 0 if doubt is None else doubt.slack_ms(limit_ms)


def _start_plus(within_ms: int, doubt: Doubt | None) -> Callable[[Occurrence], int]:
    return lambda one: int(one[1]) + within_ms + _slack_ms(within_ms, doubt)


def _end_plus(place: int, within_ms: int, doubt: Doubt | None) -> Callable[[Occurrence], int]:
    return lambda one: place_end(one, place, place + 1) + within_ms + _slack_ms(within_ms, doubt)


def _after_plus(low: int, high: int, within_ms: int) -> Callable[[Occurrence], int]:
    return lambda one: place_end(one, low, high) + within_ms
