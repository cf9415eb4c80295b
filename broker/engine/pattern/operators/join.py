"""Operators turned into functions: how new occurrences of two operands combine.

Owns the relations and the search for partners. Must not know partitions, watermarks or output.
Invariant: a function finds every pair with at least one new member once, and no other.

`join(nl, nr, ls, rs, g)`: new left and right occurrences, the two stores (the left store holds the
new ones already, the right one does not where a `then` is unrestricted), and the partition's key.
`x(l, r)` is a further test, of operators that need one (`nth`, `next`). Where times are uncertain a
pair is weighed (weighed.py) in place of its test of times, and every search goes further by what
nominal times may miss.
The stores are sorted by end, so a search begins at the latest partner that the relation allows and
stops at the first that is too old. `room` is how many more candidates the step may look at: when
there is none left, the budget is told before anything of it is kept.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from broker.engine.event.event import near
from broker.engine.event.occurrence import after_anchor, all_near, apart, has_reading, order_of
from broker.engine.event.source import Constants, build
from broker.engine.pattern.layout.operands import Joint, Operand, composite, silent_places
from broker.engine.pattern.layout.pattern import Layout
from broker.engine.pattern.layout.scopes import PlaceScope, condition_code
from broker.engine.pattern.times.timing import left_cut_ms, right_cut_ms
from broker.engine.pattern.uncertainty.relations import PARTNER_SEARCHES, RELATION_TESTS
from broker.engine.pattern.uncertainty.weighed import WEIGHING, Weighed
from broker.engine.runtime.budget import occurrence_bytes, weight
from language.relations import FOLLOWS
from language.walk import descendants

Join = Callable[..., list[Any]]


@dataclass(frozen=True, slots=True)
class Side:
    """Describe how generated code reads one operand's occurrence, held in the variable."""

    variable: str
    operand: Operand

    @property
    def composite(self) -> bool:
        """Tell whether the occurrence is a tuple."""
        return composite(self.operand)

    @property
    def end(self) -> str:
        """Code of its end."""
        return f"{self.variable}[0]" if self.composite else f"{self.variable}.end"

    @property
    def start(self) -> str:
        """Code of its start."""
        return f"{self.variable}[1]" if self.composite else f"{self.variable}.start"

    def event(self, place: int) -> str:
        """Code of the event at a place."""
        if self.composite:
            return f"{self.variable}[{2 + place - self.operand.low}]"
        return self.variable

    @property
    def events(self) -> str:
        """Code of the tuple of its events."""
        return f"{self.variable}[2:]" if self.composite else f"({self.variable},)"

    def reading_at(self, instant: str) -> str:
        """Return code: if one of the events is this instant, at which the side begins or ends.

        `touches` asks it of both sides; here single events are asked without a call, as very many
        may share an instant.
        """
        if self.composite:
            return f"has_reading({instant}, {self.events})"
        return f"{self.start} == {self.end}"

    @property
    def spread_out(self) -> str:
        """Code of its events as members of a larger tuple."""
        return f"*{self.variable}[2:]" if self.composite else self.variable


class JoinWriter:
    """Writes the function of one operator."""

    def __init__(
        self,
        layout: Layout,
        joint: Joint,
        keys: tuple[str, ...],
        *,
        ordered: bool,
        weighed: Weighed | None = None,
    ) -> None:
        """`ordered`: what follows comes later; `weighed`: where times are uncertain."""
        self._layout = layout
        self._joint = joint
        self._weighed = weighed
        self._search = PARTNER_SEARCHES.get(joint.context.name)
        self._keys = keys
        # By nominal times what follows may come before.
        self._follows_only = ordered and weighed is None and joint.operator in FOLLOWS
        self._constants = Constants()
        self._left = Side("l", joint.left)
        self._right = Side("r", joint.right)
        # A pair is charged by what its test may cost: each node of a condition is about one
        # operation.
        parts = sum([len(list(descendants(conjunct))) for conjunct in joint.conjuncts])
        self._weight = weight(joint.high - joint.low, parts)
        if weighed is not None:
            self._weight += WEIGHING
            self._constants.helper("weigh", weighed.weigh)
            self._constants.helper("paired", weighed.paired)
            self._constants.helper("slack", weighed.doubt.slack_ms)
            self._constants.helper("reach_slack", weighed.reach_slack_ms)

    def build(self) -> Join:
        """The compiled function."""
        self._constants.helper("bisect_left", bisect_left)
        self._constants.helper("bisect_right", bisect_right)
        if self._joint.operator == "or":
            body = self._or()
        # Where order is not given by the relation, either of the two may be the new one that looks
        # for a partner among the others.
        elif not self._follows_only and self._search is not None:
            body = self._chosen_either()
        else:
            body = self._pairs()
        self._constants.helper("budget", self._layout.budget)
        places = self._joint.high - self._joint.low
        kept = f"{weight(places)} * len(out), {occurrence_bytes(places)} * len(out)"
        room = f"budget.candidates // {self._weight}"
        lines = [
            "def join(nl, nr, ls, rs, g, x=None):",
            "    out = []",
            # Read once: an attribute in the inner loop would cost as much as the comparison it
            # guards.
            f"    most = room = {room}",
        ]
        lines += [*body, f"    {self._charge(0)}", f"    if out: budget.spend({kept})"]
        lines += ["    return out"]
        return build("\n".join(lines) + "\n", "join", self._constants)

    def build_test(self) -> Callable[..., bool]:
        """`test(l, r, g, x)`: whether two occurrences belong together."""
        text = f"def test(l, r, g, x=None):\n    return {self._condition()}\n"
        return build(text, "test", self._constants)

    def build_pair(self) -> Callable[..., Any]:
        """`pair(l, r)`: the occurrence of both."""
        pair = self._pair() if self._weighed is None else "paired(l, r, weigh(l, r))"
        text = f"def pair(l, r):\n    return {pair}\n"
        return build(text, "pair", self._constants)

    def build_follows(self) -> Callable[..., bool]:
        """`follows(l, r)`: the relation alone, without its bound."""
        parts = self._related() + self._distinct()
        text = f"def follows(l, r):\n    return {' and '.join(parts)}\n"
        return build(text, "follows", self._constants)

    # --- searches ------------------------------------------------------------------------

    def _pairs(self) -> list[str]:
        """Unrestricted operators, and of those that choose a partner what follows."""
        lines = self._backward("r", "l", "nr", "ls")
        # In order, a left one that follows its right one cannot come: the forward search is not
        # even written.
        return lines if self._follows_only else lines + self._forward()

    def _slack(self, limit: str = "0") -> str:
        """Code of what nominal times may miss a limit by."""
        return "" if self._weighed is None else f" + slack({limit})"

    def _reach_slack(self, limit: str) -> str:
        """Code of the same, of how far back a partner may lie."""
        return "" if self._weighed is None else f" - reach_slack({limit})"

    def _backward(self, new: str, old: str, news: str, store: str) -> list[str]:
        """For each new occurrence, its partners in the store from the latest to the oldest."""
        side = self._right if new == "r" else self._left
        other = self._left if new == "r" else self._right
        cut = left_cut_ms(self._joint) if new == "r" else right_cut_ms(self._joint)
        lines = [f"    items = {store}.items", f"    ends = {store}.ends"]
        lines += [f"    for {new} in {news}:"]
        # Bisection finds the latest partner that the relation allows, in a store of a day as in one
        # of a minute.
        if self._joint.operator in FOLLOWS and new == "r":
            lines += [f"        i = bisect_right(ends, {side.start}{self._slack()})"]
        elif self._weighed is not None and self._joint.within_ms is not None:
            # To weigh costs more than to look up who ends too late, of a batch that came at once.
            limit = self._constants.add(self._joint.within_ms)
            latest = f"{side.start} + {limit}{self._slack(limit)}"
            lines += [f"        i = bisect_right(ends, {latest})"]
        else:
            lines += ["        i = len(ends)"]
        if cut is not None:
            name = self._constants.add(cut[1])
            # One subtraction for each new occurrence, so that the loop compares two plain names.
            edge = side.start if cut[0] == "start" else side.end
            lines += [f"        too_old = {edge} - {name}{self._reach_slack(name)}"]
        if self._search is not None:
            lines += ["        " + line for line in self._search.begin]
        # The loop may go down to `stop` and no further; what it did not use is given back behind
        # it. So the budget costs nothing for each pair.
        lines += ["        stop = i - room if i > room else 0", "        room -= i"]
        lines += ["        while i > stop:", "            i -= 1", f"            {old} = items[i]"]
        if cut is not None:
            lines += [f"            if {other.end} < too_old:", "                break"]
        search = self._search
        # "The latest that precedes x in order": of one instant, what stands behind x does not
        # precede it.
        if search is not None and not self._follows_only:
            self._constants.helper("order_of", order_of)
            later = f"{other.end} == {side.end} and order_of({old}) > order_of({new})"
            lines += [f"            if {later}:", "                continue"]
        meet = ("{append}",) if search is None else search.meet
        lines += [f"            if {self._condition()}:"]
        lines += ["                " + line.format(append=self._append()) for line in meet]
        return [
            *lines,
            "        room += i",
            "        if room < 1:",
            f"            {self._charge(1)}",
        ]

    def _charge(self, further: int) -> str:
        """Code that charges what was looked at and so many `further` candidates."""
        return f"budget.spend({self._weight} * (most - room + {further}))"

    def _forward(self) -> list[str]:
        """For each new left occurrence, its partners among the older right ones."""
        joint = self._joint
        # Guarded as a whole: with events nearly in order there is rarely anything on the right.
        lines = ["    if nl and rs.items:", "        items = rs.items", "        ends = rs.ends"]
        lines += ["        for l in nl:"]
        cut = right_cut_ms(joint)
        if joint.operator in FOLLOWS:
            early = "" if self._weighed is None else " - slack()"
            lines += [f"            i = bisect_left(ends, {self._left.end}{early})"]
        elif cut is not None:
            name = self._constants.add(cut[1])
            edge = self._left.start if cut[0] == "start" else self._left.end
            lines += [
                f"            i = bisect_left(ends, {edge} - {name}{self._reach_slack(name)})"
            ]
        else:
            lines += ["            i = 0"]
        # The mirror image of the search backward: what lies before i is not looked at and not
        # charged.
        lines += ["            room += i", "            stop = min(len(items), room)"]
        lines += ["            while i < stop:", "                r = items[i]"]
        lines += ["                i += 1"]
        # Ends are in order, so the first one that is too late ends the search.
        if joint.within_ms is not None:
            name = self._constants.add(joint.within_ms)
            latest = f"{self._left.start} + {name}{self._slack(name)}"
            lines += [f"                if {self._right.end} > {latest}:"]
            lines += ["                    break"]
        lines += [
            f"                if {self._condition()}:",
            f"                    {self._append()}",
        ]
        return [
            *lines,
            "            room -= i",
            "            if room < 1:",
            f"                {self._charge(1)}",
        ]

    def _chosen_either(self) -> list[str]:
        """Each new occurrence of either side with its partner among those that precede it."""
        return self._backward("r", "l", "nr", "ls") + self._backward("l", "r", "nl", "rs")

    def _or(self) -> list[str]:
        """Either side alone; the names of the other are null."""
        joint = self._joint
        lines = []
        for side, other in ((self._left, joint.right), (self._right, joint.left)):
            if any(other.low <= anchor < other.high for anchor, _ in joint.anchors):
                continue  # `within T from A` fails where A stands for nothing
            empty = "None, " * (other.high - other.low)
            end, events = side.end, f"{side.spread_out}, {empty}"
            if side is self._right:
                events = f"{empty}{side.spread_out}"
            if self._weighed is not None:
                ended = self._constants.helper(
                    f"ended_{side.variable}", self._weighed.ended(side.operand)
                )
                end = f"{ended}({side.variable})"
            test = self._conjuncts((side,)) or "True"
            news = "nl" if side is self._left else "nr"
            lines += [f"    for {side.variable} in {news}:", f"        if {test}:"]
            lines += [f"            out.append(({end}, {side.start}, {events}))"]
        return lines

    # --- conditions ----------------------------------------------------------------------

    def _append(self) -> str:
        pair = self._pair() if self._weighed is None else "paired(l, r, v)"
        return f"out.append({pair})"

    def _pair(self) -> str:
        left, right = self._left, self._right
        if self._joint.operator in FOLLOWS:
            # The relation itself says which is first and last, which spares two comparisons.
            end, start = right.end, left.start
        else:
            end = f"{left.end} if {left.end} > {right.end} else {right.end}"
            start = f"{left.start} if {left.start} < {right.start} else {right.start}"
        return f"({end}, {start}, {left.spread_out}, {right.spread_out})"

    def _condition(self) -> str:
        # Cheapest and most selective first: times are numbers at hand, conditions read attributes,
        # and `nth` and `next` look through other events. To weigh costs more than all of these.
        timed = self._weighed is None
        parts = [
            *(self._relation() + self._within() if timed else []),
            *self._distinct(),
            *(self._anchored() if timed else []),
            *self._spread(),
        ]
        conjuncts = self._conjuncts((self._left, self._right))
        if conjuncts:
            parts.append(conjuncts)
        if timed and self._asks_next_alone():
            parts.append(f"not x.between({self._left.end}, {self._right.start})")
        elif self._joint.nth is not None or self._joint.next:
            parts.append("x(l, r)")
        if not timed:
            parts.append("(v := weigh(l, r))")
        return " and ".join(parts) or "True"

    def _asks_next_alone(self) -> bool:
        """Tell whether other events have a say only by lying between a left one and a later one."""
        joint = self._joint
        return joint.next and joint.nth is None and joint.operator in FOLLOWS

    def _conjuncts(self, sides: tuple[Side, ...]) -> str:
        def code_of(place: int) -> str | None:
            for side in sides:
                if side.operand.low <= place < side.operand.high:
                    return side.event(place)
            return None  # the other side of an `or`

        scope = PlaceScope(
            self._layout, self._keys, code_of, self._constants, silent_places(self._joint)
        )
        codes = [condition_code(one, scope, self._constants) for one in self._joint.conjuncts]
        return " and ".join(codes)

    def _relation(self) -> list[str]:
        left, right = self._left, self._right
        bound = self._joint.bound
        parts = self._related()
        if self._joint.operator in FOLLOWS:
            gap = f"{right.start} - {left.end}"
        else:
            later = f"({left.start} if {left.start} > {right.start} else {right.start})"
            earlier = f"({left.end} if {left.end} < {right.end} else {right.end})"
            # LANGUAGE 3: the gap between the two, 0 where they touch or overlap.
            gap = f"max(0, {later} - {earlier})"
        if bound is not None and bound.low_ms is not None:
            parts.append(f"{gap} >= {self._constants.add(bound.low_ms)}")
        if bound is not None and bound.high_ms is not None:
            parts.append(f"{gap} <= {self._constants.add(bound.high_ms)}")
        return parts

    def _related(self) -> list[str]:
        left, right = self._left, self._right
        parts = [
            form.format(ls=left.start, le=left.end, rs=right.start, re=right.end)
            for form in RELATION_TESTS[self._joint.operator].asks
        ]
        # Only `then`, `meets` and `concat` ask what happens at an instant that both share.
        if any("touching" in part for part in parts):
            self._constants.helper("has_reading", has_reading)
            touching = f"not ({left.reading_at(left.end)} and {right.reading_at(left.end)})"
            parts = [part.replace("touching", touching) for part in parts]
        return parts

    def _within(self) -> list[str]:
        within_ms = self._joint.within_ms
        if within_ms is None:
            return []
        left, right = self._left, self._right
        limit = self._constants.add(within_ms)
        return [
            f"{e.end} - {s.start} <= {limit}"
            for e, s in ((right, left), (left, right))
            # What follows ends later, so the other half of the test is always true and is left out.
            if not (self._joint.operator in FOLLOWS and e is left)
        ]

    def _distinct(self) -> list[str]:
        """One event fills at most one place; None fills no place."""
        leaves = self._layout.leaves
        listed = self._layout.listed
        parts = []
        for a, b in self._cross():
            # Events of two types are never the same one: most patterns name each type once, and
            # test nothing.
            if leaves[a].event_type != leaves[b].event_type:
                continue
            left, right = self._left.event(a), self._right.event(b)
            if a in listed or b in listed:
                self._constants.helper("apart", apart)
                parts.append(f"apart({left}, {right})")
                continue
            both = f"{left} is not {right}"
            optional = a in self._layout.optional
            parts.append(f"({left} is None or {both})" if optional else both)
        return parts

    def _anchored(self) -> list[str]:
        joint = self._joint
        parts = []
        for anchor, within_ms in joint.anchors:
            own, other = self._left, self._right
            if joint.right.low <= anchor < joint.right.high:
                own, other = other, own
            elif not joint.left.low <= anchor < joint.left.high:
                continue
            limit = self._constants.add(within_ms)
            a = own.event(anchor)
            if anchor in self._layout.optional:
                parts.append(f"{a} is not None")
            parts += [
                self._after_anchor(a, other.event(place), limit, anchor, place)
                for place in self._binding(other)
            ]
        return parts

    def _after_anchor(self, a: str, x: str, limit: str, anchor: int, place: int) -> str:
        if {anchor, place} & self._layout.listed:
            self._constants.helper("after_anchor", after_anchor)
            return f"after_anchor({a}, {x}, {limit})"
        test = f"{a}.end <= {x}.start and {x}.end <= {a}.end + {limit}"
        return f"({x} is None or ({test}))" if place in self._layout.optional else test

    def _spread(self) -> list[str]:
        spread_m = self._joint.spread_m
        if spread_m is None:
            return []
        self._constants.helper("near", near)
        limit = self._constants.add(spread_m)
        parts = []
        for a, b in self._cross():
            left, right = self._left.event(a), self._right.event(b)
            if {a, b} & self._layout.listed:
                self._constants.helper("all_near", all_near)
                parts.append(f"all_near({left}, {right}, {limit})")
                continue
            test = f"near({left}.position, {right}.position, {limit})"
            empty = [
                f"{code} is None"
                for place, code in ((a, left), (b, right))
                if place in self._layout.optional
            ]
            parts.append(f"({' or '.join([*empty, test])})")
        return parts

    def _binding(self, side: Side) -> list[int]:
        """The places of a side that can bind an event."""
        silent = silent_places(self._joint)
        return [at for at in range(side.operand.low, side.operand.high) if at not in silent]

    def _cross(self) -> list[tuple[int, int]]:
        return [(a, b) for a in self._binding(self._left) for b in self._binding(self._right)]
