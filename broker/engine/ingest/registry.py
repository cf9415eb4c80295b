"""The declared event types, and the classes that their payloads are decoded into.

Owns which attributes each primitive type has, over all specifications that declare it. Must not
know payloads, brokers or what the events are for. Invariant: an attribute has one type, whoever
declares it; events taken in before a type gained an attribute read it as null.

A type has three struct classes of one layout, so that an event's class can be set afterwards:

- *exact*: a reading with an id, an integer `timestamp` and declared attributes alone. Decoding does
  nearly all checks. All events that leave intake are of this class.
- *loose*: the same, other keys are passed over.
- *lenient*: whatever the formats allow; what is missing is filled in and checked one by one.

A program's own readings may get their types when they are made (`typed`), from the attributes that
they have: each is what intake would make of the same mapping under a declaration of just these, in
this order.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, cast
from weakref import WeakSet

import msgspec

from broker.engine.event.event import (
    INT64_MAX,
    INT64_MIN,
    Event,
    MetricPosition,
    event_class,
    slot_of,
    wire_name,
)
from broker.engine.event.source import Constants, build
from broker.engine.ingest.decode import CONVERT_ERRORS
from broker.engine.ingest.normalise import on_earth
from broker.engine.ingest.times import TIME_MAX_MS, TIME_MIN_MS
from broker.engine.limits import LimitReachedError, Limits
from language.printing.expressions import duration_text

if TYPE_CHECKING:
    from broker.engine.event.event import Event
    from language.specification import EventType
    from language.tree import AttributeType

RESERVED = frozenset(
    ("type", "id", "source", "location", "position", "timestamp", "start", "end", "uncertainty")
)

FORMS_MAX = 1_024  # types whose forms are kept for the next who declares them

Form = Literal["exact", "loose", "lenient"]
Format = Literal["json", "msgpack"]
Decode = Callable[[bytes | msgspec.Raw], Any]


class ConflictError(Exception):
    """Declarations that cannot stand beside each other; nothing was changed.

    `type_name` is the event type whose new declaration is in the way.
    """

    def __init__(self, type_name: str, message: str) -> None:
        super().__init__(f"event {type_name}: {message}")
        self.type_name = type_name


# Decoders are made at first use: a union over a thousand types takes milliseconds, and most brokers
# never see msgpack or a lenient payload.
class Reader:
    """The decoders of one type, or of all types at once, made when they are first needed."""

    def __init__(self, forms: Mapping[Form, Any]) -> None:
        self._forms = forms
        self._decoders: dict[tuple[Format, Form, bool], Decode] = {}
        # By format: of one event, of an array of them.
        self.exact: dict[Format, tuple[Decode, Decode]] = {
            "json": self._pair("json"),
            "msgpack": self._pair("msgpack"),
        }

    def _pair(self, format_: Format) -> tuple[Decode, Decode]:
        one = self.decode(format_, "exact", many=False)
        return one, self.decode(format_, "exact", many=True)

    def decode(self, format_: Format, form: Form, *, many: bool) -> Decode:
        """The decoder of one event, or of an array of them."""
        key = (format_, form, many)
        decode = self._decoders.get(key)
        if decode is None:
            one = self._forms[form]
            target = types.GenericAlias(list, (one,)) if many else one
            codec: Any = msgspec.json if format_ == "json" else msgspec.msgpack
            decode = self._decoders[key] = codec.Decoder(target).decode
        return decode

    def target(self, form: Form) -> Any:
        """The type to convert to."""
        return self._forms[form]


class TypeForms:
    """The classes of a type with these attributes, and its decoders."""

    def __init__(self, name: str, attributes: Mapping[str, AttributeType], limits: Limits) -> None:
        # Three classes over one base with equal slots: Python lets an object change its class only
        # between equal layouts.
        base = event_class(name, attributes)
        kinds = _kinds(limits)
        typed = [(slot_of(key), kinds[kind], None) for key, kind in attributes.items()]
        exact, lenient = ([*_fields(limits, exact=each), *typed] for each in (True, False))
        self.exact = _class(base, exact, rename=exact_name, forbid_unknown_fields=True)
        self.loose = _class(base, exact, rename=exact_name)
        self.lenient = _class(base, lenient, rename=wire_name)
        self.reader = Reader({"exact": self.exact, "loose": self.loose, "lenient": self.lenient})
        self.plain = _plain(attributes)


def type_forms(
    name: str, attributes: tuple[tuple[str, AttributeType], ...], limits: Limits
) -> TypeForms:
    """The forms of a type that are the same wherever it is declared so, and never change."""
    # Of the limits only these four bound a field: engines that differ in others share classes.
    return _shared_forms(
        name,
        attributes,
        Limits(
            text_chars_max=limits.text_chars_max,
            bytes_max=limits.bytes_max,
            name_chars_max=limits.name_chars_max,
            uncertainty_ms_max=limits.uncertainty_ms_max,
        ),
    )


@lru_cache(maxsize=FORMS_MAX)
def _shared_forms(
    name: str, attributes: tuple[tuple[str, AttributeType], ...], limits: Limits
) -> TypeForms:
    return TypeForms(name, dict(attributes), limits)


class TypeEntry:
    """A declared type as it stands: its attributes, classes and decoders."""

    def __init__(
        self, name: str, attributes: dict[str, AttributeType], version: int, forms: TypeForms
    ) -> None:
        self.name = name
        self.lasts_ms: int | None = None  # what lasts longer is refused
        self.attributes = attributes
        self.version = version
        self.exact, self.loose, self.lenient = forms.exact, forms.loose, forms.lenient
        self.reader = forms.reader
        self.plain = forms.plain


class TypeRegistry:
    """All declared types; `version` grows with each change of any class.

    With `shared` its classes are those of every such registry: each type is declared but once.
    """

    def __init__(self, limits: Limits, *, shared: bool = False) -> None:
        self.version = 0
        self._shared = shared
        self.entries: dict[str, TypeEntry] = {}
        self._limits = limits
        self._declared: dict[str, dict[str, dict[str, AttributeType]]] = {}  # type → owner → …
        self._lasting: dict[str, dict[str, int]] = {}  # type → owner → `lasts at most`
        self._classes: dict[str, WeakSet[type[Event]]] = {}
        self._union: Reader | None = None
        self._exact: frozenset[type[Event]] | None = None

    def declare(self, event_types: Iterable[EventType], owner: str) -> bool:
        """Declare types for an owner, all or none; whether any class was replaced.

        What a definition makes is passed over. Raises ConflictError, or LimitReachedError.
        """
        wanted = [one for one in event_types if not one.defined]
        # All are merged before any is taken: a text that conflicts in its last type leaves nothing
        # behind.
        merged = self._merged(wanted, (owner,), self.entries)
        for one in wanted:
            self._declared.setdefault(one.name, {})[owner] = dict(one.attributes)
        changed = [self._replace(name, attributes) for name, attributes in merged.items()]
        for event_type in wanted:
            self._lasts(event_type.name, owner, event_type.lasts_ms)
        return any(changed)

    def check(self, event_types: Iterable[EventType], without: Collection[str]) -> None:
        """Raise what declaring these would raise, once the owners `without` have released all."""
        beside = [name for name, by in self._declared.items() if not by.keys() <= set(without)]
        self._merged([kind for kind in event_types if not kind.defined], without, beside)

    def release(self, owner: str) -> bool:
        """Take back all that an owner declared; whether any class was replaced or dropped."""
        changed = False
        for name in [name for name, owners in self._declared.items() if owner in owners]:
            owners = self._declared[name]
            del owners[owner]
            if owners:
                changed |= self._replace(name, _union_of(owners.values()))
                self._lasts(name, owner, None)
            else:
                del self._declared[name], self.entries[name]
                self._lasting.pop(name, None)
                self._changed()
                changed = True
        for name in [n for n, known in self._classes.items() if not known]:
            del self._classes[name]
        return changed

    def exact(self) -> frozenset[type[Event]]:
        """The exact classes of all types."""
        if self._exact is None:
            self._exact = frozenset(entry.exact for entry in self.entries.values())
        return self._exact

    def reader(self) -> Reader:
        """The decoders for payloads that name their type themselves."""
        if self._union is None:
            forms: dict[Form, Any] = {}
            for form in ("exact", "loose", "lenient"):
                # With one class alone msgspec would take objects without a type for it.
                classes = [getattr(entry, form) for entry in self.entries.values()]
                forms[form] = Union[(_Nothing, *classes)]
            self._union = Reader(forms)
        return self._union

    def _merged(
        self, wanted: Iterable[EventType], without: Collection[str], beside: Iterable[str]
    ) -> dict[str, dict[str, AttributeType]]:
        """Return the attributes of each type with what all owners but those `without` declare.

        `beside` are the types that there are then.
        """
        merged = {one.name: self._merged_type(one, without) for one in wanted}
        if len(merged.keys() | set(beside)) > self._limits.types_max:
            raise LimitReachedError("types_max", self._limits.types_max, "event types")
        return merged

    def _merged_type(
        self, event_type: EventType, without: Collection[str]
    ) -> dict[str, AttributeType]:
        _check_names(event_type)
        owners = dict(self._declared.get(event_type.name, {}))
        for owner in without:
            owners.pop(owner, None)
        for other, attributes in owners.items():
            for name, kind in event_type.attributes.items():
                before = attributes.get(name, kind)
                if before != kind:
                    raise ConflictError(
                        event_type.name,
                        f"found attribute {name} as {kind}, but"
                        f" {other or 'another specification'} declares it as {before}; give it the"
                        f" same type or the event type another name",
                    )
        self._check_lasting(event_type, without)
        merged = _union_of([*owners.values(), event_type.attributes])
        if len(merged) > self._limits.attributes_max:
            what = f"attributes of event {event_type.name}"
            raise LimitReachedError("attributes_max", self._limits.attributes_max, what)
        return merged

    def _check_lasting(self, event_type: EventType, without: Collection[str]) -> None:
        """Refuse another `lasts at most` than others say; who says none is held to theirs."""
        for other, lasts_ms in self._lasting.get(event_type.name, {}).items():
            if other not in without and event_type.lasts_ms not in (None, lasts_ms):
                raise ConflictError(
                    event_type.name,
                    f"found `lasts at most` {duration_text(event_type.lasts_ms or 0)}, but"
                    f" {other or 'another specification'} declares {duration_text(lasts_ms)}; say"
                    f" the same or nothing of it, or give the event type another name",
                )

    def _lasts(self, name: str, owner: str, lasts_ms: int | None) -> None:
        """Take up what an owner says of a type, in the place of what it said before."""
        stated = self._lasting.setdefault(name, {})
        stated.pop(owner, None)
        if lasts_ms is not None:
            stated[owner] = lasts_ms
        # All that say anything say the same.
        self.entries[name].lasts_ms = next(iter(stated.values()), None)
        if not stated:
            del self._lasting[name]

    def _replace(self, name: str, attributes: dict[str, AttributeType]) -> bool:
        entry = self.entries.get(name)
        if entry is not None and entry.attributes == attributes:
            return False
        self._changed()
        if self._shared:
            forms = type_forms(name, tuple(attributes.items()), self._limits)
        else:
            forms = TypeForms(name, attributes, self._limits)
        lasts_ms = None if entry is None else entry.lasts_ms
        entry = self.entries[name] = TypeEntry(name, attributes, self.version, forms)
        entry.lasts_ms = lasts_ms
        # Weak: an older class lives as long as an event of it does, in an agent or a window, and
        # goes with the last.
        known = self._classes.setdefault(name, WeakSet())
        for older in known:
            for attribute in attributes.keys() - set(older.attributes):
                # A slot that its events lack reads as null through the class.
                setattr(older, slot_of(attribute), None)
        known.add(entry.exact)
        return True

    def _changed(self) -> None:
        self.version += 1
        self._union = self._exact = None


def _check_names(event_type: EventType) -> None:
    clash = [name for name in event_type.attributes if name in RESERVED]
    if clash:
        raise ConflictError(
            event_type.name,
            f"found attribute {clash[0]}, which every event has already;"
            " leave it out or name it otherwise",
        )


def _union_of(parts: Iterable[Mapping[str, AttributeType]]) -> dict[str, AttributeType]:
    union: dict[str, AttributeType] = {}
    for part in parts:
        # In the order of declaration, which is that of the catalogue: every broker that has the
        # same texts builds the same slots.
        union.update(part)
    return union


def _plain(attributes: Mapping[str, AttributeType]) -> Callable[[Event], bool]:
    """Compile the test whether an event's floats are surely finite and its texts encodable."""
    tests = ["e.id.isascii()"]
    tests += [f"((v := e.{key}) is None or v.isascii())" for key in ("source", "location")]
    for name, kind in attributes.items():
        if kind == "float":
            # inf - inf and nan - nan are NaN, which equals nothing: one subtraction instead of a
            # call of isfinite.
            tests.append(f"((v := e.{slot_of(name)}) is None or v - v == 0.0)")
        elif kind == "text":
            tests.append(f"((v := e.{slot_of(name)}) is None or v.isascii())")
    text = f"def plain(e):\n    return {' and '.join(tests)}\n"
    return build(text, "plain", Constants())


# --- the classes ------------------------------------------------------------------------------

_Impossible = Annotated[int, msgspec.Meta(ge=1, le=0)]


class _Nothing(msgspec.Struct, tag_field="type", tag="\0"):
    """No payload can be decoded into this; it makes msgspec ask every object for its type."""

    # At least 1 and at most 0: no value passes.
    impossible: _Impossible


def exact_name(field: str) -> str:
    """Return the name that a field of an exact event has outside."""
    # `timestamp` is decoded straight into the slot `end`; the key `end` must then be null.
    return {"timestamp": "end", "end": "timestamp"}.get(field) or wire_name(field)


def _class(base: type[Event], fields: list[tuple[str, Any, Any]], **options: Any) -> type[Event]:
    made = msgspec.defstruct(
        base.__name__,
        [field[:2] if field[2] is msgspec.NODEFAULT else field for field in fields],
        bases=(base,),
        tag_field="type",
        tag=base.event_type,
        omit_defaults=True,
        gc=False,
        eq=False,
        kw_only=True,
        **options,
    )
    return cast("type[Event]", made)


def _kinds(limits: Limits) -> dict[AttributeType, Any]:
    return {
        "int": Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)] | None,
        "float": float | None,
        "text": Annotated[str, msgspec.Meta(max_length=limits.text_chars_max)] | None,
        "bool": bool | None,
        "bytes": Annotated[bytes, msgspec.Meta(max_length=limits.bytes_max)] | None,
    }


_Place = Annotated[list[float], msgspec.Meta(min_length=2, max_length=3)] | MetricPosition | None


def _fields(limits: Limits, *, exact: bool) -> list[tuple[str, Any, Any]]:
    """The fields that all events have: of exact readings, or of whatever the formats allow."""
    name: Any = Annotated[str, msgspec.Meta(max_length=limits.name_chars_max)] | None
    epsilon: Any = Annotated[int, msgspec.Meta(ge=0, le=limits.uncertainty_ms_max)]
    own: tuple[str, Any, Any]
    times: list[tuple[str, Any, Any]]
    doubt: tuple[str, Any, Any]
    if exact:
        key = Annotated[str, msgspec.Meta(min_length=1, max_length=limits.name_chars_max)]
        time = Annotated[int, msgspec.Meta(ge=TIME_MIN_MS, le=TIME_MAX_MS)]
        own = ("id", key, msgspec.NODEFAULT)
        times = [("timestamp", None, None), ("start", None, None), ("end", time, msgspec.NODEFAULT)]
        doubt = ("uncertainty", epsilon, 0)
    else:
        any_time = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)] | str | None
        own = ("id", name, None)
        times = [(key, any_time, None) for key in ("timestamp", "start", "end")]
        doubt = ("uncertainty", epsilon | None, None)
    places = [("source", name, None), ("location", name, None), ("position", _Place, None)]
    return [own, *places, *times, doubt]


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
