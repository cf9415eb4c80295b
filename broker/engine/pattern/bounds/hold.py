"""What the operators of a pattern hold at most, and for how long.

Owns, for each kind of operand, how long it keeps what, how much it passes on, and what is kept to
choose again where an occurrence consumes events that others hold. Must not know tasks. Invariant:
never less than what the stages of the operand hold, and what partitions log (staged_partition), for
inputs that keep to their rates and are readings. Where times are uncertain, what is out of reach by
nominal times may be in reach, and what follows may seem to precede: both are kept for longer.

All lengths are of event time before the newest event: an operand's input lags so far behind the
newest event as the watermark does, and as what waits beneath it holds it back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from broker.engine.pattern.agent.staged_partition import (
    LOG_MAX,
    LOG_MIN,
    consumption_of,
    derived,
    log_keep_ms,
    manner_of,
)
from broker.engine.pattern.layout import operands as ops
from broker.engine.pattern.layout.operands import Leaf, Operand, composite, least, operands
from broker.engine.pattern.layout.pattern import Layout
from broker.engine.pattern.stage.store import TRIM_MIN
from broker.engine.pattern.times.timing import (
    KnownTimes,
    Timing,
    greatest,
    keep_ms,
    span_max_ms,
    total,
)
from broker.engine.pattern.uncertainty.relations import takes_newest_only
from language.relations import FOLLOWS
from language.tree import Case

# --- how many ------------------------------------------------------------------------------------

# How many occurrences end at most within any closed interval of so many ms; None: no limit.
Flow = Callable[[int], int | None]


def steady(per_s: Fraction) -> Flow:
    """A flow of at most so many a second, evenly: one more than fit into the interval."""
    # At 2 a second a closed second may have three: at its beginning, its middle and its end.
    return lambda span_ms: int(per_s * span_ms / 1000) + 1


def never(_: int) -> int | None:
    """A flow that has no limit."""
    return None


def product(a: int | None, b: int | None) -> int | None:
    """The product; none of anything is none."""
    # Without limit times nothing: what can have no partner makes no pairs, however many there are.
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else a * b


@dataclass(slots=True)
class Held:
    """The most that is held: over all groups, and besides in each group.

    Matches are partial: occurrences of composite operands, and those that wait for their turn.
    """

    events: int | None = 0
    matches: int | None = 0
    events_each: int = 0
    matches_each: int = 0
    reasons: list[str] = field(default_factory=list)  # why there is no limit, if there is none

    def add(self, count: int | None, *, matches: bool, reason: str) -> None:
        """Count more in; the reason is told where there is no limit."""
        if count is None and reason not in self.reasons:
            self.reasons.append(reason)
        if matches:
            self.matches = total(self.matches, count)
        else:
            self.events = total(self.events, count)


# --- what each operator holds --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Passed:
    """Occurrences that go up: how many, and how far they lag behind; None: without limit."""

    flow: Flow
    lag_ms: int | None


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms that hold for all operands of one pattern.

    `slack_ms`: how long what has expired may stay, as partitions are looked at only now and then.
    `unsure_ms`: by how much nominal times may miss a limit; 0 where times are exact.
    """

    layout: Layout
    leaves: Sequence[Flow]  # by place
    lag_ms: int  # of the watermark
    duration_max_ms: int
    slack_ms: int
    grouped: bool
    unsure_ms: int = 0


class Operators:
    """Adds up what the operands of one pattern hold."""

    def __init__(self, terms: Terms, held: Held) -> None:
        self.terms = terms
        self.held = held
        # How long before the newest event what is kept may begin, as far as `passed` has come.
        self.reach_ms: int | None = terms.lag_ms
        duration_ms, unsure_ms = terms.duration_max_ms, terms.unsure_ms
        times = KnownTimes(lambda _: duration_ms, lambda limit_ms: limit_ms + unsure_ms)
        self._timing = Timing(times, by_lists=True)
        self._timing.of(terms.layout.root)  # what lists hold together is known from above

    def passed(self, operand: Operand) -> Passed:
        """Return what an operand passes on; what it and those beneath hold is added up."""
        kinds: dict[type[Operand], Callable[[Any], Passed]] = {
            ops.Leaf: self._leaf,
            ops.Joint: self._joint,
            ops.Negation: self._negation,
            ops.Silence: self._silence,
            ops.Count: self._count,
            ops.Run: self._run,
            ops.Kth: self._one_side,
            ops.Distinct: self._distinct,
            ops.Padded: self._one_side,
            ops.Gathered: self._gathered,
        }
        return kinds[type(operand)](operand)

    # --- what is kept --------------------------------------------------------------------

    def _keep(
        self, operand: Operand, passed: Passed, kept_ms: int | None, lag_ms: int | None, why: str
    ) -> None:
        """An operator keeps what an operand passes on for so long."""
        own_ms = self.span_ms(operand)
        if kept_ms is None or lag_ms is None:
            count = self.reach_ms = None
        else:
            # Stores expire by nominal ends: either partner may seem older than it is, each by 2ε +
            # 1.
            kept_ms += 2 * self.terms.unsure_ms
            span_ms = kept_ms + lag_ms + 1
            # A silent group is not looked at when time goes on, but when its sweep comes: what has
            # expired there stays for as long again as it was kept, and for the time between sweeps.
            if self.terms.grouped:
                span_ms += kept_ms + self.terms.slack_ms
            # Stores are trimmed by so many at once, as each trim moves all that stays.
            count = total(passed.flow(span_ms), TRIM_MIN - 1)
            finite = None not in (own_ms, self.reach_ms)
            self.reach_ms = max(self.reach_ms or 0, span_ms + (own_ms or 0)) if finite else None
        self._add(operand, count, why)

    def _add(self, operand: Operand, count: int | None, why: str) -> None:
        name = self._name(operand)
        self.held.add(count, matches=composite(operand), reason=why.format(name))

    def _waits(self, operand: Operand, passed: Passed, lag_ms: int | None) -> None:
        """Add what comes sooner than its neighbour beneath the same operator, and waits for it."""
        if lag_ms is None or passed.lag_ms is None:
            self._add(operand, None, "{} waits for what may never be decided")
        # By a watermark of its own each side comes when it is decided; the faster one is buffered.
        elif lag_ms > passed.lag_ms or passed.lag_ms > self.terms.lag_ms:
            self._add(operand, passed.flow(lag_ms + 1), "{} comes without limit")

    def _name(self, operand: Operand) -> str:
        names = self.terms.layout.leaves[operand.low : operand.high]
        return " with ".join(f"`{leaf.name}`" for leaf in names)

    # --- operators of two sides ----------------------------------------------------------

    def _leaf(self, leaf: Leaf) -> Passed:
        return Passed(self.terms.leaves[leaf.low], self.terms.lag_ms)

    def _joint(self, joint: ops.Joint) -> Passed:
        if joint.operator != "or" and joint.context.runs:
            return self._course(joint)
        left, right = self.passed(joint.left), self.passed(joint.right)
        lag_ms = greatest(left.lag_ms, right.lag_ms)
        self._waits(joint.left, left, lag_ms)
        self._waits(joint.right, right, lag_ms)
        if joint.operator == "or":
            return Passed(_sum(left.flow, right.flow), lag_ms)
        kept = keep_ms(joint, self.terms.duration_max_ms)
        right_ms = span_max_ms(joint.right, self.terms.duration_max_ms)
        gap_ms = self._timing.listed_ms(joint)
        if gap_ms is not None and right_ms is not None:
            kept = (least(kept[0], gap_ms + right_ms), kept[1])
        # The k-th after the left one is counted from that on: no left one is ever out of reach.
        if joint.nth is not None:
            kept = (None, kept[1])
        word = f"`{joint.operator}`"
        why = f"{word} keeps every {{}}, as neither `within` nor a bound limits it"
        if joint.nth is not None:
            why = f"`nth` after {word} keeps every {{}}"
        if None in kept and self._keeps_latest(joint):
            follows = joint.operator in FOLLOWS  # the right side of `then` is not kept
            latest_ms = self.terms.duration_max_ms if follows else 0
            self._keep(joint.left, left, latest_ms, lag_ms, why)
            if not follows or self.terms.unsure_ms:
                self._keep(joint.right, right, latest_ms, lag_ms, why)
        else:
            self._keep(joint.left, left, kept[0], lag_ms, why)
            self._keep(joint.right, right, kept[1], lag_ms, why)
        if joint.next:
            self._named(kept, lag_ms)
        return Passed(self._pairs(joint, left.flow, right.flow, kept), lag_ms)

    def _pairs(
        self, joint: ops.Joint, left: Flow, right: Flow, kept: tuple[int | None, int | None]
    ) -> Flow:
        """Return how many end within an interval: new ones times those kept for them."""
        unsure_ms = self.terms.unsure_ms
        follows = joint.operator in FOLLOWS and not unsure_ms
        if joint.context.chooses:
            # Each new occurrence chooses one partner at most (paper 001, section 4, "Event
            # Context").
            return right if follows else _sum(left, right)

        def flow(span_ms: int) -> int | None:
            before = None if kept[0] is None else left(kept[0] + unsure_ms)
            made = product(right(span_ms), before)
            if follows:
                return made
            beside = None if kept[1] is None else right(kept[1] + unsure_ms)
            return total(made, product(left(span_ms), beside))

        return flow

    def _keeps_latest(self, joint: ops.Joint) -> bool:
        """Return whether only the latest of each side is kept (matching.keeps_latest_only)."""
        return False if self.terms.grouped else _latest_only(joint)

    def _named(self, kept: tuple[int | None, int | None], lag_ms: int | None) -> None:
        """For `next`, the events between partners are kept as long as these."""
        why = "`next` keeps what may lie between partners that are kept for ever"
        for name in self.terms.layout.named:
            place = next(each.low for each in self.terms.layout.leaves if each.event_type == name)
            if kept[0] is None or kept[1] is None or lag_ms is None:
                self.held.add(None, matches=False, reason=why)
                continue
            # From the oldest left partner kept for a right one that is itself kept to the newest
            # event.
            span_ms = max(kept[0], kept[1]) * 2 + lag_ms + 1 + self.terms.slack_ms
            self.held.add(self.terms.leaves[place](span_ms), matches=False, reason=why)

    def _course(self, joint: ops.Joint) -> Passed:
        """One run over a whole chain of like links."""
        links = ops.run_of(joint)
        elements = [links[0].left, *(link.right for link in links)]
        passed = [self.passed(each) for each in elements]
        lag_ms = greatest(*(each.lag_ms for each in passed))
        span_ms = joint.within_ms
        if span_ms is None and all(isinstance(each, Leaf) for each in elements):
            span_ms = span_max_ms(joint, 0)
        word = f"`{joint.context.name}`"
        why = f"{word} keeps every {{}} that a later run may need, as nothing ends a run"
        # A run waits for the k-th, or for the next, however long that takes to come.
        if any(link.nth is not None or link.next for link in links):
            span_ms = None
        for operand, each in zip(elements, passed, strict=True):
            self._waits(operand, each, lag_ms)
            self._keep(operand, each, span_ms, lag_ms, why)
        # The run that goes on has one occurrence of each element.
        self.held.matches_each += len(elements)
        follows = joint.operator in FOLLOWS and not self.terms.unsure_ms
        flow = passed[-1].flow if follows else _sum(*(p.flow for p in passed))
        unsure_ms = self.terms.unsure_ms
        delay_ms = None if lag_ms is None or span_ms is None else lag_ms + span_ms + unsure_ms
        return Passed(flow, delay_ms)

    def _negation(self, negation: ops.Negation) -> Passed:
        left, right = self.passed(negation.left), self.passed(negation.right)
        lag_ms = greatest(left.lag_ms, right.lag_ms)
        own_ms = self.span_ms(negation.left)
        window_ms = negation.window_ms
        open_ms = self.terms.unsure_ms + (0 if window_ms is None else window_ms)
        why = "`without` keeps every {}"
        self._keep(negation.left, left, open_ms, lag_ms, why)
        # A q is asked for by a p that ends after it and began before it: as far back as p is long.
        kept_ms = None if own_ms is None else max(open_ms, own_ms)
        self._keep(
            negation.right, right, kept_ms, lag_ms, why + ", as what is left of it may be old"
        )
        return Passed(left.flow, None if lag_ms is None else lag_ms + open_ms + 1)

    # --- operators of one side -----------------------------------------------------------

    def _silence(self, silence: ops.Silence) -> Passed:
        beneath = self.passed(silence.operand)
        span_ms = self.span_ms(silence.operand)
        why = "`absent` keeps the ends of every {}"
        if beneath.lag_ms is None or span_ms is None:
            count = None
        else:
            open_ms = silence.for_ms + self.terms.unsure_ms
            count = beneath.flow(open_ms + span_ms + beneath.lag_ms + 1)
            if self.terms.grouped:
                count = total(count, beneath.flow(open_ms + self.terms.slack_ms))
        # Twice: its end, from which silence may go on, and itself where it came early.
        count = product(count, 2)
        if self.terms.unsure_ms and beneath.lag_ms is not None:  # what may have come after others
            count = total(count, beneath.flow(self.terms.unsure_ms + beneath.lag_ms + 1))
        self.held.add(count, matches=True, reason=why.format(self._name(silence)))
        self.held.matches_each += 1
        wait_ms = silence.for_ms + self.terms.unsure_ms + 1
        lag_ms = None if beneath.lag_ms is None else beneath.lag_ms + wait_ms
        # One more than there are ends: the silence from the beginning on.
        return Passed(lambda ms: total(beneath.flow(ms), 1), lag_ms)

    def _count(self, count: ops.Count) -> Passed:
        beneath = self.passed(count.operand)
        if composite(count.operand):
            self.held.matches_each += count.count
        else:
            self.held.events_each += count.count
        return beneath

    def _run(self, run: ops.Run) -> Passed:
        beneath = self.passed(run.operand)
        # Its members may go on within their gaps; nothing closes a run but a gap that is too long.
        self._add(run.operand, None, "a run of {} may go on for ever")
        return Passed(beneath.flow, None)

    def _one_side(self, operand: Any) -> Passed:
        return self.passed(operand.operand)

    def _distinct(self, distinct: ops.Distinct) -> Passed:
        beneath = self.passed(distinct.operand)
        self._keep(
            distinct.operand,
            beneath,
            distinct.window_ms,
            beneath.lag_ms,
            "`distinct` keeps every {}",
        )
        return beneath

    # --- lists ---------------------------------------------------------------------------

    def _gathered(self, gathered: ops.Gathered) -> Passed:
        base = self.passed(gathered.base)
        lists = [self.passed(member.operand) for member in gathered.members]
        lag_ms = greatest(base.lag_ms, *(each.lag_ms for each in lists))
        span_ms = self.span_ms(gathered.base)
        open_ms = self._open_ms(gathered)
        if gathered.trailing and open_ms is not None:
            open_ms += self.terms.unsure_ms
        why = "a chain with lists keeps every {}, as nothing closes it"
        self._keep(gathered.base, base, open_ms, lag_ms, why)
        for member, each in zip(gathered.members, lists, strict=True):
            # Between two elements a member is needed as long as these are, and no longer.
            kept_ms = member.leads_ms(gathered.within_ms)
            if kept_ms is not None and span_ms is not None and open_ms is not None:
                kept_ms += span_ms + open_ms + self.terms.unsure_ms
            else:
                kept_ms = None
            self._keep(member.operand, each, kept_ms, lag_ms, "the list keeps every {}")
        if open_ms is None or lag_ms is None:
            return Passed(never, None)
        return Passed(lambda ms: base.flow(ms + open_ms), lag_ms + open_ms + 1)

    def _open_ms(self, gathered: ops.Gathered) -> int | None:
        """Return how long the other elements wait for the last list to be whole."""
        if not gathered.trailing:
            return 0
        ends = [gathered.within_ms, *(within_ms for _, within_ms in gathered.anchors)]
        last = [each.after_bound for each in gathered.members if each.before is None]
        ends += [bound.high_ms for bound in last if bound is not None]
        return min([each for each in ends if each is not None], default=None)

    def span_ms(self, operand: Operand) -> int | None:
        """Return the longest span of what an operand passes on; that of a reading is 0."""
        return self._timing.span_ms(operand) if composite(operand) else 0


def _sum(*flows: Flow) -> Flow:
    return lambda span_ms: total(*(flow(span_ms) for flow in flows))


def _latest_only(joint: ops.Joint) -> bool:
    left, right = joint.left, joint.right
    if not takes_newest_only(joint.context) or joint.operator not in ("and", *FOLLOWS):
        return False
    if not isinstance(left, Leaf) or not isinstance(right, Leaf) or joint.next:
        return False
    limited = joint.conjuncts or joint.anchors or joint.bound or joint.spread_m is not None
    return not limited and joint.within_ms is None and left.event_type != right.event_type


# --- what is kept to choose again ----------------------------------------------------------------


def hold_for_choice(
    case: Case, operators: Operators, passed: Passed, held: Held, *, staged: bool
) -> None:
    """Add what a case that consumes keeps to choose again; `passed`: of the whole pattern."""
    terms = operators.terms
    layout = terms.layout
    if staged:
        manner = manner_of(case, layout, terms.duration_max_ms, None)
        if consumption_of(layout, manner) != "again":
            return
        _by_stages(operators, passed, held)
    elif any(each.context.chooses for each in layout.joints):
        reach_ms = _reach_ms(layout, terms.duration_max_ms)
        span_ms = None if reach_ms is None else 2 * reach_ms + terms.lag_ms + terms.slack_ms + 1
        _hold_all(layout, terms.leaves, span_ms, held)


def _by_stages(operators: Operators, passed: Passed, held: Held) -> None:
    terms = operators.terms
    layout = terms.layout
    keep = log_keep_ms(layout)
    if passed.lag_ms is None:
        _hold_all(layout, terms.leaves, None, held)
    elif keep is not None:
        slack_ms = keep + terms.slack_ms if terms.grouped else 0
        _hold_all(layout, terms.leaves, keep + passed.lag_ms + slack_ms + 1, held)
    else:
        span_ms = span_max_ms(layout.root, terms.duration_max_ms)
        # Where counts go on from event to event all of them matter, and only the log's limit holds.
        reach_ms = operators.reach_ms if derived(layout) else None
        found_ms = operators.span_ms(layout.root) if span_ms is None else span_ms
        if reach_ms is None or found_ms is None:
            _hold_all(layout, terms.leaves, None, held)
            return
        # It is looked through when it is twice of what was needed then.
        whole_ms = reach_ms + found_ms + passed.lag_ms + 1
        count = total(*(flow(whole_ms) for flow in terms.leaves))
        held.add(total(product(count, 2), LOG_MIN), matches=False, reason="")


def _hold_all(layout: Layout, leaves: Sequence[Flow], span_ms: int | None, held: Held) -> None:
    for leaf, flow in zip(layout.leaves, leaves, strict=True):
        why = f"`consuming` keeps every `{leaf.name}`, to choose again without what was consumed"
        if span_ms is None:
            why += f" (of a group the last {LOG_MAX:,} events)"
        held.add(None if span_ms is None else flow(span_ms), matches=False, reason=why)


def _reach_ms(layout: Layout, duration_max_ms: int) -> int | None:
    """Return how far back an event may lie and still be in an occurrence to come."""
    reach_ms: int | None = 0
    for each in operands(layout.root):
        if isinstance(each, ops.Joint) and each.operator != "or":
            left_ms, right_ms = keep_ms(each, duration_max_ms)
            if left_ms is None or right_ms is None:
                reach_ms = None
            elif reach_ms is not None:
                # An event reaches through each operator above it in turn: limits along a path add
                # up.
                reach_ms += max(left_ms, right_ms)
    return least(layout.root.within_ms, reach_ms)
