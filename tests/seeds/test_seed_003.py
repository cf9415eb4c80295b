"""The place-and-play paper: moving in and out, counting people, and air out of range."""

from __future__ import annotations

from typing import Any

import headwater

TEXT = """
event Tracking(direction: int, left: text, right: text)
event Temp(val: float)
define MoveIn(location, timestamp)
case 0: detect Tracking(direction = 0)
  assign location = Tracking.left, timestamp = Tracking.timestamp consuming Tracking
case 1: detect Tracking(direction = 1)
  assign location = Tracking.right, timestamp = Tracking.timestamp consuming Tracking
define MoveOut(location, timestamp)
case 0: detect Tracking(direction = 0)
  assign location = Tracking.right, timestamp = Tracking.timestamp consuming Tracking
case 1: detect Tracking(direction = 1)
  assign location = Tracking.left, timestamp = Tracking.timestamp consuming Tracking
define PeopleCount2Mins(location, count, timestamp) aggr every 2 mins
pre detect outer MoveIn and outer MoveOut
  assign location = group.location, count = Count(MoveIn) - Count(MoveOut),
         timestamp = Max(MoveOut.timestamp) group by location
post where location = group.location, count = Sum(count), timestamp = Max(timestamp)
  group by location
define AvgTemp5Mins(location, avg, timestamp) aggr every 5 mins
  detect Temp assign location = group.location, avg = Avg(Temp.val), timestamp = Max(Temp.timestamp)
  group by location
"""
TEMP_OUT = """
subscription TempOut seq 1 from User1 to AirController
detect last PeopleCount2Mins(count > 0) as PeopleCount
   and AvgTemp5Mins(avg < 20 or avg > 25) as AvgTempOut within 5 mins from PeopleCount
assign temp = AvgTempOut.avg, location = group.location
consuming AvgTempOut group by location
"""


def values(subscription: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    engine = headwater.Engine(TEXT + subscription, lateness_ms=None)
    engine.push(events)
    return [result["values"] for result in engine.finish()]


def walk(at_s: int, direction: int) -> dict[str, Any]:
    sides = {"direction": direction, "left": "hall", "right": "office"}
    return {"type": "Tracking", "id": f"w{at_s}", "timestamp": at_s * 1000, **sides}


def temp(at_s: int, val: float) -> dict[str, Any]:
    place = {"location": "office", "val": val}
    return {"type": "Temp", "id": f"t{at_s}", "timestamp": at_s * 1000, **place}


def test_move_in_follows_the_direction() -> None:
    """Section 3.2, MoveIn: 0 is from right to left, 1 from left to right."""
    text = "subscription S seq 1 from me to it detect MoveIn assign at = MoveIn.location"
    assert values(text, [walk(1, 0), walk(2, 1)]) == [{"at": "hall"}, {"at": "office"}]


def test_people_are_counted_per_window_and_room() -> None:
    """Section 3.2, PeopleCount2Mins: who came less who went, in each two minutes."""
    text = """subscription S seq 1 from me to it detect PeopleCount2Mins as p
              assign at = p.location, n = p.count"""
    found = values(text, [walk(10, 1), walk(20, 1), walk(30, 0), walk(130, 0)])
    counted = sorted((value["at"], value["n"]) for value in found)
    assert counted == [("hall", -1), ("hall", 1), ("office", -1), ("office", 1)]


def test_air_out_of_range_where_people_are() -> None:
    """Table 1 of section 3: two in and one out by 30 s; the mean of 26 and 28 at 250 s is 27."""
    people = [walk(10, 1), walk(20, 1), walk(30, 0)]
    hot = [temp(100, 26.0), temp(250, 28.0)]
    assert values(TEMP_OUT, people + hot) == [{"temp": 27.0, "location": "office"}]
    assert values(TEMP_OUT, [*people, temp(100, 21.0), temp(250, 23.0)]) == []
    assert values(TEMP_OUT, hot) == []
    assert values(TEMP_OUT, [*people, temp(400, 27.0)]) == []  # 370 s after
