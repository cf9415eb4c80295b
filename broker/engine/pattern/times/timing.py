"""The one analysis of time: what every operator of a pattern states of its occurrences.

Owns, for each kind of operand, how long its occurrences last, how far apart its sides may be, how
far back a partner may lie and how long what it passes on goes on after its last event. Must not
know stores, events or tasks. Invariant: nothing that is not certainly impossible spans more, goes
on longer, or lies further back than is stated.

`Timing` goes once over the operands, bottom-up, and keeps a `TimeStatement` of each. Whoever asks
brings `KnownTimes`: agents how long events have lasted so far, bounds the limits of the broker, a
router those of the whole network; the arithmetic is the same for all of them. Lengths are whole
milliseconds; None is no limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker.engine.pattern.layout.operands import (
    Count,
    Distinct,
    Gathered,
    Joint,
    Kth,
    Leaf,
    Negation,
    Operand,
    Padded,
    Run,
    Silence,
    least,
    operands,
)
from broker.engine.pattern.times.durations import longest_asked
from language.relations import FOLLOWS

if TYPE_CHECKING:
    from broker.engine.pattern.times.durations import Foresight
    from broker.engine.pattern.uncertainty.verdicts import Doubt

DurationMs = int | Callable[[str], int | None]


def total(*lengths: int | None) -> int | None:
    """Return the sum; none where one of them has no limit."""
    finite = [length for length in lengths if length is not None]
    return sum(finite) if len(finite) == len(lengths) else None


def greatest(*lengths: int | None) -> int | None:
    """Return the greatest, 0 of none; none where one of them has no limit."""
    finite = [length for length in lengths if length is not None]
    return max(finite, default=0) if len(finite) == len(lengths) else None


# --- what is known -------------------------------------------------------------------------------


def _exactly(limit_ms: int) -> int:
    return limit_ms


@dataclass(frozen=True, slots=True)
class KnownTimes:
    """Times as far as they are known.

    `event_ms`: how long an event of a type lasts at most. `longer`: the greatest nominal distance
    of two instants that may be at most so far apart (paper 001, section 3, "Timestamping": a time
    stands for an interval around it, so that two of ε each are 2ε further apart at worst).
    """

    event_ms: Callable[[str], int | None]
    longer: Callable[[int], int] = _exactly

    @staticmethod
    def of(duration_ms: DurationMs, doubt: Doubt | None = None) -> KnownTimes:
        """Return what agents know: one duration for all types, or of each; `doubt`: of times."""
        event_ms = (lambda _: duration_ms) if isinstance(duration_ms, int) else duration_ms
        if doubt is None:
            return KnownTimes(event_ms)
        return KnownTimes(event_ms, lambda limit_ms: limit_ms + doubt.slack_ms(limit_ms))


@dataclass(frozen=True, slots=True)
class TimeStatement:
    """All that an operator states of the occurrences that it passes on.

    `span_ms`: from the first start to the last end. `tail_ms`: how long one goes on after the end
    of the last event that it binds. `empty_ms`: how long one lasts that binds no event. `binds`,
    `may_be_empty`: whether there are such. `lingers`: whether an `absent` stands beneath, which
    alone goes on when all events are over.
    """

    span_ms: int | None
    tail_ms: int | None = 0
    empty_ms: int | None = None
    binds: bool = True
    may_be_empty: bool = False
    lingers: bool = False


class Timing:
    """The statements of the operands of one pattern, given what is known.

    `by_lists`: a list that must not be empty holds the two elements beside it together. That is so
    of what a chain reports in the end, and not of what its operators pass on to it.
    """

    def __init__(self, known: KnownTimes, *, by_lists: bool = False) -> None:
        self.known = known
        self.by_lists = by_lists
        self._stated: dict[int, TimeStatement] = {}  # by the identity of the operand
        self._between: dict[int, Between] = {}  # by that of the operator

    def of(self, operand: Operand) -> TimeStatement:
        """Return what an operand states; each is asked once."""
        stated = self._stated.get(id(operand))
        if stated is None:
            if self.by_lists and isinstance(operand, Gathered):
                self._between |= {id(joint): gap for joint, gap in between(operand)}
            parts = [self.of(part) for part in operand.parts]
            stated = STATEMENTS[type(operand)](operand, self, parts)
            stated = self._suffixed(operand, stated)
            self._stated[id(operand)] = stated
        return stated

    def span_ms(self, operand: Operand) -> int | None:
        """Return how long an occurrence of the operand may be."""
        return self.of(operand).span_ms

    def gap_ms(self, joint: Joint) -> int | None:
        """Return how long after the end of one side the other begins at most."""
        gap_ms = gap_max_ms(joint)
        if gap_ms is not None:
            gap_ms = self.known.longer(gap_ms)
        listed_ms = self.listed_ms(joint)
        return gap_ms if listed_ms is None else least(gap_ms, self.known.longer(listed_ms))

    def listed_ms(self, joint: Joint) -> int | None:
        """Return how far apart both sides are, as a list between them must not be empty."""
        listed = self._between.get(id(joint))
        member_ms = None if listed is None else self.known.event_ms(listed.event_type)
        return None if listed is None or member_ms is None else listed.gap_ms(member_ms)

    def _suffixed(self, operand: Operand, stated: TimeStatement) -> TimeStatement:
        """Apply what `within T` and `within T from A` around an operand say to what it states."""
        limit_ms = self._anchored_ms(operand, stated)
        if operand.within_ms is None and limit_ms is None:
            return stated
        within_ms = None
        if operand.within_ms is not None:
            within_ms = self.known.longer(operand.within_ms)
        return TimeStatement(
            least(least(limit_ms, within_ms), stated.span_ms),
            least(within_ms, stated.tail_ms),
            least(within_ms, stated.empty_ms),
            stated.binds,
            stated.may_be_empty,
            stated.lingers,
        )

    def _anchored_ms(self, operand: Operand, stated: TimeStatement) -> int | None:
        """By `within T from A`: what is not A begins after it ends, and ends in time.

        An absence is no event and not held to that. Nor is anything where `or` may leave A empty:
        `((A or C) and B) within 5 s from A` has C and B however far apart.
        """
        if stated.lingers or not operand.anchors:
            return None
        limit_ms: int | None = None
        for place, within_ms in operand.anchors:
            anchor = _surely(operand, place)
            lasts_ms = None if anchor is None else self.of(anchor).span_ms
            if lasts_ms is not None:
                # What follows A may seem to begin before A ends, by as much as a limit of nothing
                # may be missed; further back than A's own start if that is less. For A of 2 s, ε of
                # 150 ms and T of 5 s: max(2000, 300) + 5300.
                longer = self.known.longer
                limit_ms = least(limit_ms, max(lasts_ms, longer(0)) + longer(within_ms))
        return limit_ms


def _surely(operand: Operand, place: int) -> Leaf | None:
    """The place's leaf if it is bound in every occurrence of the operand."""
    if isinstance(operand, Leaf):
        return operand if operand.low == place else None
    if isinstance(operand, Silence) or (isinstance(operand, Joint) and operand.operator == "or"):
        return None
    parts = operand.parts
    if isinstance(operand, Negation | Gathered):
        parts = parts[:1]  # what must not be, and what lists hold, is no anchor
    leaves = [_surely(part, place) for part in parts if part.low <= place < part.high]
    return next((leaf for leaf in leaves if leaf is not None), None)


def span_max_ms(
    operand: Operand, duration_ms: DurationMs, doubt: Doubt | None = None
) -> int | None:
    """Return the longest span that an occurrence of the operand can have."""
    return Timing(KnownTimes.of(duration_ms, doubt)).span_ms(operand)


# --- what each operator states -------------------------------------------------------------------

Parts = list[TimeStatement]


def _leaf(leaf: Leaf, timing: Timing, _: Parts) -> TimeStatement:
    # `A(duration <= 5 s)` lets no longer event pass, whatever its type brings.
    return TimeStatement(
        least(timing.known.event_ms(leaf.event_type), longest_asked(leaf.conditions))
    )


def _silence(silence: Silence, _: Timing, __: Parts) -> TimeStatement:
    # [u, u + T] by its own measure: nobody's clock stands between its two ends.
    return TimeStatement(
        silence.for_ms, 0, silence.for_ms, binds=False, may_be_empty=True, lingers=True
    )


def _first_part(_: Operand, __: Timing, parts: Parts) -> TimeStatement:
    """State the same as the first operand: what goes up is all of its occurrences, or some."""
    return parts[0]


def _repeated(_: Operand, __: Timing, parts: Parts) -> TimeStatement:
    """Rows and runs: as long as there are members."""
    inner = parts[0]
    # The last member may be one that binds nothing, after all that do.
    tail_ms = None if inner.may_be_empty else inner.tail_ms
    return TimeStatement(None, tail_ms, None, inner.binds, inner.may_be_empty, inner.lingers)


def _gathered(gathered: Gathered, timing: Timing, parts: Parts) -> TimeStatement:
    base, *lists = parts
    span_ms = None
    if timing.by_lists and not gathered.trailing and all(each.after for each in gathered.members):
        span_ms = base.span_ms  # each member lies between two of the other elements
    lingers = any(each.lingers for each in lists)
    tail_ms = None if lingers or base.may_be_empty else base.tail_ms
    lingers = lingers or base.lingers
    return TimeStatement(span_ms, tail_ms, None, True, base.may_be_empty, lingers)


def _joint(joint: Joint, timing: Timing, parts: Parts) -> TimeStatement:
    left, right = parts
    if joint.operator == "or":
        return _either(left, right)
    gap_ms = timing.gap_ms(joint)
    may_be_empty = left.may_be_empty and right.may_be_empty
    return TimeStatement(
        # The one side begins so long after the other one ends at most, and then lasts.
        total(left.span_ms, gap_ms, right.span_ms),
        _tail_ms(joint, timing, left, right) if left.lingers or right.lingers else 0,
        total(gap_ms, left.empty_ms, right.empty_ms) if may_be_empty else None,
        left.binds or right.binds,
        may_be_empty,
        left.lingers or right.lingers,
    )


def _either(left: TimeStatement, right: TimeStatement) -> TimeStatement:
    sides = (left, right)
    return TimeStatement(
        greatest(left.span_ms, right.span_ms),
        greatest(*[side.tail_ms for side in sides if side.binds]),
        greatest(*[side.empty_ms for side in sides if side.may_be_empty]),
        left.binds or right.binds,
        left.may_be_empty or right.may_be_empty,
        left.lingers or right.lingers,
    )


def _tail_ms(joint: Joint, timing: Timing, left: TimeStatement, right: TimeStatement) -> int | None:
    """Return how long a pair goes on after its last event ends, where an `absent` is in it."""
    gap_ms = timing.gap_ms(joint)
    if joint.operator in FOLLOWS:
        # Where times are uncertain the left side may seem to end after the right one begins.
        tails: list[int | None] = [timing.known.longer(0)]
        tails += [right.tail_ms] if right.binds else []
        pairs: tuple[tuple[TimeStatement, TimeStatement], ...] = ((left, right),)
    else:
        tails = [side.tail_ms for side in (left, right) if side.binds]
        pairs = ((left, right), (right, left))
    for bound, silent in pairs:
        if bound.binds and silent.may_be_empty:
            # `A and absent C for 2 s` is completed by A, and may end long after it.
            tails.append(total(bound.tail_ms, gap_ms, silent.empty_ms))
    return greatest(*tails)


STATEMENTS: dict[type[Operand], Callable[[Any, Timing, Parts], TimeStatement]] = {
    Leaf: _leaf,
    Joint: _joint,
    Negation: _first_part,  # what must not be binds nothing, and ends nothing
    Silence: _silence,
    Count: _repeated,
    Run: _repeated,
    Kth: _first_part,
    Distinct: _first_part,
    Padded: _first_part,
    Gathered: _gathered,
}


# --- how far a partner may lie -------------------------------------------------------------------


def gap_max_ms(joint: Joint) -> int | None:
    """Return how long after the end of one side the other begins at most, where times are exact."""
    if joint.bound is not None and joint.bound.high_ms is not None:
        return joint.bound.high_ms
    if joint.operator in {"and", "or"} or joint.operator in FOLLOWS:
        return None
    return 0  # every other relation shares an instant


Reach = tuple[int | None, int | None]  # before the partner's end, and before its start
Cut = tuple[str, int]  # ("start" or "end" of the new partner, how many ms before it)


def reaches_ms(joint: Joint) -> tuple[Reach, Reach]:
    """For a left and a right occurrence: how long before its partner's end, and how long before its
    partner's start, its own end may lie at most.
    """
    left = _reach(joint, joint.left, joint.right)
    if joint.operator in FOLLOWS:  # the right one ends last, whatever else holds
        return left, (0, None)
    return left, _reach(joint, joint.right, joint.left)


def _reach(joint: Joint, own: Operand, partner: Operand) -> Reach:
    ends = [] if joint.within_ms is None else [joint.within_ms]
    for anchor, within_ms in joint.anchors:
        if own.low <= anchor < own.high:
            ends.append(within_ms)  # the partner's events end at most T after A
        elif partner.low <= anchor < partner.high:
            # Ours begin after A, and A ends at most T before the partner does; if A is all of the
            # partner, ours end after it.
            ends.append(0 if isinstance(partner, Leaf) else within_ms)
    return min(ends, default=None), gap_max_ms(joint)


def left_cut_ms(joint: Joint) -> Cut | None:
    """Return what a left occurrence must at least end at, relative to its right partner."""
    return _nearest(reaches_ms(joint)[0])


def right_cut_ms(joint: Joint) -> Cut | None:
    """Return what a right occurrence must at least end at, relative to its left partner."""
    return _nearest(reaches_ms(joint)[1])


def _nearest(reach: Reach) -> Cut | None:
    """The nearer of the two; of equal ones what counts from the end, which is never less near."""
    end_ms, start_ms = reach
    if end_ms is not None and (start_ms is None or end_ms <= start_ms):
        return "end", end_ms
    return None if start_ms is None else ("start", start_ms)


def keep_ms(
    joint: Joint, duration_max_ms: int, doubt: Doubt | None = None
) -> tuple[int | None, int | None]:
    """Return how long before the watermark a left and a right occurrence may end and still matter.

    A partner still to come ends after the watermark, but may have begun before: what counts from
    its start may reach back further than what counts from its end, by the span of the partner.
    """
    # A limit of nothing, not none: what is swept for age goes by the longest that is kept.
    if joint.operator == "or":
        return 0, 0  # it waits for no partner
    timing = Timing(KnownTimes.of(duration_max_ms, doubt))

    def slack_ms(limit_ms: int) -> int:  # by which nominal times may miss it
        return 0 if doubt is None else doubt.reach_slack_ms(joint, limit_ms)

    def kept(reach: Reach, partner: Operand) -> int | None:
        end_ms, start_ms = reach
        if end_ms is not None:
            end_ms += slack_ms(end_ms)
        if start_ms is None:
            return end_ms
        return least(end_ms, total(start_ms + slack_ms(start_ms), timing.span_ms(partner)))

    left, right = reaches_ms(joint)
    return kept(left, joint.right), kept(right, joint.left)


@dataclass(frozen=True, slots=True)
class Between:
    """A list of events of one type between two elements of a chain, with the gaps beside it.

    Where it is empty there is no occurrence, so the two are no farther apart than those gaps and a
    member together: by `A then[..5 s] B+ then[..3 s] C` at most 8 s and one B.
    """

    event_type: str
    before_ms: int
    after_ms: int

    def gap_ms(self, member_ms: int) -> int:
        """Return how far apart the two can be, where a member lasts so long at most."""
        return self.before_ms + member_ms + self.after_ms


def between(gathered: Gathered) -> list[tuple[Joint, Between]]:
    """Return the operators of a chain whose sides a list holds together."""
    # Where choices spend, what is too far apart is chosen, and spent, all the same.
    joints: Mapping[int, Joint] = {
        _beneath(joint.right).low: joint
        for joint in operands(gathered.base)
        if isinstance(joint, Joint) and joint.operator == "then" and not joint.context.spends
    }
    gaps = []
    for member in gathered.members:
        after, before = member.after_bound, member.before_bound
        leaf = member.operand
        if member.optional or not isinstance(leaf, Leaf) or member.before is None:
            continue
        if after is None or before is None or after.high_ms is None or before.high_ms is None:
            continue
        joint = joints.get(member.before.low)
        if joint is not None:
            gaps.append((joint, Between(leaf.event_type, after.high_ms, before.high_ms)))
    return gaps


def _beneath(operand: Operand) -> Operand:
    return operand.operand if isinstance(operand, Padded) else operand


# --- as time goes on -----------------------------------------------------------------------------


class Span:
    """The spans of one operator's occurrences, by what is known of events as they come.

    The most that is possible counts for what is kept, and the most by what is known of the events'
    types for what is waited for. The second is never more than the first while the types keep to
    what is known of them.
    """

    __slots__ = ("_doubt", "_likely", "_most", "_operand", "_version")

    def __init__(self, operand: Operand, doubt: Doubt | None) -> None:
        self._operand = operand
        self._doubt = doubt
        self._version = (-1, -1)  # of what the others were found of
        self._likely: int | None = None
        self._most: int | None = None

    def most_ms(self, foresight: Foresight) -> int | None:
        """Return the longest nominal span that is possible."""
        self._find(foresight)
        return self._most

    def likely_ms(self, foresight: Foresight) -> int | None:
        """Return the longest nominal span, if events last no longer than is known of them."""
        self._find(foresight)
        return self._likely

    def _find(self, foresight: Foresight) -> None:
        doubt = self._doubt
        version = (foresight.durations.version, -1 if doubt is None else doubt.most_ms)
        if version != self._version:
            self._likely = span_max_ms(self._operand, foresight.longest_ms, doubt)
            self._most = span_max_ms(self._operand, foresight.most_ms_of, doubt)
            self._version = version
