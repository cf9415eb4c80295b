"""What a row of the table of routes is made of.

Owns these shapes. Must not know any route. Invariant: whatever a row says is said to people too, in
the OpenAPI description.
"""

from typing import Any

import msgspec

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NAMES: Schema = {"type": "array", "items": TEXT}


def shape_of(required: str, /, **properties: Schema) -> Schema:
    """An object schema; `required` lists the keys that are always there, with blanks between."""
    shape: Schema = {"type": "object", "properties": properties}
    if required:
        shape["required"] = required.split()
    return shape


class Answer(msgspec.Struct, frozen=True):
    """One response: its meaning, the schema's name and the media type, and others it may be of."""

    meaning: str
    schema: str = "Problem"
    media: str = "application/json"
    others: tuple[str, ...] = ()


class Parameter(msgspec.Struct, frozen=True):
    """A parameter in the path or behind the `?`, where it is optional unless `needed`."""

    name: str
    meaning: str
    where: str = "query"
    schema: Schema = msgspec.field(default_factory=lambda: TEXT)
    needed: bool = False


class Route(msgspec.Struct, frozen=True):
    """One row; `body` says what a body holds, and `media` of which types it may be."""

    method: str
    path: str
    name: str
    meaning: str
    answers: dict[int, Answer]
    parameters: tuple[Parameter, ...] = ()
    body: str = ""
    media: tuple[str, ...] = ("text/plain",)
