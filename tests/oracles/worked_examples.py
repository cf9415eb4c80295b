"""The longer examples of the language's description, on traces whose outcome is worked out by hand.

Owns: the people counter with its air conditioning, and the frost warning.
"""

from typing import Any

from tests.oracles import spec as s
from tests.oracles.worked import Expected, WorkedCase, a, both, compare, own, ref

_DECLARED = """
event Tracking(direction: int, left: text, right: text)
event Temp(val: float)
"""

_DEFINED = """
define MoveIn(location, timestamp)
case 0:
  detect Tracking(direction = 0)
  assign location = Tracking.left, timestamp = Tracking.timestamp
  consuming Tracking
case 1:
  detect Tracking(direction = 1)
  assign location = Tracking.right, timestamp = Tracking.timestamp
  consuming Tracking

define MoveOut(location, timestamp)
case 0:
  detect Tracking(direction = 0)
  assign location = Tracking.right, timestamp = Tracking.timestamp
  consuming Tracking
case 1:
  detect Tracking(direction = 1)
  assign location = Tracking.left, timestamp = Tracking.timestamp
  consuming Tracking

define PeopleCount2Mins(location, count, timestamp) aggr every 2 mins
pre
  detect outer MoveIn and outer MoveOut
  assign location = group.location, count = Count(MoveIn) - Count(MoveOut),
         timestamp = Max(MoveOut.timestamp)
  group by location
post
  where location = group.location, count = Sum(count), timestamp = Max(timestamp)
  group by location

define AvgTemp5Mins(location, avg, timestamp) aggr every 5 mins
detect Temp
assign location = group.location, avg = Avg(Temp.val), timestamp = Max(Temp.timestamp)
group by location
"""

_COUNTED = """
subscription Counts from User1 to Display
detect PeopleCount2Mins as p
"""

_TEMP_OUT = """
subscription TempOut from User1 to AirController
detect last PeopleCount2Mins(count > 0) as PeopleCount
   and AvgTemp5Mins(avg < 20 or avg > 25) as AvgTempOut within 5 mins from PeopleCount
assign temp = AvgTempOut.avg, location = group.location, timestamp = PeopleCount.timestamp
consuming AvgTempOut
group by location
"""


def _direction(value: int, side: str) -> s.Case:
    return s.Case(
        a("Tracking", compare(own("direction"), "=", s.Lit(value))),
        assign=(("location", ref(f"Tracking.{side}")), ("timestamp", ref("Tracking.timestamp"))),
        consuming=("Tracking",),
    )


_GROUP = ("location", ref("group.location"))

_DEFINITIONS = (
    s.Definition("MoveIn", (_direction(0, "left"), _direction(1, "right"))),
    s.Definition("MoveOut", (_direction(0, "right"), _direction(1, "left"))),
    s.Definition(
        "PeopleCount2Mins",
        (
            s.Case(
                both(s.Outer(s.Atom("MoveIn")), s.Outer(s.Atom("MoveOut"))),
                assign=(
                    _GROUP,
                    (
                        "count",
                        s.Arith(
                            "-", s.Aggregate("Count", "MoveIn"), s.Aggregate("Count", "MoveOut")
                        ),
                    ),
                    ("timestamp", s.Aggregate("Max", "MoveOut", "timestamp")),
                ),
                group_by=("location",),
            ),
        ),
        s.Every(120_000),
        s.Post(
            (
                _GROUP,
                ("count", s.Aggregate("Sum", None, "count")),
                ("timestamp", s.Aggregate("Max", None, "timestamp")),
            ),
            ("location",),
        ),
    ),
    s.Definition(
        "AvgTemp5Mins",
        (
            s.Case(
                s.Atom("Temp"),
                assign=(
                    _GROUP,
                    ("avg", s.Aggregate("Avg", "Temp", "val")),
                    ("timestamp", s.Aggregate("Max", "Temp", "timestamp")),
                ),
                group_by=("location",),
            ),
        ),
        s.Every(300_000),
    ),
)

_TYPES = (
    s.EventType("Tracking", (("direction", "int"), ("left", "text"), ("right", "text"))),
    s.EventType("Temp", (("val", "float"),)),
)

_AVG = own("avg")

_TEMP_OUT_CASE = s.Case(
    s.Suffixed(
        both(
            s.Last(
                a("PeopleCount2Mins", compare(own("count"), ">", s.Lit(0)), alias="PeopleCount")
            ),
            a(
                "AvgTemp5Mins",
                s.AnyOf((compare(_AVG, "<", s.Lit(20)), compare(_AVG, ">", s.Lit(25)))),
                alias="AvgTempOut",
            ),
        ),
        (s.Within(300_000, "PeopleCount"),),
    ),
    assign=(("temp", ref("AvgTempOut.avg")), _GROUP, ("timestamp", ref("PeopleCount.timestamp"))),
    consuming=("AvgTempOut",),
    group_by=("location",),
)


def _tracking(ident: str, at_s: int, direction: int) -> dict[str, Any]:
    """Somebody moves between the hall (left) and the lab (right)."""
    return {
        "type": "Tracking",
        "id": ident,
        "source": "door",
        "timestamp": at_s * 1000,
        "direction": direction,
        "left": "hall",
        "right": "lab",
    }


def _temp(ident: str, at_s: int, location: str, val: float) -> dict[str, Any]:
    return {
        "type": "Temp",
        "id": ident,
        "source": f"t-{location}",
        "location": location,
        "timestamp": at_s * 1000,
        "val": val,
    }


_MOVES = [
    _tracking("m1", 10, 0),
    _tracking("m2", 20, 0),
    _tracking("m3", 30, 1),
    _tracking("m4", 130, 0),
    _tracking("m5", 135, 0),
    _tracking("m6", 140, 1),
]


def _count(ids: str, at_ms: int, count: int) -> Expected:
    values = {"p": {"count": count}}
    return Expected({"p": ids.split()}, "Counts", start=at_ms, end=at_ms, values=values)


# First two minutes: into the hall m1 m2 (direction 0), out of it m3; the lab the other way round.
# The count's time is that of the last MoveOut: m3 for the hall, m2 for the lab. The second two
# minutes go likewise.
_COUNTS = WorkedCase(
    "the people counter",
    _DECLARED + _DEFINED + _COUNTED,
    s.Spec(
        _TYPES,
        (
            s.Subscription(
                "Counts",
                s.Case(s.Atom("PeopleCount2Mins", (), "p")),
                subscriber="User1",
                actor="Display",
            ),
        ),
        _DEFINITIONS,
    ),
    _MOVES,
    (
        _count("m1 m2 m3", 20_000, -1),
        _count("m1 m2 m3", 30_000, 1),
        _count("m4 m5 m6", 135_000, -1),
        _count("m4 m5 m6", 140_000, 1),
    ),
    frozenset({"p"}),
)

# The hall's average of the first five minutes is 27 at 200 s; the last count above 0 that it lies
# within five minutes of is the second one (140 s). The lab's average of 19 has no count above 0.
_AIR = WorkedCase(
    "the air conditioning where people are",
    _DECLARED + _DEFINED + _TEMP_OUT,
    s.Spec(
        _TYPES,
        (s.Subscription("TempOut", _TEMP_OUT_CASE, subscriber="User1", actor="AirController"),),
        _DEFINITIONS,
    ),
    [
        *_MOVES,
        _temp("h1", 100, "hall", 26.0),
        _temp("h2", 200, "hall", 28.0),
        _temp("l1", 210, "lab", 19.0),
    ],
    (
        Expected(
            {"PeopleCount": ["m4", "m5", "m6"], "AvgTempOut": ["h1", "h2"]},
            "TempOut",
            start=140_000,
            end=200_000,
            group={"location": "hall"},
            values={"temp": 27.0, "location": "hall", "timestamp": 140_000},
        ),
    ),
    frozenset({"PeopleCount", "AvgTempOut"}),
)

_FROST_TEXT = """
event AirTemp(value: float)
event Humidity(value: float)
event WindSpeed(value: float)
region Pass = circle(45.87, 7.17, 30 km)
subscription Frost from station-team to alerts
detect AirTemp(value <= 0) and Humidity(value > 80) and WindSpeed(value < 2)
   within 5 mins spread 10 km in Pass
"""

_VALUE = own("value")


def _weather(kind: str, ident: str, at_s: int, value: float, lat: float | None) -> dict[str, Any]:
    made = {"type": kind, "id": ident, "source": ident, "timestamp": at_s * 1000, "value": value}
    return made if lat is None else {**made, "position": [lat, 7.17]}


# A tenth of a degree of latitude is 11.1 km: h-north is too far from a, w-gone has no position,
# w-south lies outside the pass, h-late comes after five minutes. a-warm is above 0.
_FROST = WorkedCase(
    "frost in the pass",
    _FROST_TEXT,
    s.Spec(
        tuple(s.EventType(n, (("value", "float"),)) for n in ("AirTemp", "Humidity", "WindSpeed")),
        (
            s.Subscription(
                "Frost",
                s.Case(
                    s.Suffixed(
                        both(
                            both(
                                a("AirTemp", compare(_VALUE, "<=", s.Lit(0))),
                                a("Humidity", compare(_VALUE, ">", s.Lit(80))),
                            ),
                            a("WindSpeed", compare(_VALUE, "<", s.Lit(2))),
                        ),
                        (s.Within(300_000), s.Spread(10_000), s.In("Pass")),
                    )
                ),
                subscriber="station-team",
                actor="alerts",
            ),
        ),
        regions=(("Pass", s.Circle(45.87, 7.17, 30_000)),),
    ),
    [
        _weather("AirTemp", "a", 0, 0.0, 45.87),
        _weather("AirTemp", "a-warm", 1, 0.5, 45.87),
        _weather("Humidity", "h-north", 60, 90.0, 45.97),
        _weather("Humidity", "h", 100, 80.5, 45.95),
        _weather("WindSpeed", "w-gone", 110, 1.0, None),
        _weather("WindSpeed", "w-south", 120, 1.0, 45.5),
        _weather("WindSpeed", "w", 300, 1.5, 45.9),
        _weather("Humidity", "h-late", 301, 95.0, 45.87),
    ],
    (
        Expected(
            {"AirTemp": ["a"], "Humidity": ["h"], "WindSpeed": ["w"]},
            "Frost",
            start=0,
            end=300_000,
            values={
                "AirTemp": {"value": 0.0},
                "Humidity": {"value": 80.5},
                "WindSpeed": {"value": 1.5},
            },
        ),
    ),
)

EXAMPLES: tuple[WorkedCase, ...] = (_COUNTS, _AIR, _FROST)
