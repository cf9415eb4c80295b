"""A windowed case, compiled: its operands, limits, and the functions generated for them.

Owns the source text of folding, sliding, assigning and making events, and the limits of a window.
Must not know when windows close. Invariant: a shape holds no events, so its agents may be restored
from any snapshot of the same case; each function is compiled once, and per event nothing of the
tree is walked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, ItemsView, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from broker.engine.event.event import INT64_MAX, INT64_MIN, slot_of
from broker.engine.event.expressions import Writer, as_float, attribute_code, finite
from broker.engine.event.source import Constants, build
from broker.engine.window.aggregates import KINDS, hashable, kind_named
from broker.engine.window.assigners import Grid
from broker.engine.window.bound import WINDOW
from broker.engine.window.constituents import IDS_CROWDED, IDS_MAX, Lineage
from broker.engine.window.plan import Aggregation, Argument, Names, OperandNames
from language.functions import AGGREGATES, is_aggregate
from language.taskgraph import Task
from language.tree import Assignment, Attribute, Call, Case, Expression, Name, Node
from language.walk import descendants

if TYPE_CHECKING:
    from broker.engine.window.partials import Partial

Fold = Callable[[list[Any], Sequence[Any]], None]
Slide = Callable[[list[Any], Any], None]
# Of (a group's summary, the group, the window's start and end): the values.
Assign = Callable[[Any, tuple[Any, ...], int, int], tuple[Any, ...]]

SPAN_CODE = {"timestamp": "end", "start": "start", "end": "end"}
WINDOW_CODE = {"start": "opens", "end": "closes"}
HEADER_TIMES = ("timestamp", "start", "end")
HEADER_FIELDS = ("location", "source", "position")
LAST_INSTANT = "first, last, uncertainty = closes - 1, closes - 1, 0"
CONVERTERS = {"float": "as_float", "int": "as_int"}  # by what takes a value to such an attribute


GROUPS_MAX = 100_000  # open (window, group) pairs of one agent: some 100 MB of running sums
EVENTS_MAX = 1_000_000  # events, or values kept for quantiles and distinct counts, of one agent
DURATION_MAX_MS = 7 * 86_400_000  # how long an input event may last

GROUPS_OVERFLOW = "window_groups_overflow"
EVENTS_OVERFLOW = "window_events_overflow"
CLOSED = "window_closed"
IDS_CUT = "window_ids_cut"  # groups whose lists of ids were kept short: ties may go another way
INVERTED = "start_after_end"
OUTSIDE = "outside_window"  # an assigned time puts the event outside its window


@dataclass(frozen=True, slots=True)
class WindowLimits:
    """Limit what one agent may hold; groups and events beyond are refused, and counted."""

    groups_max: int = GROUPS_MAX
    events_max: int = EVENTS_MAX
    duration_max_ms: int = DURATION_MAX_MS

    @property
    def roomy(self) -> int:
        """Return up to how many open groups IDS_MAX events of each are kept for order."""
        return self.events_max // (2 * IDS_MAX)

    def ids(self, groups: int) -> int:
        """Return how many events of each group are kept for order, with so many groups open."""
        return IDS_MAX if groups <= self.roomy else IDS_CROWDED


# --- the case ---------------------------------------------------------------------------------


class Shape:
    """The operands, groups and aggregates of one windowed case."""

    def __init__(self, task: Task, case: Case) -> None:
        self.names = OperandNames(case, task.types)
        self.aggregation = Aggregation(case.assign, self.names)
        operands = self.names.operands
        self.leaves = range(len(operands))
        self._asked = tuple(leaf for leaf in self.leaves if not operands[leaf].outer)
        self.single = len(operands) == 1
        # Whether groups may be lists of events, of which arguments are made for each window anew:
        # a function of the user's own is called once for an event.
        arguments = [argument.value for argument in self.aggregation.arguments]
        own = [each for value in arguments for each in descendants(value) if _is_given(each)]
        self.whole = self.single and not own
        self._always = not self._asked or self.single  # a group has an event
        self.distinct_keys = [_distinct_key(operand.distinct) for operand in operands]
        self.distinct = any(key is not None for key in self.distinct_keys)
        # Only detected events can be of less than full certainty.
        self.detected = [operand.event_type in task.needs for operand in operands]
        # Of sure instants in order the first and the last tell all that is told of their times.
        self.simple = self.whole and not any(self.detected)
        self.growing = [self._growing(leaf) for leaf in self.leaves]
        self.new_in_pane = compile_new(self.aggregation, "in_pane")
        self.new_sliding = compile_new(self.aggregation, "sliding")
        self.grows = any(self.growing)

    @cached_property
    def folds(self) -> list[Fold | None]:
        """For each leaf, the function that takes a run of its events into what a pane keeps."""
        return [compile_fold(self.aggregation, self.names, leaf) for leaf in self.leaves]

    def fold(self, leaf: int, kept: list[Any], events: Sequence[Any]) -> None:
        """Take a run of a leaf's events into what a pane keeps."""
        fold = self.folds[leaf]
        if fold is not None:
            fold(kept, events)

    def slides(self, method: str) -> list[Slide]:
        """For each leaf, the function that adds an event to what slides, or removes it."""
        return [compile_slide(self.aggregation, self.names, leaf, method) for leaf in self.leaves]

    def stands(self, counts: list[int]) -> bool:
        """Return True if every operand not `outer` has an event (if all are outer, any has)."""
        return self._always or all(counts[leaf] for leaf in self._asked)

    def standing(self, groups: ItemsView[Any, Partial]) -> Collection[tuple[Any, Partial]]:
        """Return the groups that stand, with their keys."""
        return groups if self._always else [each for each in groups if self.stands(each[1].counts)]

    def grown(self, counts: list[int]) -> int:
        """Return how many values are kept of so many events of each leaf."""
        if not self.grows:
            return 0
        pairs = zip(counts, self.growing, strict=True)
        return sum([count * growing for count, growing in pairs])

    def _growing(self, leaf: int) -> int:
        """Return how many values are kept for each event of a leaf."""
        return sum(
            KINDS[what].grows
            for argument in self.aggregation.arguments
            if argument.leaf == leaf
            for what in argument.kept
        )


def _is_given(node: Node) -> bool:
    return isinstance(node, Call) and node.own is not None


def _distinct_key(names: tuple[str, ...] | None) -> Callable[[Any], Any] | None:
    """A function of an event: its keys, None where one is null, which equals nothing."""
    if names is None:
        return None
    constants = Constants()
    constants.helper("hashable", hashable)
    lines = ["def key_of(e):"]
    for part, name in enumerate(names):
        code, nullable = attribute_code("e", name)
        lines.append(f"    k{part} = hashable({code})")
        if nullable:
            lines.append(f"    if k{part} is None: return None")
    parts = "".join(f"k{part}, " for part in range(len(names)))
    lines.append(f"    return {'k0' if len(names) == 1 else f'({parts})'}")
    return build("\n".join(lines) + "\n", "key_of", constants)


# --- accumulators -----------------------------------------------------------------------------


def compile_new(aggregation: Aggregation, where: str) -> Callable[[], list[Any]]:
    """Return a function that makes the empty accumulators of a group, `in_pane` or `sliding`.

    It is generated, as a window of few events spends as long on making as on taking: a list with
    two calls costs a quarter of a loop over a table.
    """
    constants = Constants()
    calls = []
    for keeping in aggregation.keepings:
        kind = kind_named(keeping.what, whole=keeping.whole)
        scattered = keeping.scattered and where == "sliding"
        make = kind.scattered if scattered else getattr(kind, where)
        calls.append(f"{constants.add(make)}()")
    return build(f"def new():\n    return [{', '.join(calls)}]\n", "new", constants)


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
    ends = [at for what, at in argument.kept.items() if KINDS[what].of_events]
    others = [at for what, at in argument.kept.items() if not KINDS[what].of_events]
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


def compile_take(names: OperandNames, grid: Grid, leaf: int) -> Callable[..., None]:
    """Return a function of (events, windows) that sets a leaf's events aside by pane and key.

    An event costs one look into a dict and an append; what is kept of it is made out in runs (see
    panes.Pane), which is cheaper than one by one.
    """
    constants = Constants()
    body = [
        *key_lines(names),
        "end = e.end",
        # Events of one pane mostly follow each other: two comparisons tell, a division costs more.
        "if not low <= end < high:",
        *(f"    {line}" for line in grid.pane_lines(constants)),
        f"    pending = windows.pending_of(pane, {leaf})",
        "    if pending is None:",
        "        windows.pass_over(pane)",
        "        low = high = 0",
        "        continue",
        # Asked first, as a window of few events has as many groups: each would be an exception.
        "put = pending.get(key)",
        "if put is None:",
        f"    put = windows.open_group(pane, {leaf}, key)",
        "    if put is None: continue",
        "put.append(e)",
    ]
    head = ["def take(events, windows):", "    low = high = 0"]
    lines = [*head, "    for e in events:", *(f"        {line}" for line in body)]
    return build("\n".join(lines) + "\n", "take", constants)


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
            of = method == "add" and KINDS[what].of_events
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


def group_of(key: Any, names: OperandNames) -> tuple[Any, ...]:
    """The group as a tuple."""
    return (key,) if len(names.keys) == 1 else key


# --- assigning -------------------------------------------------------------------------------


class AssignScope:
    """Names in a window's `assign`: aggregates, `group`, the span in `start` and `end`, and the
    window's first instant and the one after its last in `opens` and `closes`.
    """

    def __init__(
        self,
        aggregation: Aggregation,
        keys: tuple[str, ...],
        constants: Constants,
        lacking: tuple[str, ...] = (),
    ) -> None:
        self._aggregation = aggregation
        self._lacking = lacking
        self._keys = keys
        self._constants = constants
        self.lines: list[str] = []  # each result is taken once, before the values
        self._locals: dict[str, str] = {}

    def reference(self, node: Name | Attribute | Call) -> tuple[str, bool] | None:
        """Implement expressions.Scope."""
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
        if repr(call) in self._lacking:
            return "None", True
        name = self._locals.get(repr(call))
        if name is None:
            name = self._locals[repr(call)] = f"r{len(self._locals)}"
            added = {label: self._constants.add(value) for label, value in result.constants}
            self.lines.append(f"    {name} = {result.code.format(**added)}")
        return name, result.nullable


def _is_result(value: Expression, kind: str = "") -> bool:
    """Return True for a plain aggregate, which is never infinite, and of that type if one is given.

    Then nothing has to be asked of the value: a look costs more than the aggregate of few events.
    """
    if not isinstance(value, Call) or value.own is not None or not is_aggregate(value):
        return False
    return kind in ("", AGGREGATES[value.function].result)


@dataclass(frozen=True, slots=True)
class Assigning:
    """The values to assign from the aggregates over a group that has these keys."""

    assignments: tuple[Assignment, ...]
    aggregation: Aggregation
    keys: tuple[str, ...]

    def compile(self, lacking: tuple[str, ...] = ()) -> Assign:
        """Return a function that gives the values; aggregates that are `lacking` are null in it."""
        constants = Constants()
        lines = self.lines(constants, lacking)
        names = "".join(f"v{at}, " for at in range(len(self.assignments)))
        lines = ["def assign(s, g, opens, closes):", *lines, f"    return ({names})"]
        return build("\n".join(lines) + "\n", "assign", constants)

    def lines(self, constants: Constants, lacking: tuple[str, ...]) -> list[str]:
        """Return lines that set `v0`, `v1`, … to the values of the summary `s`."""
        scope = AssignScope(self.aggregation, self.keys, constants, lacking)
        writer = Writer(scope, constants)
        constants.helper("finite", finite)
        values = []
        for at, item in enumerate(self.assignments):
            code = writer.value(item.value)
            values.append(f"    v{at} = {code if _is_result(item.value) else f'finite({code})'}")
        read = ["    n, start, end = s.counts, s.start, s.end"]
        read += ["    k = s.kept"] if any("k[" in line for line in scope.lines) else []
        return [*read, *scope.lines, *values]


# --- making events ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EventForm:
    """The parts of an event of a window: its values, its type and its times.

    `kinds` are the types of the attributes of `output`, `given` those that all events have. The
    event `spans` its group's events, or else is the last instant of its window. Assigned times
    `of_events` come of events, and their ε with them.
    """

    assigning: Assigning
    output: type[Any]
    kinds: Mapping[str, str]
    given: Mapping[str, int]
    spans: bool
    of_events: frozenset[str]

    def compile(self, lacking: tuple[str, ...] = ()) -> Callable[..., Any]:
        """Return a function of a group's summary, its group, the window's start and end, the event
        that closes it, tie and budget → an event.

        Times are put in place after all is evaluated; null leaves what was. What is no attribute
        of the type is left out.
        """
        constants = Constants()
        for name, helper in (("as_float", as_float), ("as_int", as_int), ("as_ms", as_ms)):
            constants.helper(name, helper)
        constants.helper("output", self.output)
        constants.helper("Lineage", Lineage)
        lines = ["def make(s, g, opens, closes, closing, tie, budget):"]
        lines += self.assigning.lines(constants, lacking)
        spans = "first, last, uncertainty = start, end, s.uncertainty"
        lines.append(f"    {spans if self.spans else LAST_INSTANT}")
        items = enumerate(self.assigning.assignments)
        item_of = {item.name: (f"v{at}", item.value) for at, item in items}
        for name in HEADER_TIMES:
            if name in item_of:
                lines.append(f"    t = as_ms({item_of[name][0]})")
                target = {"timestamp": "first = last", "start": "first", "end": "last"}[name]
                lines.append(f"    if t is not None: {target} = t")
                if name in self.of_events:
                    lines.append("    if t is not None: uncertainty = s.uncertainty")
        fields = ["start=first", "end=last", "uncertainty=uncertainty", "tie=tie"]
        # Lists of ids that are made only where they are compared stand in for tuples.
        lines += ["    ids = s.constituents()", "    ids.budget = budget"]
        fields += ["constituents=ids", "lineage=Lineage(ids, closing)"]
        fields += ["certainty='maybe' if s.maybe else 'yes'"]
        fields += [f"{name}={item_of[name][0]}" for name in HEADER_FIELDS if name in item_of]
        fields += [f"a_{name}={constants.add(value)}" for name, value in self.given.items()]
        for name, kind in self.kinds.items():
            if name in item_of and name not in self.given:
                code, value = item_of[name]
                sure = kind not in CONVERTERS or _is_result(value, kind)
                fields.append(f"{slot_of(name)}={code if sure else f'{CONVERTERS[kind]}({code})'}")
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
