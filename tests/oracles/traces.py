"""Generated traces: small alphabets, ties, nulls, repeats, in an order that means nothing.

Owns: which primitive events generated cases are made of.
Must not know: how specifications are drawn, but for the profile that they ask for.
Invariant: a repeat of (id, end) says the same, so that it does not matter which came first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tests.oracles import spec as s
from tests.oracles.draw import Draw, shuffled

TYPES = tuple(
    s.EventType(name, (("n", "int"), ("v", "float"), ("tag", "text"), ("flag", "bool")))
    for name in "ABCD"
)

SOURCES = ("s1", "s2", "s3")
LOCATIONS = ("b/1", "b/1/x", "b/10", "b/2")
TAGS = ("p", "q", "r")
LATS, LONS = (45.5, 45.625, 45.75), (7.0, 7.125, 7.25)
EPOCHS_MS = (0, 1_700_000_000_000, -12_000)
WHOLE, DYADIC, AWKWARD = (0, 1, 2, 3), (0.5, 1.25, -2.0, 3.0, 2), (0.1, 0.2, 0.3, 1e16, -1e16)
# By code point "10" < "9" < "E2" < "a" < "é": neither numbers nor letters without case.
IDS = (*(f"e{i}" for i in range(1, 15)), "10", "9", "E2", "é", "a", "e-1", "Z9", "e 3")

Positions = Literal["globe", "plane", "mixed"]


@dataclass(frozen=True)
class Profile:
    """What a construct asks of its traces; shares are in percent.

    `uncertain` is the share of events whose times are uncertain, in a trace that has any at all;
    in half of those all uncertain times are off by the same.
    """

    events_min: int = 6
    events_max: int = 12
    span_s: int = 12
    durative: int = 10
    null: int = 8
    positions: Positions = "mixed"
    uncertain: int = 0
    step_ms: int = 1000
    epochs_ms: tuple[int, ...] = ()


def trace(draw: Draw, types: tuple[str, ...], profile: Profile) -> list[dict[str, Any]]:
    """Events of the given types, now and then of another or of one that is not declared."""
    epoch_ms = draw.pick(profile.epochs_ms or EPOCHS_MS[: 3 if draw.chance(5) else 2])
    ids = shuffled(draw, IDS)
    events = []
    for _ in range(draw.integer(profile.events_min, profile.events_max)):
        other = draw.chance(4)
        kind = draw.pick((*(one.name for one in TYPES), "Stranger") if other else types)
        events.append(_event(draw, kind, ids.pop(), epoch_ms, profile))
    if profile.uncertain:
        _make_uncertain(draw, events, profile)
    if draw.chance(20):
        events.append(dict(draw.pick(events)))
    if draw.chance(5):
        events.append(_later_namesake(draw.pick(events)))
    return shuffled(draw, events)


def _make_uncertain(draw: Draw, events: list[dict[str, Any]], profile: Profile) -> None:
    alike = draw.pick((500, 1000, 1500)) if draw.chance(50) else None
    for event in events:
        if draw.chance(profile.uncertain):
            event["uncertainty"] = alike or draw.pick((500, 1000, 2000))


def _event(draw: Draw, kind: str, ident: str, epoch_ms: int, profile: Profile) -> dict[str, Any]:
    at_ms = epoch_ms + draw.integer(0, profile.span_s) * profile.step_ms
    event: dict[str, Any] = {"type": kind, "id": ident, "source": draw.pick(SOURCES)}
    if draw.chance(profile.durative):
        event |= {"start": at_ms, "end": at_ms + draw.integer(1, 4) * profile.step_ms}
    else:
        event["timestamp"] = at_ms
    if not draw.chance(profile.null):
        event["location"] = draw.pick(LOCATIONS)
    if not draw.chance(profile.null):
        event["position"] = _position(draw, profile.positions)
    floats = AWKWARD if draw.chance(40) else DYADIC
    for name, options in (("n", WHOLE), ("v", floats), ("tag", TAGS), ("flag", (True, False))):
        if not draw.chance(profile.null):
            event[name] = draw.pick(options)
    if draw.chance(10):
        event["unheard-of"] = 1
    return event


def _position(draw: Draw, positions: Positions) -> Any:
    globe = positions == "globe" or (positions == "mixed" and draw.chance(50))
    height = [float(draw.pick((0, 10)))] if draw.chance(20) else []
    if globe:
        return [draw.pick(LATS), draw.pick(LONS), *height]
    ground = [10 * draw.integer(0, 2), 10 * draw.integer(0, 2)]
    return dict(zip("xyz", [*ground, *height], strict=False))


def _later_namesake(event: dict[str, Any]) -> dict[str, Any]:
    """The same id with another end is another event."""
    end_ms = event["timestamp"] if "timestamp" in event else event["end"]
    start_ms = event.get("start", end_ms)
    later = {key: value for key, value in event.items() if key != "timestamp"}
    return later | {"start": start_ms, "end": end_ms + 1000}
