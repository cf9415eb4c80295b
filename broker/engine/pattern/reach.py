"""How far back a partner may lie: what bounds a search, and what a store may forget.

Owns the arithmetic of `within`, bounds and anchors on one operator. Must not know stores.
Invariant: nothing that could still find a partner is out of reach.
"""

from __future__ import annotations

from dataclasses import dataclass

from broker.engine.pattern.operands import (
    Gathered,
    Joint,
    Leaf,
    Operand,
    Padded,
    operands,
    span_max_ms,
)
from language.relations import FOLLOWS

Cut = tuple[str, int]  # ("start" or "end" of the new partner, how many ms before it)


@dataclass(frozen=True, slots=True)
class Between:
    """A list of events of one type between two elements of a chain, with the gaps beside it.

    Where it is empty there is no occurrence, so the two are no farther apart than those gaps and a
    member together.
    """

    event_type: str
    before_ms: int
    after_ms: int

    def gap_ms(self, member_ms: int) -> int:
        """How far apart the two can be, where a member lasts so long at most."""
        return self.before_ms + member_ms + self.after_ms


def between(gathered: Gathered) -> list[tuple[Joint, Between]]:
    """The operators of a chain whose sides a list holds together."""
    # Where choices spend, what is too far apart is chosen, and spent, all the same.
    joints = {
        _beneath(joint.right).low: joint
        for joint in operands(gathered.base)
        if isinstance(joint, Joint)
        and joint.operator == "then"
        and joint.context in {"unrestricted", "recent"}
    }
    found = []
    for member in gathered.members:
        after, before = member.after_bound, member.before_bound
        leaf = member.operand
        if member.optional or not isinstance(leaf, Leaf) or member.before is None:
            continue
        if after is None or before is None or after.high_ms is None or before.high_ms is None:
            continue
        joint = joints.get(member.before.low)
        if joint is not None:
            gap = Between(leaf.event_type, after.high_ms, before.high_ms)
            found.append((joint, gap))
    return found


def _beneath(operand: Operand) -> Operand:
    return operand.operand if isinstance(operand, Padded) else operand


def left_cut_ms(joint: Joint) -> Cut | None:
    """What a left occurrence must at least end at, relative to its right partner; None: any."""
    return _least(_cuts(joint, joint.left, joint.right))


def right_cut_ms(joint: Joint) -> Cut | None:
    """What a right occurrence must at least end at, relative to its left partner; None: any."""
    return _least(_right_cuts(joint))


def _right_cuts(joint: Joint) -> list[Cut]:
    return [("end", 0)] if joint.operator in FOLLOWS else _cuts(joint, joint.right, joint.left)


def _least(cuts: list[Cut]) -> Cut | None:
    return min(cuts, key=lambda cut: cut[1], default=None)


def _cuts(joint: Joint, own: Operand, partner: Operand) -> list[Cut]:
    """All that must hold of an own occurrence, relative to its partner."""
    cuts: list[Cut] = []
    if joint.operator not in FOLLOWS and joint.operator != "and":
        cuts.append(("start", 0))  # every other relation shares an instant
    if joint.within_ms is not None:
        cuts.append(("end", joint.within_ms))
    if joint.bound is not None and joint.bound.high_ms is not None:
        cuts.append(("start", joint.bound.high_ms))
    for anchor, within_ms in joint.anchors:
        if own.low <= anchor < own.high:
            cuts.append(("end", within_ms))  # the partner's events end at most T after A
        elif partner.low <= anchor < partner.high:
            # Ours begin after A, and A ends at most T before the partner does.
            cuts.append(("end", 0 if isinstance(partner, Leaf) else within_ms))
    return cuts


def reaches_ms(joint: Joint) -> tuple[tuple[int | None, int | None], tuple[int | None, int | None]]:
    """For a left and a right occurrence: how long before its partner's end, and how long before its
    partner's start, its own end may lie at most. None: any time.
    """
    left, right = _cuts(joint, joint.left, joint.right), _right_cuts(joint)
    return (_of(left, "end"), _of(left, "start")), (_of(right, "end"), _of(right, "start"))


def _of(cuts: list[Cut], edge: str) -> int | None:
    return min([before for side, before in cuts if side == edge], default=None)


def keep_ms(joint: Joint, duration_max_ms: int) -> tuple[int | None, int | None]:
    """How long before the watermark an end may lie for a left and a right occurrence to matter.

    None: for ever. A partner still to come ends after the watermark, but may have begun before:
    what counts from its start may reach back further than what counts from its end.
    """
    kept: list[int | None] = []
    for cuts, partner in (
        (_cuts(joint, joint.left, joint.right), joint.right),
        (_right_cuts(joint), joint.left),
    ):
        span = span_max_ms(partner, duration_max_ms)
        reaches = [before for side, before in cuts if side == "end"]
        if span is not None:
            reaches += [before + span for side, before in cuts if side == "start"]
        kept.append(min(reaches, default=None))
    return kept[0], kept[1]
