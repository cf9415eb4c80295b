"""The words of the language: units, reserved words, the attributes that every event has.

Owns tables alone; knows neither grammar nor tree. Invariant: RESERVED is what the parser's tables
say (the words that can stand where a name can), plus `group`, which is always the key.
"""

from __future__ import annotations

import re

from language.relations import LINKS
from language.tree import WINDOW_PARTS

UNITS_MS: dict[str, int] = {
    "ms": 1,
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("day", "days"), 86_400_000),
    **dict.fromkeys(("week", "weeks"), 7 * 86_400_000),
}
UNITS_M: dict[str, int] = {"m": 1, "km": 1_000}

MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The comparison that says the same with its sides exchanged."""

RESERVED = frozenset(
    ("absent", "distinct", "false", "first", "group", "last", "nth", "not", "outer", "true")
)
"""A name that is one of these stands in backticks."""

KEYWORDS = frozenset(
    (
        *LINKS,
        *(word for word, part in WINDOW_PARTS.items() if part.beside is None),
        "aggr",
        "as",
        "assign",
        "at",
        "by",
        "case",
        "consuming",
        "define",
        "detect",
        "event",
        "for",
        "from",
        "in",
        "key",
        "lasts",
        "most",
        "of",
        "per",
        "post",
        "pre",
        "region",
        "seq",
        "set",
        "spread",
        "subscription",
        "table",
        "to",
        "until",
        "wait",
        "where",
        "within",
    )
)
"""Words of the grammar that are none where a name must stand."""

ATTRIBUTE_TYPES = ("int", "float", "text", "bool", "bytes")
SHAPES = ("circle", "box", "polygon", "path")

COMMON_ATTRIBUTES: dict[str, str] = {
    "location": "text",
    "source": "text",
    "position": "position",
    "timestamp": "int",
    "start": "int",
    "end": "int",
    "duration": "int",
}
"""What every event has, with its type; times in milliseconds."""

SOURCE_SYNONYM = "srcid"
"""Read as `source`, wherever an attribute is named."""

RESERVED_KEYS = frozenset((*COMMON_ATTRIBUTES, SOURCE_SYNONYM, "type", "id", "uncertainty"))
"""Keys of an event that no declared attribute may take."""

PLAIN_NAME = re.compile(r"[^\W\d]\w*")
QUOTED_NAME = re.compile(r"\w+(?:[- ]\w+)*")
PLACE_NAME = re.compile(r"[^\W\d]\w*(?:[-./]\w+)*")
