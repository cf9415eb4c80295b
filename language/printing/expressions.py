"""Values, expressions, sets and regions as text, with as few parentheses as the meaning allows."""

from __future__ import annotations

from decimal import Decimal

from language import tree
from language.lexicon import PLACE_NAME, PLAIN_NAME, RESERVED

_UNITS = (
    (86_400_000, "day", "days"),
    (3_600_000, "h", "h"),
    (60_000, "min", "mins"),
    (1_000, "s", "s"),
    (1, "ms", "ms"),
)
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGNED, _PRIMARY = range(8)
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
_LAST_OF_FOUR_DIGITS = 0xFFFF


def name_text(name: str) -> str:
    """A name, in backticks where it needs them."""
    if name in RESERVED or PLAIN_NAME.fullmatch(name) is None:
        return f"`{name}`"
    return name


def place_text(name: str) -> str:
    """The name of a subscription, subscriber or actor."""
    return f"`{name}`" if name == "nearest" or PLACE_NAME.fullmatch(name) is None else name


def duration_text(duration_ms: int) -> str:
    """A duration in the greatest unit that divides it."""
    if duration_ms == 0:
        return "0 s"
    size, singular, many = next(unit for unit in _UNITS if duration_ms % unit[0] == 0)
    count = duration_ms // size
    return f"{count} {singular if abs(count) == 1 else many}"


def distance_text(distance_m: float) -> str:
    """A distance in whole kilometres, else in metres."""
    if distance_m and distance_m % 1_000 == 0:
        return f"{_plain(distance_m / 1_000)} km"
    return f"{_plain(distance_m)} m"


def string_text(value: str) -> str:
    """A text constant in double quotes."""
    return '"' + "".join(map(_escaped, value)) + '"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable() or ord(character) > _LAST_OF_FOUR_DIGITS:
        return character
    return f"\\u{ord(character):04x}"


def _plain(value: float) -> str:
    """A number without an exponent, and without `.0`."""
    text = format(Decimal(repr(value)), "f")
    return text.removesuffix(".0")


def _degrees(value: float) -> str:
    return repr(value).removesuffix(".0")


def constant_text(node: tree.Constant) -> str:
    """A number, text, truth value, duration or distance."""
    value = node.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return string_text(value)
    if node.unit == "ms":
        return duration_text(int(value))
    if node.unit == "m":
        return distance_text(value)
    return repr(value)


def set_text(node: tree.SetLiteral) -> str:
    """`{1, 2}`."""
    return "{" + ", ".join(map(constant_text, node.members)) + "}"


def region_text(node: tree.RegionLiteral) -> str:
    """`circle(45.87, 7.17, 3 km)` and the like."""
    if node.shape == "path":
        return f"path({string_text(node.path)})"
    write = distance_text if node.metric else _degrees
    parts = [write(number) for number in node.numbers]
    if node.shape == "circle":
        parts[-1] = distance_text(node.numbers[-1])
    return f"{node.shape}({', '.join(parts)})"


def container_text(node: tree.SetLiteral | tree.RegionLiteral | tree.Name) -> str:
    """Return the text that stands after `in`."""
    if isinstance(node, tree.SetLiteral):
        return set_text(node)
    if isinstance(node, tree.RegionLiteral):
        return region_text(node)
    return name_text(node.name)


def expression_text(node: tree.Expression) -> str:
    """An expression."""
    return _write(node, _OR)


def _write(node: tree.Expression, least: int) -> str:
    level, text = _leveled(node)
    return f"({text})" if level < least else text


def _leveled(node: tree.Expression) -> tuple[int, str]:
    """The text of a node and how tightly it holds together."""
    if isinstance(node, tree.Logical):
        level = _OR if node.operator == "or" else _AND
        parts = [_write(operand, level + 1) for operand in node.operands]
        return level, f" {node.operator} ".join(parts)
    if isinstance(node, tree.Comparison):
        text = _write(node.operands[0], _SUM)
        for operator, operand in zip(node.operators, node.operands[1:], strict=True):
            text += f" {operator} {_write(operand, _SUM)}"
        return _COMPARISON, text
    if isinstance(node, tree.Membership):
        text = f"{_write(node.item, _SUM)} in {container_text(node.container)}"
        return _COMPARISON, text
    if isinstance(node, tree.Arithmetic):
        level = _SUM if node.operator in "+-" else _PRODUCT
        left, right = _write(node.left, level), _write(node.right, level + 1)
        return level, f"{left} {node.operator} {right}"
    if isinstance(node, tree.Unary):
        if node.operator == "not":
            return _NOT, f"not {_write(node.operand, _NOT)}"
        return _SIGNED, f"-{_write(node.operand, _SIGNED)}"
    if isinstance(node, tree.Constant):
        text = constant_text(node)
        return _SIGNED if text[0] == "-" else _PRIMARY, text
    return _PRIMARY, _primary(node)


def _primary(node: tree.Name | tree.Attribute | tree.Lookup | tree.Call) -> str:
    if isinstance(node, tree.Name):
        return name_text(node.name)
    if isinstance(node, tree.Attribute):
        base = "group" if node.base == "group" else name_text(node.base)
        return f"{base}.{name_text(node.name)}"
    if isinstance(node, tree.Lookup):
        key = expression_text(node.key)
        return f"{name_text(node.table)}[{key}].{name_text(node.column)}"
    arguments = ", ".join(map(expression_text, node.arguments))
    return f"{name_text(node.function)}({arguments})"
