"""Specifications as text in the Headwater language.

Owns: how the tree of `spec` is written, with brackets wherever reading could go astray.
Must not know: what anything means; the text is the only thing that the code under test gets.
Invariant: equal trees give equal texts.
"""

from __future__ import annotations

from tests.oracles import spec as s

_OR, _AND, _NOT, _COMPARE, _ADD, _MULTIPLY, _UNARY, _SIMPLE = range(8)
_ARITH_LEVEL = {"+": _ADD, "-": _ADD, "*": _MULTIPLY, "/": _MULTIPLY}

_UNITS_MS = ((86_400_000, "day"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms"))


def duration(ms: int) -> str:
    """A duration in the largest unit that divides it."""
    if ms == 0:
        return "0 s"
    for size_ms, unit in _UNITS_MS:
        if ms % size_ms == 0:
            count = ms // size_ms
            plural = "s" if count != 1 and unit in {"day", "min"} else ""
            return f"{count} {unit}{plural}"
    raise AssertionError


def distance(metres: float) -> str:
    """A distance in whole kilometres where it is one, else in metres."""
    if metres % 1000 == 0 and metres:
        return f"{int(metres // 1000)} km"
    return f"{int(metres) if metres == int(metres) else metres} m"


def scalar(value: s.Scalar) -> str:
    """A literal; texts hold neither quotes nor backslashes, so that none need be escaped."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        assert not set(value) & {'"', "\\", "\n"}
        return f'"{value}"'
    text = repr(value)
    assert set(text) <= set("0123456789.-"), "no exponents"
    return text


def region(item: s.Region) -> str:
    """A region as written."""
    match item:
        case s.Circle(lat, lon, radius_m):
            return f"circle({scalar(lat)}, {scalar(lon)}, {distance(radius_m)})"
        case s.Box(lat_1, lon_1, lat_2, lon_2):
            return f"box({scalar(lat_1)}, {scalar(lon_1)}, {scalar(lat_2)}, {scalar(lon_2)})"
        case s.Polygon(corners):
            return f"polygon({', '.join(scalar(part) for corner in corners for part in corner)})"
        case s.PathRegion(path):
            return f"path({scalar(path)})"


def expression(item: s.Expr, level: int = _OR) -> str:
    """An expression, in brackets where it binds more loosely than `level` asks."""
    text, own = _expression(item)
    return f"({text})" if own < level else text


def _expression(item: s.Expr) -> tuple[str, int]:
    match item:
        case s.Arith(op, left, right):
            own = _ARITH_LEVEL[op]
            return f"{expression(left, own)} {op} {expression(right, own + 1)}", own
        case s.Negative(operand):
            return f"-{expression(operand, _SIMPLE)}", _UNARY
        case s.Not(operand):
            return f"not ({expression(operand)})", _NOT
        case s.AllOf(parts):
            return " and ".join(expression(part, _NOT) for part in parts), _AND
        case s.AnyOf(parts):
            return " or ".join(expression(part, _AND) for part in parts), _OR
        case s.Compare() | s.InSet() | s.InRegion():
            return _comparison(item), _COMPARE
    return _simple(item), _UNARY if _is_negative(item) else _SIMPLE


def _is_negative(item: s.Expr) -> bool:
    return isinstance(item, s.Lit) and not isinstance(item.value, str) and item.value < 0


def _simple(item: s.Lit | s.Duration | s.Ref | s.Aggregate | s.Call | s.Lookup) -> str:
    match item:
        case s.Lit(value):
            return scalar(value)
        case s.Duration(ms):
            return duration(ms)
        case s.Ref(alias, name):
            return f"{alias}.{name}" if alias else name
        case s.Aggregate(function, alias, attribute, quantile):
            of = ".".join(part for part in (alias, attribute) if part)
            more = "" if quantile is None else f", {scalar(quantile)}"
            return f"{function}({of}{more})"
        case s.Call(function, arguments):
            return f"{function}({', '.join(expression(one) for one in arguments)})"
        case s.Lookup(table, key, column):
            return f"{table}[{expression(key)}].{column}"


def _comparison(item: s.Compare | s.InSet | s.InRegion) -> str:
    match item:
        case s.Compare(ops, operands):
            parts = [expression(operands[0], _ADD)]
            for op, operand in zip(ops, operands[1:], strict=True):
                parts += [op, expression(operand, _ADD)]
            return " ".join(parts)
        case s.InSet(what, members):
            return f"{expression(what, _ADD)} in {_members(members)}"
        case s.InRegion(what, where):
            return (
                f"{expression(what, _ADD)} in {where if isinstance(where, str) else region(where)}"
            )


def _members(members: tuple[s.Scalar, ...] | str) -> str:
    if isinstance(members, str):
        return members
    return "{" + ", ".join(scalar(member) for member in members) + "}"


# --- patterns ---------------------------------------------------------------------------------

_P_SUFFIXED, _P_OR, _P_AND, _P_CHAIN, _P_PREFIX, _P_ATOM = range(6)


def pattern(item: s.Pattern, level: int = _P_SUFFIXED) -> str:
    """A pattern, in brackets where it binds more loosely than `level` asks."""
    text, own = _pattern(item)
    return f"({text})" if own < level else text


def _pattern(item: s.Pattern) -> tuple[str, int]:
    match item:
        case s.Atom():
            return f"{_bare(item)}{_alias(item)}", _P_ATOM
        case s.Listed() | s.Times() | s.Run():
            return _repeated(item), _P_ATOM
        case s.Or(left, right):
            return f"{pattern(left, _P_OR)} or {pattern(right, _P_AND)}", _P_OR
        case s.Pair(op, left, right):
            own = _P_AND if op == "and" else _P_CHAIN
            sides = pattern(left, own), pattern(right, own + 1)
            return f"{sides[0]} {op}{_options(item)} {sides[1]}", own
        case s.Without(left, right, ms):
            time = "" if ms is None else f"[{duration(ms)}]"
            sides = pattern(left, _P_CHAIN), pattern(right, _P_PREFIX)
            return f"{sides[0]} without{time} {sides[1]}", _P_CHAIN
        case s.Suffixed(operand, suffixes):
            text = pattern(operand, _P_OR)
            for number, part in enumerate(suffixes):
                if number and isinstance(suffixes[number - 1], s.Where):
                    text = f"({text})"  # `where` is the last of the suffixes
                text = f"{text} {_suffix(part)}"
            return text, _P_SUFFIXED
    return _prefixed(item), _P_PREFIX


def _prefixed(item: s.Prefixed) -> str:
    operand = pattern(item.operand, _P_ATOM)
    match item:
        case s.Absent(_, ms):
            return f"absent {operand} for {duration(ms)}"
        case s.Nth(k, _):
            return f"nth {k} {operand}"
        case s.Distinct(_, keys):
            return f"distinct({', '.join(keys)}) {operand}" if keys else f"distinct {operand}"
    return f"{type(item).__name__.lower()} {operand}"


def _repeated(item: s.Listed | s.Times | s.Run) -> str:
    sign = "*" if isinstance(item, s.Listed) and item.may_be_empty else "+"
    if isinstance(item, s.Times):
        sign = f"{{{item.count}}}"
    elif isinstance(item, s.Run):
        sign = f"+[{_bound(item.bound)}]"
    if isinstance(item.operand, s.Atom):
        return f"{_bare(item.operand)}{sign}{_alias(item.operand)}"
    return f"({pattern(item.operand)}){sign}"


def _bare(item: s.Atom) -> str:
    conditions = ", ".join(expression(part) for part in item.conditions)
    return f"{item.type}({conditions})" if conditions else item.type


def _alias(item: s.Atom) -> str:
    return f" as {item.alias}" if item.alias else ""


def _bound(item: s.Bound) -> str:
    return "..".join("" if end is None else duration(end) for end in (item.low_ms, item.high_ms))


def _options(item: s.Pair) -> str:
    parts = []
    if item.bound is not None:
        parts.append(_bound(item.bound))
    if item.next:
        parts.append("next")
    if item.context is not None:
        parts.append(item.context)
    return f"[{', '.join(parts)}]" if parts else ""


def _suffix(item: s.Suffix) -> str:
    match item:
        case s.Within(ms, None):
            return f"within {duration(ms)}"
        case s.Within(ms, start):
            return f"within {duration(ms)} from {start}"
        case s.Spread(metres):
            return f"spread {distance(metres)}"
        case s.In(where):
            return f"in {where if isinstance(where, str) else region(where)}"
        case s.Where(condition):
            return f"where {expression(condition)}"


# --- the file ---------------------------------------------------------------------------------


def text_of(spec: s.Spec) -> str:
    """The whole specification as one file."""
    parts = [
        f"event {one.name}({', '.join(f'{name}: {kind}' for name, kind in one.attributes)})"
        for one in spec.types
    ]
    parts += [f"set {name} = {_members(members)}" for name, members in spec.sets]
    parts += [f"region {name} = {region(item)}" for name, item in spec.regions]
    parts += [f"table {one.name} from {scalar(one.path)} key {one.key}" for one in spec.tables]
    parts += [_definition(one) for one in spec.definitions]
    parts += [_subscription(one) for one in spec.subscriptions]
    return "\n".join(parts) + "\n"


def _case(item: s.Case) -> list[str]:
    told = [item.context, item.thin, "maybe drop" if item.maybe_drop else None]
    options = ", ".join(one for one in told if one)
    lines = [f"detect{f'[{options}]' if options else ''} {pattern(item.pattern)}"]
    if item.assign:
        lines.append(f"assign {_assignments(item.assign)}")
    if item.consuming:
        lines.append(f"consuming {', '.join(item.consuming)}")
    if item.group_by:
        lines.append(f"group by {', '.join(item.group_by)}")
    return lines


def _assignments(assign: s.Assignments) -> str:
    return ", ".join(f"{name} = {expression(value)}" for name, value in assign)


def header_names(item: s.Definition) -> tuple[str, ...]:
    """What a definition's header lists: each name that a case or `post` assigns, once."""
    assigns = [item.post.assign] if item.post else [case.assign for case in item.cases]
    return tuple(dict.fromkeys(name for assign in assigns for name, _ in assign))


def _window(item: s.Window) -> str:
    match item:
        case s.Every(ms, None):
            return f" aggr every {duration(ms)}"
        case s.Every(ms, range_ms) if range_ms is not None:
            return f" aggr every {duration(ms)} range {duration(range_ms)}"
        case s.Trailing(range_ms):
            return f" aggr range {duration(range_ms)}"
        case s.Session(gap_ms, max_ms):
            most = "" if max_ms is None else f" max {duration(max_ms)}"
            return f" aggr session {duration(gap_ms)}{most}"
        case s.Days(count, zone):
            return f" aggr every {count} day{'s' if count > 1 else ''} in {scalar(zone)}"
    raise AssertionError


def _definition(item: s.Definition) -> str:
    window = _window(item.window) if item.window else ""
    if item.reported_ms is not None:
        window = f" every {duration(item.reported_ms)}"
    lines = [f"define {item.name}({', '.join(header_names(item))}){window}"]
    if item.post is not None:
        lines += ["pre", *_case(item.cases[0])]
        lines += ["post", f"where {_assignments(item.post.assign)}"]
        if item.post.group_by:
            lines.append(f"group by {', '.join(item.post.group_by)}")
    elif len(item.cases) == 1:
        lines += _case(item.cases[0])
    else:
        for number, case in enumerate(item.cases):
            lines += [f"case {number}:", *_case(case)]
    return "\n  ".join(lines)


def _subscription(item: s.Subscription) -> str:
    seq = f" seq {item.seq}" if item.seq != 1 else ""
    head = f"subscription {item.name}{seq} from {item.subscriber} to {item.actor}"
    if item.actor_of is not None:
        head += f" of group.{item.actor_of}"
    if item.for_ms is not None:
        head += f" for {duration(item.for_ms)}"
    elif item.until is not None:
        head += f" until {scalar(item.until)}"
    lines = [head, *_case(item.case)]
    if item.at_most is not None:
        lines.append(f"at most {item.at_most[0]} per {duration(item.at_most[1])}")
    return "\n  ".join(lines)
