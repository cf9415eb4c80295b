"""Events as the core holds them: one slotted struct class for each event type; and where they are.

Owns the shape of primitive and detected events, their order, and the arithmetic of positions and
regions. Must not know how events travel or who wants them. Invariants: order is total and depends
on the events alone (end, start, ids); mixing degrees and metres, or a missing position, gives None
(a distance) or False (a region), never a guess.

A struct class is generated for each type, so that a payload is decoded straight into typed slots
and compiled code reads an attribute as a slot. Attribute `x` lives in the slot `a_x`: no attribute
name can collide with a Python keyword or with the fields here. A name that is no identifier, which
the language takes in backticks, lives in a slot of its own spelling; `slot_of` tells all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import asin, cos, hypot, radians, sin, sqrt
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

import msgspec

from broker.engine.event.source import Constants, build

if TYPE_CHECKING:
    from language.tree import AttributeType, RegionLiteral

_uncertainty = attrgetter("uncertainty")

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1
Int64 = Annotated[int, msgspec.Meta(ge=INT64_MIN, le=INT64_MAX)]

ByClass = Mapping[type["Event"], list["Event"]]
# (definition, case, window number) of a detected event
Tie = tuple[str, int, int]
# end, start, primitive ids in order, ties of detected constituents
Head = tuple[int, int, tuple[str, ...], tuple[Tie, ...]]
# the same; of each event in order its end, its start and, of a detected one, the order of what it
# was made of; which of them is at which place
Order = tuple[int, int, tuple[str, ...], tuple[Tie, ...], tuple[Any, ...], tuple[Any, ...]]


# Not a plain pair: paper 002 (IV.A) leaves the location domain open, and degrees and metres that
# look alike would be compared with each other.
class MetricPosition(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A position in metres; `z` is height."""

    x: float
    y: float
    z: float | None = None


# [lat, lon] or [lat, lon, height] in degrees and metres, or metric coordinates.
Position = list[float] | MetricPosition


# `gc=False`: an event refers to texts and numbers only, never back to itself, so the collector need
# not walk the hundreds of thousands that wait. `eq=False`: an event is itself; a repeat is told by
# id and end where events come in, and nowhere else.
class Event(msgspec.Struct, gc=False, eq=False, kw_only=True):
    """A primitive event: what a sensor said happened in `start`..`end` (ms since the epoch).

    `uncertainty` is ε in ms. `timestamp` is only how the time was written; after intake `start`
    and `end` hold it. Attributes follow in the subclass of the type, null where missing.
    """

    # Of the class and not of each event: eight bytes and a store less for each of them, and who
    # asks for the type of a whole list asks its first.
    event_type: ClassVar[str] = ""
    attributes: ClassVar[tuple[str, ...]] = ()
    slots: ClassVar[tuple[str, ...]] = ()  # of the attributes, in their order
    primitive: ClassVar[bool] = True

    id: str = ""
    source: str | None = None
    location: str | None = None
    position: Position | None = None
    timestamp: int | str | None = None
    # Both ends always, also of a point: an interval throughout (paper 001, 4). With one time point
    # B;(A;C) would be found for A, B, C in this order, as A;C happens at C.
    start: Any = None  # integer milliseconds once taken in; a text may stand here before
    end: Any = None
    # Apart from start and end: an accuracy is no duration (paper 001, 3: a point-interval timestamp
    # is distinct from that of a durative event).
    uncertainty: Int64 = 0

    @property
    def ids(self) -> tuple[str, ...]:
        """The primitive ids that this event is made of, in order."""
        return (self.id,)

    @property
    def ties(self) -> tuple[Tie, ...]:
        """Nothing: so many parts of its order come after the ids."""
        return ()

    @property
    def order(self) -> Order:
        """The key of the total order: end, start, ids, then (definition, case, window)."""
        return (self.end, self.start, (self.id,), (), (), ())

    def attribute_values(self) -> dict[str, Any]:
        """The non-null attributes by name."""
        return {}  # a type's class has its own


# An attribute may have any name, so what is not on the wire gets names that no attribute has.
_DETECTED_NAMES = {name: f"#{name}" for name in ("constituents", "tie", "lineage", "certainty")}


class Detected(Event, gc=False, eq=False, kw_only=True, rename=_DETECTED_NAMES):
    """An event that a definition detected: it spans its constituents unless assigned otherwise.

    `constituents` are the primitive ids in order; `tie` is (definition, case, window); `lineage` is
    the order of what it was made of, or None where nothing but that tells two apart anyway.
    """

    primitive: ClassVar[bool] = False

    # Ids and not the events: a definition over definitions would otherwise keep every primitive
    # event below it alive for as long as its own event is waited for.
    constituents: tuple[str, ...] = ()
    tie: tuple[str | int, ...] = ()
    # Nearly always lazy or None: the whole order costs as much as the event, and is asked for only
    # where two spans and all ids are equal.
    lineage: Any = None
    certainty: str = "yes"

    @property
    def ids(self) -> tuple[str, ...]:
        """The primitive ids that this event is made of, in order."""
        return self.constituents

    @property
    def order(self) -> Order:
        """The key of the total order."""
        end, start, lineage = self.end, self.start, self.lineage
        # The span is put before the lineage, as an assigned span may be another than that of what
        # it was made of.
        below = () if lineage is None else ((end, start, lineage),)
        return (end, start, self.constituents, self.ties, below, ())

    @property
    def ties(self) -> tuple[Tie, ...]:
        """Its definition, case and window, which come after the ids in its order."""
        tie: Any = self.tie
        # An event that names a window stands in the lineage, by its order: its id may be a digest.
        numbered = len(tie) > 2 and tie[2].__class__ is int
        return (tie if numbered else (tie[0], tie[1], 0),)


PYTHON_TYPES: dict[str, Any] = {
    "int": Int64 | None,
    "float": float | None,
    "text": str | None,
    "bool": bool | None,
    "bytes": bytes | None,
}


# Past so many names a slot is made again, which is slow but never wrong.
@lru_cache(maxsize=65_536)
def slot_of(attribute: str) -> str:
    """The slot that holds an attribute: an identifier in ASCII, another one for each name."""
    slot = f"a_{attribute}"
    # Python would take other letters of an identifier for those that look alike.
    if slot.isascii() and slot.isidentifier():
        return slot
    # Hex and not an escape of its own: it is injective without a table, and what it costs is paid
    # once for each name.
    return f"x_{attribute.encode('utf-8', 'surrogatepass').hex()}"


def wire_name(slot: str) -> str:
    """Return the name of an event's field outside: an attribute's own, others as they are."""
    if slot.startswith("x_"):
        return bytes.fromhex(slot[2:]).decode("utf-8", "surrogatepass")
    return slot.removeprefix("a_")


def _values_function(
    type_name: str, names: Sequence[str], slots: Sequence[str]
) -> Callable[..., Any]:
    """`attribute_values` of a type; no other type shares its code, so that it runs fast."""
    # Unrolled: a loop over names would call `getattr` for each attribute of each event of each
    # result. Without nulls: JSON then says the same of an attribute that is
    # missing and of one that was null, as the language does.
    constants = Constants()
    lines = [f"def attribute_values(self):  # {type_name!a}", "    values = {}"]
    for name, slot in zip(names, slots, strict=True):
        lines.append(f"    if (value := self.{slot}) is not None:")
        lines.append(f"        values[{constants.add(name)}] = value")
    return build("\n".join([*lines, "    return values\n"]), "attribute_values", constants)


@lru_cache(maxsize=65_536)
def _generated(
    name: str, attributes: tuple[tuple[str, AttributeType], ...], base: type[Event]
) -> type[Event]:
    # Every attribute may be null, also where its type is declared: a source may leave out what it
    # does not measure.
    fields = [(slot_of(attribute), PYTHON_TYPES[kind], None) for attribute, kind in attributes]
    names = tuple(attribute for attribute, _ in attributes)
    slots = tuple(slot for slot, _, _ in fields)
    made = msgspec.defstruct(
        name,
        fields,
        bases=(base,),
        namespace={
            "event_type": name,
            "attributes": names,
            "slots": slots,
            "attribute_values": _values_function(name, names, slots),
        },
        # Decoding and encoding use the language's name, generated code the slot.
        rename=wire_name,
        gc=False,
        eq=False,
        kw_only=True,
    )
    return cast("type[Event]", made)


def event_class(
    name: str, attributes: Mapping[str, AttributeType], *, detected: bool = False
) -> type[Event]:
    """The struct class of an event type; the same arguments give the same class."""
    return _generated(name, tuple(attributes.items()), Detected if detected else Event)


def in_order(events: list[Event]) -> list[Event]:
    """The events sorted by (end, start, ids, tie)."""
    return sorted(events, key=lambda event: event.order)


def doubtful(events: Sequence[Event]) -> bool:
    """Tell whether the time of any event is uncertain."""
    return any(map(_uncertainty, events))


def lasting(events: Sequence[Event]) -> list[Event]:
    """Those that are no points in time."""
    return [event for event in events if event.start < event.end]


# A sphere, not the ellipsoid: 0.5 % at worst, far below what positions of sensors are good for, and
# the papers give distances (002, IV.A: δl) no finer meaning.
EARTH_RADIUS_M = 6_371_008.8  # mean radius of the sphere on which distances are taken
HEIGHT_AT = 2  # index of the optional height in a position in degrees


def haversine_m(lat_a: float, lon_a: float, lat_b: float, lon_b: float) -> float:
    """The great-circle distance in metres between two points in degrees."""
    phi_a = radians(lat_a)
    phi_b = radians(lat_b)
    half = sin((phi_b - phi_a) / 2) ** 2
    half += cos(phi_a) * cos(phi_b) * sin(radians(lon_b - lon_a) / 2) ** 2
    # Rounding may push `half` above 1 between antipodes, where asin would raise.
    return 2 * EARTH_RADIUS_M * asin(sqrt(min(1.0, half)))


def distance_m(p: Position | None, q: Position | None) -> float | None:
    """The distance in metres; None without two positions of one kind.

    Heights count where both have one: √(ground² + height²).
    """
    # Unknown is not far: a distance of null makes every comparison false, also `distance > 5`.
    if p is None or q is None:
        return None
    if p.__class__ is list and q.__class__ is list:
        a: Any = p
        b: Any = q
        ground = haversine_m(a[0], a[1], b[0], b[1])
        # Otherwise flat: one missing height taken for 0 would put a sensor on the ground.
        if len(a) > HEIGHT_AT and len(b) > HEIGHT_AT:
            return hypot(ground, a[HEIGHT_AT] - b[HEIGHT_AT])
        return ground
    if isinstance(p, MetricPosition) and isinstance(q, MetricPosition):
        ground = hypot(p.x - q.x, p.y - q.y)
        if p.z is not None and q.z is not None:
            return hypot(ground, p.z - q.z)
        return ground
    return None


def near(p: Position | None, q: Position | None, distance_max_m: float) -> bool:
    """Tell whether two positions are at most so many metres apart; False without both."""
    distance = distance_m(p, q)
    return distance is not None and distance <= distance_max_m


def under_path(location: str | None, prefix: str) -> bool:
    """Tell whether a location is the prefix or beneath it, by whole segments."""
    if location is None:
        return False
    # By segments, so that `building/1` does not hold `building/10`.
    return location == prefix or location.startswith(prefix + "/")


def region_test(region: RegionLiteral) -> Callable[[Any], bool]:
    """The membership test of a region: of a location (path) or of a position (the others)."""
    if region.shape == "path":
        prefix = region.path.rstrip("/")
        return lambda location: under_path(location, prefix)
    flat = _flat_test(region)
    if region.metric:
        return lambda p: isinstance(p, MetricPosition) and flat(p.x, p.y)
    return lambda p: p.__class__ is list and flat(p[0], p[1])


def _flat_test(region: RegionLiteral) -> Callable[[float, float], bool]:
    numbers = region.numbers
    if region.shape == "circle":
        lat, lon, radius_m = numbers
        if region.metric:
            return lambda x, y: hypot(x - lat, y - lon) <= radius_m
        return lambda x, y: haversine_m(lat, lon, x, y) <= radius_m
    if region.shape == "box":
        a, b, c, d = numbers  # the checker refuses corners the other way, a neighbour might not
        low_x, high_x = min(a, c), max(a, c)
        low_y, high_y = min(b, d), max(b, d)
        return lambda x, y: low_x <= x <= high_x and low_y <= y <= high_y
    corners = list(zip(numbers[::2], numbers[1::2], strict=True))
    return lambda x, y: _in_polygon(corners, x, y)


def _in_polygon(corners: list[tuple[float, float]], x: float, y: float) -> bool:
    """Even-odd test on the plane of the coordinates; the border belongs to the polygon."""
    # Ray casting rather than a winding number: corners come from a text that was checked, and
    # even-odd gives a ring that crosses itself its plain meaning.
    inside = False
    x_a, y_a = corners[-1]
    for x_b, y_b in corners:
        # The border is tested first and exactly: rays through a corner would count it once or
        # twice, and a box written as a polygon would differ from the same box.
        cross = (x_b - x_a) * (y - y_a) - (y_b - y_a) * (x - x_a)
        if (
            cross == 0
            and min(x_a, x_b) <= x <= max(x_a, x_b)
            and min(y_a, y_b) <= y <= max(y_a, y_b)
        ):
            return True
        if (y_a > y) != (y_b > y) and x < (x_b - x_a) * (y - y_a) / (y_b - y_a) + x_a:
            inside = not inside
        x_a, y_a = x_b, y_b
    return inside
