"""Readings that get their types when they are made, before anyone who takes them in is there.

Owns the guess at a reading's event type: the attributes that it has, with the types of their
values. Must not know who declares what. Invariant: an event given here is what intake would make of
the same mapping under a declaration of just these attributes, in this order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from broker.engine.ingest.decode import CONVERT_ERRORS
from broker.engine.ingest.normalise import on_earth
from broker.engine.ingest.registry import RESERVED, TypeForms, type_forms
from broker.engine.limits import Limits

if TYPE_CHECKING:
    from broker.engine.event.event import Event
    from language.tree import AttributeType

SHAPES_MAX = 256  # of readings; those of further shapes are left to intake
KINDS: dict[type, AttributeType] = {
    float: "float",
    int: "int",
    str: "text",
    bool: "bool",
    bytes: "bytes",
}
_LIMITS = Limits()
_shapes: dict[tuple[Any, ...], TypeForms | None] = {}


def typed(said: Mapping[str, Any]) -> Event | None:
    """The reading that a mapping with the keys of the formats says; None where it is no plain one.

    Intake takes it as it is where its type is declared so, and decides about all others itself.
    """
    # The order of keys is part of the shape, as it is of a declaration.
    shape = (said["type"], tuple(said), tuple(map(type, said.values())))
    try:
        forms = _shapes[shape]
    except KeyError:
        forms = _forms(shape)
    except TypeError:  # a type that cannot be one
        return None
    if forms is None:
        return None
    try:
        event: Event = msgspec.convert(said, forms.exact)
    except CONVERT_ERRORS:
        return None
    place: Any = event.position
    if place is not None and not (place.__class__ is list and on_earth(place)):
        return None
    if not forms.plain(event):
        return None
    event.start = event.end
    return event


def _forms(shape: tuple[Any, ...]) -> TypeForms | None:
    if len(_shapes) >= SHAPES_MAX:
        return None
    _shapes[shape] = found = _guessed(*shape)
    return found


def _guessed(name: Any, keys: tuple[str, ...], classes: tuple[type, ...]) -> TypeForms | None:
    kinds = [
        (key, KINDS.get(kind))
        for key, kind in zip(keys, classes, strict=True)
        if key not in RESERVED
    ]
    attributes = tuple([(key, kind) for key, kind in kinds if kind is not None])
    if len(attributes) < len(kinds) or len(attributes) > _LIMITS.attributes_max:
        return None
    if name.__class__ is not str or not name.isidentifier():
        return None
    return type_forms(name, attributes, _LIMITS)
