"""Functions generated for one windowed detect: taking events, folding, sliding, assigning.

Owns the source text. Must not know windows' bounds or when they close. Invariant: each function is
compiled once for each shape; per event nothing of the tree is walked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker.engine.event.event import INT64_MAX, INT64_MIN, slot_of
from broker.engine.event.expressions import Writer, as_float, attribute_code, finite
from broker.engine.event.source import Constants, build
from broker.engine.filter.conditions import slots_read
from broker.engine.window.aggregates import Bag, Distinct, Ends, Extreme, Tally
from broker.engine.window.aggregates_moving import (
    Ascending,
    Greatest,
    Least,
    Ordered,
    ScatteredEnds,
    SlidingEnds,
    SlidingGreatest,
    SlidingLeast,
)
from broker.engine.window.bound import WINDOW
from broker.engine.window.exact import Moments, WholeMoments
from broker.engine.window.plan import Aggregation, Argument, Keeping, Names, OperandNames
from language.tree import Assignment, Attribute, Call, Name

Fold = Callable[[list[Any], Sequence[Any]], None]
Slide = Callable[[list[Any], Any], None]

SPAN_CODE = {"timestamp": "end", "start": "start", "end": "end"}
WINDOW_CODE = {"start": "opens", "end": "closes"}
HEADER_TIMES = ("timestamp", "start", "end")
HEADER_FIELDS = ("location", "source", "position")


# --- what is kept ----------------------------------------------------------------------------


def new_in_pane(keeping: Keeping) -> Any:
    """An empty thing kept by a pane."""
    what = keeping.what
    if what in ("moments", "squares"):
        return _new_moments(keeping)
    if what in ("least", "greatest"):
        return Extreme(greatest=what == "greatest")
    return {"tally": Tally, "bag": Bag, "distinct": Distinct, "ends": Ends, "ordered": Ordered}[
        what
    ]()


def new_sliding(keeping: Keeping) -> Any:
    """An empty thing kept by a sliding window."""
    if keeping.what in ("moments", "squares"):
        return _new_moments(keeping)
    if keeping.scattered and keeping.what in SCATTERED:
        return SCATTERED[keeping.what]()
    return {
        "tally": Tally,
        "bag": Ascending,
        "distinct": Distinct,
        "least": SlidingLeast,
        "greatest": SlidingGreatest,
        "ends": SlidingEnds,
        "ordered": Ordered,
    }[keeping.what]()


OF_EVENTS = frozenset({"ends", "ordered"})  # what is told the events that values are from
SCATTERED = {"least": Least, "greatest": Greatest, "ends": ScatteredEnds}


def _new_moments(keeping: Keeping) -> Moments:
    made = WholeMoments if keeping.whole else Moments
    return made(squared=keeping.what == "squares")


# --- taking values ---------------------------------------------------------------------------


def argument_code(argument: Argument, names: Names, constants: Constants) -> tuple[str, bool]:
    """Code of an argument's value of the event in `e`, and whether it may be null."""
    if isinstance(argument.value, Name | Attribute):
        reference = names.argument_scope().reference(argument.value)
        assert reference is not None, "a name is no call"
        return reference
    code = Writer(names.argument_scope(), constants).value(argument.value)
    if argument.kind == "float":
        # What is computed may be an integer (`min(x.i, x.f)`), or beyond a float's range.
        code = f"{constants.helper('as_float', as_float)}({code})"
    return code, True


def compile_fold(aggregation: Aggregation, names: Names, leaf: int) -> Fold | None:
    """A function of (what is kept, events) that takes a run of a leaf's events."""
    constants = Constants()
    lines = ["def fold(k, events):"]
    for argument in aggregation.arguments:
        if argument.leaf == leaf:
            code, nullable = argument_code(argument, names, constants)
            taken = _fold_lines(argument, code, nullable)
            slot = code.removeprefix("e.")
            if [*argument.kept] == ["moments"] and argument.kind == "float" and slot.isidentifier():
                at = argument.kept["moments"]
                lines.append(f"    if not k[{at}].take_read(events, {slot!r}):")
                taken = [f"    {line}" for line in taken]
            lines += taken
    if len(lines) == 1:
        return None
    return build("\n".join(lines) + "\n", "fold", constants)


def _fold_lines(argument: Argument, code: str, nullable: bool) -> list[str]:
    ends = [at for what, at in argument.kept.items() if what in OF_EVENTS]
    others = [at for what, at in argument.kept.items() if what not in OF_EVENTS]
    if not nullable:
        lines = [f"    values = [{code} for e in events]", "    from_events = events"]
    elif not ends:
        lines = [f"    values = [v for e in events if (v := {code}) is not None]"]
    else:
        lines = [
            f"    pairs = [(v, e) for e in events if (v := {code}) is not None]",
            "    values = [v for v, _ in pairs]",
            "    from_events = [e for _, e in pairs]",
        ]
    takes = [f"        k[{at}].take(values)" for at in others]
    takes += [f"        k[{at}].take_of(values, from_events)" for at in ends]
    return [*lines, "    if values:", *takes]


def compile_slide(aggregation: Aggregation, names: Names, leaf: int, method: str) -> Slide:
    """A function of (what is kept, event) that adds the event's values, or removes them."""
    constants = Constants()
    lines = ["def slide(k, e):"]
    for argument in aggregation.arguments:
        if argument.leaf != leaf:
            continue
        code, nullable = argument_code(argument, names, constants)
        indent = "        " if nullable else "    "
        lines += [f"    v = {code}", *(["    if v is not None:"] if nullable else [])]
        for what, at in argument.kept.items():
            # Where values come in any order, the first and the last are told by their events.
            of = what == "ordered" or (what == "ends" and names.scattered(leaf))
            lines.append(f"{indent}k[{at}].{method}{'_of(v, e)' if of else '(v)'}")
    return build("\n".join([*lines, "    return"]) + "\n", "slide", constants)


# --- groups ----------------------------------------------------------------------------------


def key_lines(names: OperandNames) -> list[str]:
    """Lines, within a loop over events `e`, that set `key` or go on where it is null.

    A key is the value itself where there is one, else a tuple. Floats lose the sign of zero, and
    integers that meet floats become such, so that equal keys are the same however they came.
    """
    lines = []
    parts = []
    for at, name in enumerate(names.keys):
        code, nullable = attribute_code("e", name)
        part = f"key{at}"
        parts.append(part)
        lines.append(f"{part} = {code}")
        if nullable:
            lines.append(f"if {part} is None: continue")
        if names.key_kind(at) == "float":
            lines.append(f"{part} += 0.0")
    key = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
    return [*lines, f"key = {key}"]


def key_slots(names: OperandNames) -> tuple[str, ...] | None:
    """The slots of the parts of a key that `key_lines` sets; None where one is made first."""
    if any(names.key_kind(at) == "float" for at in range(len(names.keys))):
        return None
    return slots_read(names.keys)


def group_of(key: Any, names: OperandNames) -> tuple[Any, ...]:
    """The group as a tuple."""
    return (key,) if len(names.keys) == 1 else key


# --- assigning -------------------------------------------------------------------------------


class AssignScope:
    """Names in a window's `assign`: aggregates, `group`, the span in `start` and `end`, and the
    window's first instant and the one after its last in `opens` and `closes`.
    """

    def __init__(
        self, aggregation: Aggregation, keys: tuple[str, ...], constants: Constants
    ) -> None:
        self._aggregation = aggregation
        self._keys = keys
        self._constants = constants
        self.lines: list[str] = []  # each result is taken once, before the values
        self._locals: dict[str, str] = {}

    def reference(self, node: Name | Attribute | Call) -> tuple[str, bool] | None:
        """See expressions.Scope."""
        if isinstance(node, Call):
            return self._result(node)
        if isinstance(node, Name):
            if node.name not in SPAN_CODE:
                raise ValueError(f"`{node.name}` has one value only within an aggregate")
            return SPAN_CODE[node.name], False
        if node.base == WINDOW and node.name in WINDOW_CODE:
            return WINDOW_CODE[node.name], False
        if node.base != "group":
            raise ValueError(f"`{node.base}.{node.name}` has one value only within an aggregate")
        return f"g[{self._keys.index(node.name)}]", False

    def _result(self, call: Call) -> tuple[str, bool] | None:
        result = self._aggregation.result(call)
        if result is None:
            return None
        name = self._locals.get(repr(call))
        if name is None:
            name = self._locals[repr(call)] = f"r{len(self._locals)}"
            added = {label: self._constants.add(value) for label, value in result.constants}
            self.lines.append(f"    {name} = {result.code.format(**added)}")
        return name, result.nullable


def compile_assign(
    assignments: tuple[Assignment, ...], aggregation: Aggregation, keys: tuple[str, ...]
) -> Callable[[list[Any], list[int], tuple[Any, ...], int, int, int, int], tuple[Any, ...]]:
    """A function of (what is kept, events of each leaf, group, start and end of the span, the
    window's start and end) → the values.
    """
    constants = Constants()
    scope = AssignScope(aggregation, keys, constants)
    writer = Writer(scope, constants)
    constants.helper("finite", finite)
    values = [
        f"    v{at} = finite({writer.value(item.value)})" for at, item in enumerate(assignments)
    ]
    names = "".join(f"v{at}, " for at in range(len(assignments)))
    head = "def assign(k, n, g, start, end, opens, closes):"
    lines = [head, *scope.lines, *values, f"    return ({names})"]
    return build("\n".join(lines) + "\n", "assign", constants)


# --- making events ---------------------------------------------------------------------------


def compile_make(
    assignments: tuple[Assignment, ...],
    output: type[Any],
    kinds: dict[str, str],
    given: dict[str, int],
    of_events: frozenset[str],
) -> Callable[..., Any]:
    """A function of (assigned values, start and end where no time is assigned, ε there and that of
    the events, (certainty, constituents, lineage), tie, id) → an event of the output's type.

    Times are put in place after all is evaluated; null leaves what was. Those `of_events` come of
    events, and their ε with them. What is no attribute of the type is left out; `given` are
    attributes that all the events have.
    """
    constants = Constants()
    for name, helper in (("as_float", as_float), ("as_int", as_int), ("as_ms", as_ms)):
        constants.helper(name, helper)
    constants.helper("output", output)
    at_of = {item.name: at for at, item in enumerate(assignments)}
    lines = ["def make(v, start, end, uncertainty, most, told, tie, id):"]
    for name in HEADER_TIMES:
        if name in at_of:
            target = "start = end" if name == "timestamp" else name
            lines.append(f"    t = as_ms(v[{at_of[name]}])")
            lines.append(f"    if t is not None: {target} = t")
            if name in of_events:
                lines.append("    if t is not None: uncertainty = most")
    fields = ["start=start", "end=end", "uncertainty=uncertainty", "tie=tie", "id=id"]
    # Lists of ids that are made only where they are compared stand in for tuples.
    told = ("certainty", "constituents", "lineage")
    fields += [f"{name}=told[{at}]" for at, name in enumerate(told)]
    fields += [f"{name}=v[{at_of[name]}]" for name in HEADER_FIELDS if name in at_of]
    fields += [f"a_{name}={constants.add(value)}" for name, value in given.items()]
    for name, kind in kinds.items():
        if name not in at_of or name in given:
            continue
        converter = {"float": "as_float", "int": "as_int"}.get(kind, "")
        code = f"{converter}(v[{at_of[name]}])"
        fields.append(f"{slot_of(name)}={code}")
    lines.append(f"    return output({', '.join(fields)})")
    return build("\n".join(lines) + "\n", "make", constants)


def as_int(value: Any) -> int | None:
    """An integer as events carry it; null beyond signed 64 bits."""
    if value is None or not INT64_MIN <= value <= INT64_MAX:
        return None
    return int(value)


def as_ms(value: Any) -> int | None:
    """An assigned time in whole milliseconds, a part of one cut off; null beyond 64 bits."""
    return as_int(None if value is None else value // 1)
