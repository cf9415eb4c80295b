"""From bytes, or values of Python, to events: the cascade of decoders.

Owns which decoder is tried when, and that one bad event of a batch refuses only itself. Must not
know clocks, repeats or who wants the events. Invariant: the outcome for an event does not depend on
its neighbours in the batch, nor on which step of the cascade decoded it.

1. The whole payload by the exact classes: readings of declared attributes, as most are.
2. By the loose classes, if there are unknown keys.
3. By the lenient classes: texts as times, intervals, missing ids.
4. Item by item, so that each bad one is refused with its own reason.

Each step takes all that the one before takes and gives the same events for it. Looks at how deep a
payload nests do not recurse, so that none meets the interpreter's own limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from broker.engine.ingest import reasons
from broker.engine.ingest.faults import DECODE_ERRORS, Rejection, of_error, rejection
from broker.engine.ingest.normalise import Normaliser, Origin, unsound

if TYPE_CHECKING:
    from broker.engine.event.event import ByClass, Event
    from broker.engine.ingest.registry import Form, Format, Reader, TypeRegistry
    from broker.engine.limits import Limits

CONVERT_ERRORS = (*DECODE_ERRORS, UnicodeEncodeError, OverflowError)

_WHITE = b" \t\r\n"
_OPENINGS = (b"{", b"[")  # of nearly all JSON; in msgpack they are small numbers
_MSGPACK_ARRAYS = (b"\xdc", b"\xdd")


class Decoded(msgspec.Struct):
    """Hold what a payload contained.

    `skipped` counts events of undeclared types, `stamped` readings without a time; both are no
    rejections. Every event of the payload is in exactly one of `events`, `rejections` and
    `skipped`; a payload that cannot be read at all is one rejection. `by_class` are the events by
    their class, if they have been sorted so.
    """

    events: list[Event]
    rejections: list[Rejection] = msgspec.field(default_factory=list)
    skipped: int = 0
    stamped: int = 0
    by_class: ByClass | None = None


class _Header(msgspec.Struct):
    type: str | None = None
    srcid: str | None = None


_HEADER = {
    "json": msgspec.json.Decoder(_Header).decode,
    "msgpack": msgspec.msgpack.Decoder(_Header).decode,
}
_ONE_ITEM = {
    "json": msgspec.json.Decoder(msgspec.Raw).decode,
    "msgpack": msgspec.msgpack.Decoder(msgspec.Raw).decode,
}
_ITEMS = {
    "json": msgspec.json.Decoder(list[msgspec.Raw]).decode,
    "msgpack": msgspec.msgpack.Decoder(list[msgspec.Raw]).decode,
}
_generic = msgspec.msgpack.Decoder(strict=False).decode


class PayloadDecoder:
    """Decodes payloads by the declared types."""

    def __init__(self, registry: TypeRegistry, normaliser: Normaliser, limits: Limits) -> None:
        self._registry = registry
        self._normaliser = normaliser
        self._limits = limits

    def decode(self, payload: bytes, origin: Origin, format_: Format = "json") -> Decoded:
        """The events of one object or of an array of them."""
        decoded = Decoded([])
        if len(payload) > self._limits.payload_bytes_max:
            found = f"{len(payload)} bytes, at most {self._limits.payload_bytes_max}"
            decoded.rejections.append(rejection(reasons.TOO_LARGE, found))
            return decoded
        # One byte decides for nearly all JSON; only white space and msgpack take a longer look.
        many = payload[:1] == b"[" if payload[:1] in _OPENINGS else _is_array(payload, format_)
        if origin.type_name is None:
            reader: Reader | None = self._registry.reader()
        else:
            entry = self._registry.entries.get(origin.type_name)
            reader = None if entry is None else entry.reader
        if reader is not None:
            vague = self._normaliser.vague(origin)
            events = None if vague else self._whole(payload, reader, format_, many=many)
            if events is not None and len(events) <= self._limits.batch_events_max:
                if format_ == "json":
                    decoded.events = self._normaliser.readings(events, origin, decoded.rejections)
                else:
                    self._settle(events, origin, decoded, foreign=True)
                # A payload of one event has no index to point at.
                if decoded.rejections and not many:
                    decoded.rejections = [replace(decoded.rejections[0], index=None)]
                return decoded
            events = self._all_lenient(payload, reader, format_, many=many)
            if events is not None and len(events) <= self._limits.batch_events_max:
                self._complete(events, origin, decoded, many=many)
                return decoded
        self._items(payload, origin, format_, decoded, many=many)
        return decoded

    def lines(self, lines: Sequence[bytes], origin: Origin) -> Decoded:
        """The events of JSON lines, one object or array each; empty lines are passed over.

        `index` of a rejection is that of the line.
        """
        decoded = Decoded([])
        full = [line for line in lines if line]
        if max(map(len, full), default=0) > self._limits.payload_bytes_max:
            return self._line_by_line(lines, origin)
        # One call of the decoder for a thousand lines. A line that is two values, or half of one,
        # makes another number of events than of lines, and then each is read by itself.
        array = b"[" + b",".join(full) + b"]"
        reader = self._registry.reader()
        exact = not self._normaliser.vague(origin)
        events = self._whole(array, reader, "json", many=True) if exact else None
        if events is not None and len(events) == len(full):
            self._settle(events, origin, decoded, foreign=False)
        else:
            events = self._all_lenient(array, reader, "json", many=True) or []
            if len(events) != len(full):
                return self._line_by_line(lines, origin)
            self._complete(events, origin, decoded, many=True)
        if decoded.rejections and len(full) < len(lines):
            places = [place for place, line in enumerate(lines) if line]
            decoded.rejections = [
                replace(one, index=places[one.index or 0]) for one in decoded.rejections
            ]
        return decoded

    def _line_by_line(self, lines: Sequence[bytes], origin: Origin) -> Decoded:
        decoded = Decoded([])
        for index, line in enumerate(lines):
            if not line:
                continue
            one = self.decode(line, origin)
            decoded.events += one.events
            decoded.skipped += one.skipped
            decoded.stamped += one.stamped
            decoded.rejections += [replace(r, index=index) for r in one.rejections]
        return decoded

    def mappings(self, items: Sequence[Mapping[str, Any]], origin: Origin) -> Decoded:
        """The events that mappings with the keys of the formats say; values are Python's own."""
        decoded = Decoded([])
        # All at once, as each by itself costs twice as much: readings, and then detected events,
        # which have a beginning and an end.
        forms: tuple[Form, ...] = ("exact", "lenient")
        for form in forms[self._normaliser.vague(origin) :]:
            target = GenericAlias(list, (self._registry.reader().target(form),))
            try:
                events: list[Event] = msgspec.convert(items, target)
            except CONVERT_ERRORS:
                continue
            if form == "exact":
                self._settle(events, origin, decoded, foreign=True)
                return decoded
            if not any("srcid" in item for item in items):
                self._complete(events, origin, decoded, many=True, foreign=True)
                return decoded
        for index, item in enumerate(items):
            self._mapping(item, index, origin, decoded)
        return decoded

    # --- readings: the exact and the loose classes -------------------------------------------

    def _whole(
        self, payload: bytes, reader: Reader, format_: Format, *, many: bool
    ) -> list[Event] | None:
        try:
            events = reader.exact[format_][many](payload)
        except DECODE_ERRORS as error:
            # The only error of the exact form that the loose one does not have; all others it would
            # find again.
            if format_ != "json" or not str(error).startswith("Object contains unknown field"):
                return None
        else:
            return events if many else [events]
        # Two keys may name the source, and which counts is decided item by item; the substring may
        # stand in a text, which only costs time.
        if b'"srcid"' in payload:
            return None
        try:
            events = reader.decode(format_, "loose", many=many)(payload)
        except DECODE_ERRORS:
            return None
        loose: list[Event] = events if many else [events]
        if not self._shallow(payload, loose):
            return None
        entries = self._registry.entries
        for event in loose:
            # The layouts are equal, so the class alone has to change: nothing is copied.
            event.__class__ = entries[event.event_type].exact
        return loose

    def _shallow(self, payload: bytes, events: list[Event]) -> bool:
        """Tell whether the number of brackets rules out that unknown keys nest too deep."""
        # Counting brackets is a search for bytes; following them is a loop of Python. A batch
        # without unknown objects has exactly one bracket for each event and one around them.
        beyond = brackets(payload) - len(events) - 1
        if beyond + 2 <= self._limits.nesting_max:
            return True
        beyond -= sum(event.position is not None for event in events)
        return beyond + 2 <= self._limits.nesting_max

    def _settle(
        self, events: list[Event], origin: Origin, decoded: Decoded, *, foreign: bool
    ) -> None:
        """Complete readings; `foreign` values may hold what JSON could not have said."""
        decoded.events = self._normaliser.readings(events, origin, decoded.rejections)
        if not foreign:
            return
        entries = self._registry.entries
        faults = {}
        for event in decoded.events:
            # Msgpack and Python can hold NaN, infinities and lone surrogates. One generated test
            # clears the plain events, and only others are looked at by name.
            fault = None if entries[event.event_type].plain(event) else unsound(event)
            if fault is not None:
                faults[id(event)] = fault
        if faults:
            for index, event in enumerate(events):
                if id(event) in faults:
                    decoded.rejections.append(rejection(*faults[id(event)], index))
            decoded.events = [event for event in decoded.events if id(event) not in faults]
            decoded.rejections.sort(key=lambda one: one.index or 0)

    def _too_long(self, count: int) -> Rejection:
        found = f"{count} events, at most {self._limits.batch_events_max}"
        return rejection(reasons.BATCH_TOO_LONG, found)

    def _too_deep(self, index: int | None = None) -> Rejection:
        found = f"more than {self._limits.nesting_max} levels"
        return rejection(reasons.TOO_DEEP, found, index)

    # --- events of any form ------------------------------------------------------------------

    def _all_lenient(
        self, payload: bytes, reader: Reader, format_: Format, *, many: bool
    ) -> list[Event] | None:
        if format_ != "json" or b'"srcid"' in payload:
            return None
        try:
            decoded = reader.decode(format_, "lenient", many=many)(payload)
        except DECODE_ERRORS:
            return None
        events: list[Event] = decoded if many else [decoded]
        return events if self._shallow(payload, events) else None

    def _complete(
        self,
        events: list[Event],
        origin: Origin,
        decoded: Decoded,
        *,
        many: bool,
        foreign: bool = False,
    ) -> None:
        for index, event in enumerate(events):
            self._take(event, index if many else None, origin, decoded, foreign=foreign)

    def _items(
        self, payload: bytes, origin: Origin, format_: Format, decoded: Decoded, *, many: bool
    ) -> None:
        items: Sequence[bytes | msgspec.Raw | None] | None
        try:
            items = _ITEMS[format_](payload) if many else [_ONE_ITEM[format_](payload)]
        except DECODE_ERRORS as error:
            # Python's own encoder writes NaN, which JSON lacks; refusing the batch for one such
            # reading would lose its neighbours.
            items = None
            if format_ == "json" and holds_non_finite(payload):
                items = items_beyond_json(payload)
            if items is None:
                # How deep the decoder itself follows depends on the interpreter.
                deep = format_ == "json" and json_deeper_than(
                    payload, self._limits.nesting_max + many
                )
                decoded.rejections.append(self._too_deep() if deep else of_error(error))
                return
        if len(items) > self._limits.batch_events_max:
            decoded.rejections.append(self._too_long(len(items)))
            return
        for index, item in enumerate(items):
            place = index if many else None
            if item is None:
                decoded.rejections.append(rejection(reasons.NOT_FINITE, "a number", place))
            else:
                self._item(bytes(item), place, origin, format_, decoded)

    def _item(
        self, item: bytes, index: int | None, origin: Origin, format_: Format, decoded: Decoded
    ) -> None:
        try:
            if self._deep(item, format_):
                decoded.rejections.append(self._too_deep(index))
                return
            header = _HEADER[format_](item)
            reader = self._item_reader(header, origin)
            if reader is None:
                decoded.skipped += 1
                return
            if header.type is None:
                item = _without_type(item, format_)
            event = reader.decode(format_, "lenient", many=False)(item)
            self._name_source(event, header)
        except DECODE_ERRORS as error:
            decoded.rejections.append(of_error(error, index))
            return
        self._take(event, index, origin, decoded, foreign=format_ == "msgpack")

    def _mapping(self, item: Any, index: int, origin: Origin, decoded: Decoded) -> None:
        try:
            header = msgspec.convert(item, _Header)
            reader = self._item_reader(header, origin)
            if reader is None:
                decoded.skipped += 1
                return
            if header.type is None and "type" in item:
                item = {key: value for key, value in item.items() if key != "type"}
            event: Event = msgspec.convert(item, reader.target("lenient"))
            self._name_source(event, header)
        except CONVERT_ERRORS as error:
            decoded.rejections.append(of_error(error, index))
            return
        self._take(event, index, origin, decoded, foreign=True)

    def _item_reader(self, header: _Header, origin: Origin) -> Reader | None:
        """The decoders for one item; None if its type is not declared.

        Raises msgspec.ValidationError where it names no type, or another than its topic.
        """
        name = header.type if origin.type_name is None else origin.type_name
        if name is None:
            raise msgspec.ValidationError("Object missing required field `type` - at `$`")
        # A topic is what rights are granted for (MQTT); a payload that says otherwise is refused
        # rather than believed.
        if header.type is not None and header.type != name:
            raise msgspec.ValidationError(f"Invalid value '{header.type}' - at `$.type`")
        entry = self._registry.entries.get(name)
        return None if entry is None else entry.reader

    def _deep(self, item: bytes, format_: Format) -> bool:
        if format_ == "json":
            return json_deeper_than(item, self._limits.nesting_max)
        return value_deeper_than(_generic(item), self._limits.nesting_max)

    def _name_source(self, event: Event, header: _Header) -> None:
        """`srcid` is accepted for `source`, unless it is an attribute of the type."""
        if event.source is None and header.srcid is not None and "srcid" not in event.attributes:
            chars_max = self._limits.name_chars_max
            if len(header.srcid) > chars_max:
                raise msgspec.ValidationError(
                    f"Expected `str` of length <= {chars_max} - at `$.srcid`"
                )
            event.source = header.srcid

    def _take(
        self, event: Event, index: int | None, origin: Origin, decoded: Decoded, *, foreign: bool
    ) -> None:
        """Complete an event of any form, or refuse it; `foreign`: see `_settle`."""
        normaliser = self._normaliser
        entry = self._registry.entries[event.event_type]
        stamped = normaliser.stamped
        fault = unsound(event) if foreign else None
        if fault is None:
            fault = normaliser.complete(event, entry, origin, normaliser.latest(origin))
        decoded.stamped += normaliser.stamped - stamped
        if fault is None:
            decoded.events.append(event)
        else:
            decoded.rejections.append(rejection(*fault, index))


def _without_type(item: bytes, format_: Format) -> bytes:
    """The same without a type that is null."""
    if b"type" not in item:
        return item
    # Slow and rare: only for `"type": null`, which the tagged class would refuse although it means
    # the same as no key.
    codec: Any = msgspec.json if format_ == "json" else msgspec.msgpack
    said = codec.decode(item)
    if not isinstance(said, dict) or "type" not in said:
        return item
    del said["type"]
    return bytes(codec.encode(said))


def _is_array(payload: bytes, format_: Format) -> bool:
    if format_ == "json":
        first = payload[:1]
        return (payload.lstrip(_WHITE)[:1] if first in _WHITE else first) == b"["
    return payload[:1] in _MSGPACK_ARRAYS or b"\x90" <= payload[:1] <= b"\x9f"


_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
# Texts are cut out and all but brackets deleted by the C of `re` and `translate`; the loop sees
# brackets only.
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NON_FINITE: Final = object()


def brackets(payload: bytes) -> int:
    """Return the most arrays and objects that a JSON text can open (brackets in texts count)."""
    return payload.count(b"{") + payload.count(b"[")


def json_deeper_than(payload: bytes, levels_max: int) -> bool:
    """Tell whether arrays and objects nest deeper in a JSON text, or in what begins as one."""
    if brackets(payload) <= levels_max:
        return False
    level = 0
    for byte in _TEXT.sub(b"", payload).translate(None, _NO_BRACKETS):
        level += _STEP[byte]
        if level > levels_max:
            return True
    return False


def value_deeper_than(value: Any, levels_max: int) -> bool:
    """Tell whether lists and dicts nest deeper in a decoded value."""
    layer = [value]
    # Level by level instead of recursively, and no further than asked for.
    for _ in range(levels_max):
        layer = [inner for outer in layer for inner in _inside(outer)]
    return any(isinstance(inner, dict | list) for inner in layer)


def _inside(value: Any) -> Any:
    if isinstance(value, list):
        return value
    return value.values() if isinstance(value, dict) else ()


def holds_non_finite(payload: bytes) -> bool:
    """Tell whether a text that is not JSON may be so only for NaN or an infinity."""
    return b"NaN" in payload or b"Infinity" in payload


def items_beyond_json(payload: bytes) -> list[bytes | None] | None:
    """The items of an array (or the one object) in a text that has NaN or infinities.

    Each is JSON again, and fares as it would alone; None stands for one with such a number. None
    for all if the text is malformed in another way too.
    """
    try:
        # The standard library reads NaN, as it is what wrote it. Numbers stay as they were written,
        # so that 1.0 and 1, or 20 digits, are judged by the same decoder as in clean JSON.
        parsed = json.loads(
            payload, parse_constant=_constant, parse_float=_verbatim, parse_int=_verbatim
        )
    except (ValueError, RecursionError):
        return None
    return [_item(item) for item in (parsed if isinstance(parsed, list) else [parsed])]


def _constant(_name: str) -> object:
    return _NON_FINITE


def _verbatim(text: str) -> msgspec.Raw:
    """A number as it was written: what is wrong with one of its own is judged later."""
    return msgspec.Raw(text.encode())


def _item(item: Any) -> bytes | None:
    layer = [item]
    while layer:
        if any(inner is _NON_FINITE for inner in layer):
            return None
        layer = [inner for outer in layer for inner in _inside(outer)]
    try:
        return msgspec.json.encode(item)
    except (ValueError, RecursionError):  # an unpaired surrogate: no JSON text
        return b""
