"""What the value of a metric means, given its type.

Owns Sparkplug B's types and how a field of the wire carries them. Must not know names or births.
Invariant: a value is one that the carrier can hold for that type, or a `Fault` that says what was
found; nothing is ever cut to fit.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

DATETIME = 13
FIRST_ARRAY, LAST_ARRAY = 22, 34

# Bits, and whether there is a sign. A time is milliseconds since the epoch, and may lie before it.
WHOLE: Final[dict[int, tuple[int, bool]]] = {
    1: (8, True),
    2: (16, True),
    3: (32, True),
    4: (64, True),
    5: (8, False),
    6: (16, False),
    7: (32, False),
    8: (64, False),
    DATETIME: (64, True),
}
_IN_ORDER = (
    "Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64 Float Double Boolean String DateTime Text "
    "UUID DataSet Bytes File Template"
)
NAMES: Final[dict[int, str]] = dict(enumerate(_IN_ORDER.split(), start=1))
# The types whose values a carrier holds as they are.
_PLAIN: Final[dict[str, frozenset[int]]] = {
    "float_value": frozenset({9, 10}),
    "double_value": frozenset({9, 10}),
    "boolean_value": frozenset({11}),
    "string_value": frozenset({12, 14, 15}),
    "bytes_value": frozenset({17, 18}),
}
_CARRIER_BITS: Final = {"int_value": 32, "long_value": 64}


class Fault(NamedTuple):
    """A value that is none; `problem` says what is wrong with it."""

    problem: str


class Several(NamedTuple):
    """A value that holds several; `kind` is what it is called."""

    kind: str


def value_of(carrier: str, value: Any, datatype: int | None) -> Any:
    """The value that a field carries: a bool, int, float, str or bytes, a Fault or Several.

    `datatype` None is not known; then only what says itself what it is can be read.
    """
    if carrier in {"dataset_value", "template_value", "extension_value"}:
        return Several(carrier.removesuffix("_value"))
    if datatype is not None and FIRST_ARRAY <= datatype <= LAST_ARRAY:
        return Several("array")
    if carrier in _CARRIER_BITS:
        return _whole(carrier, value, datatype)
    if datatype in NAMES and datatype not in _PLAIN[carrier]:
        return Fault(f"found {_called(carrier)} where the type is {NAMES[datatype]}")
    return value


def _whole(carrier: str, value: int, datatype: int | None) -> int | Fault:
    """The whole number; one below 0 is two's complement, of its type's bits or of the field's."""
    if datatype not in WHOLE:
        if datatype in NAMES:
            return Fault(f"found {_called(carrier)} where the type is {NAMES[datatype]}")
        return Fault("found a whole number without a type, which only the birth tells")
    bits, signed = WHOLE[datatype]
    half, whole = 1 << (bits - 1), 1 << bits
    if value < (half if signed else whole):
        return value
    if signed and value < whole:
        return value - whole
    beyond = value - (1 << _CARRIER_BITS[carrier])
    if signed and beyond >= -half:
        return beyond
    return Fault(f"found {value}, which is beyond {NAMES[datatype]}")


def _called(carrier: str) -> str:
    return {
        "int_value": "a whole number",
        "long_value": "a whole number",
        "boolean_value": "a truth value",
        "string_value": "a text",
        "bytes_value": "bytes",
    }.get(carrier, "a number with a fraction")
