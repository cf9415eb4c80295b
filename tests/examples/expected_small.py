"""What the smaller examples find, worked out by looking at every combination.

Owns the meaning of fog.hw, steam.hw and people.hw, written once more by hand. Must not import the
product. `python -m tests.examples.expected_small` prints the counts.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import product

from tests.examples.recordings import (
    Reading,
    distance_m,
    exact_mean,
    json_lines,
    readings,
    result,
)

SECOND_MS = 1_000
MINUTE_MS = 60_000
HOUR_MS = 3_600_000


def of_kind(rows: list[Reading]) -> dict[str, list[Reading]]:
    kinds = defaultdict(list)
    for row in rows:
        kinds[row.kind].append(row)
    return kinds


def span_ms(*rows: Reading) -> int:
    times = [row.time for row in rows]
    return max(times) - min(times)


# --- fog ------------------------------------------------------------------------------------


def expected_fog() -> dict[str, list[dict]]:
    rows = readings("molene.csv.gz")
    rows = [r for r in rows if 47 <= r.place[0] <= 49 and -6 <= r.place[1] <= -2]
    at_station = defaultdict(list)
    for row in rows:
        at_station[row.source].append(row)
    risks = []  # (source, place, time): hourly readings are an hour apart, so the three agree
    for source, of_station in at_station.items():
        kinds = of_kind(of_station)
        calm = [w for w in kinds["wind_speed"] if w.value < 2]
        dew_at = defaultdict(list)
        for dew in kinds["dew_point"]:
            dew_at[dew.time].append(dew)
        air_at = defaultdict(list)
        for air in kinds["ambient_temperature"]:
            air_at[air.time].append(air)
        for wind in calm:
            for air, dew in product(air_at[wind.time], dew_at[wind.time]):
                if air.value - dew.value <= 0.5:
                    risks.append((source, air.place, wind.time))
    return {"FogBank": list(fog_banks(risks)), "PersistentFog": list(persistent(risks))}


def fog_banks(risks) -> Iterator[dict]:
    for here, at, time in risks:
        for there, other, moment in risks:
            together = abs(time - moment) <= MINUTE_MS and distance_m(at, other) <= 25_000
            if together and here < there:
                yield result([time, moment], {"here": here, "there": there})


def persistent(risks) -> Iterator[dict]:
    windows = defaultdict(list)
    for source, _, time in risks:
        windows[source, time // (6 * HOUR_MS)].append(time)
    for (source, k), times in windows.items():
        if len(times) == 6:
            yield result([(k + 1) * 6 * HOUR_MS - 1], {"station": source})


# --- steam ----------------------------------------------------------------------------------


def expected_steam() -> dict[str, list[dict]]:
    rows = readings("steam.csv.gz", source="mote")
    kinds = of_kind(rows)
    warmth, damp = kinds["temperature"], kinds["humidity"]
    begins = [
        result([a.time, b.time], {"before": a.value, "after": b.value}, a.source)
        for a, b in product(warmth, warmth)
        if a.source == b.source and 0 < b.time - a.time <= 10 * SECOND_MS and b.value >= a.value + 5
    ]
    stands = [
        result([t.time, h.time], {"temperature": t.value, "humidity": h.value}, t.source)
        for t, h in product(
            [t for t in warmth if t.value >= 28], [h for h in damp if h.value >= 80]
        )
        if t.source == h.source and span_ms(t, h) <= 2 * SECOND_MS
    ]
    return {"SteamBegins": begins, "SteamStands": stands, "StillDamp": list(still_damp(damp))}


def still_damp(damp: list[Reading]) -> Iterator[dict]:
    step, width = 30 * SECOND_MS, MINUTE_MS
    first = min(row.time for row in damp) // step
    last = max(row.time for row in damp) // step + width // step + 1
    for source in sorted({row.source for row in damp}):
        for k in range(first, last + 1):
            inside = [
                r for r in damp if r.source == source and k * step - width <= r.time < k * step
            ]
            if inside and (mean := exact_mean([r.value for r in inside])) > 75:
                yield result([k * step - 1], {"mote": source, "mean": mean})


# --- people ---------------------------------------------------------------------------------


def expected_people() -> dict[str, list[dict]]:
    events = json_lines("people.jsonl.gz")
    at_door = defaultdict(list)
    for event in events:
        at_door[event["source"]].append(event)
    flows = defaultdict(lambda: {"in": [], "out": []})
    turned = []
    for door, seen in at_door.items():
        for way, first, second in (("in", "outer", "inner"), ("out", "inner", "outer")):
            for location, start, end in passages(seen, first, second):
                flows[location, end // (5 * MINUTE_MS)][way].append((start, end))
        turned += turned_back(door, seen)
    found = [
        (location, (k + 1) * 5 * MINUTE_MS - 1, len(both["in"]), len(both["out"]))
        for (location, k), both in flows.items()
    ]
    return {"Rush": list(rushes(found)), "BreakOver": list(breaks(found)), "TurnedBack": turned}


def passages(seen: list[dict], first: str, second: str) -> Iterator[tuple[str, int, int]]:
    """Pairs of beams in order, each beam used once."""
    pairs = [
        (b["timestamp"], a["timestamp"], sorted([a["id"], b["id"]]), a, b)
        for a, b in product(seen, seen)
        if (a["side"], b["side"]) == (first, second) and 0 < b["timestamp"] - a["timestamp"] <= 1500
    ]
    used = set()
    for end, start, _, a, b in sorted(pairs, key=lambda pair: pair[:3]):
        if not {a["id"], b["id"]} & used:
            used |= {a["id"], b["id"]}
            yield b["location"], start, end


def turned_back(door: str, seen: list[dict]) -> list[dict]:
    outer = [event["timestamp"] for event in seen if event["side"] == "outer"]
    return [
        result([a, b], {"door": door}, door)
        for a, b in product(outer, outer)
        if 100 <= b - a <= 3000
    ]


def rushes(flows) -> Iterator[dict]:
    for location, time, came, went in flows:
        if came - went >= 10:
            yield result([time], {"room": location, "entered": came, "departed": went})


def breaks(flows) -> Iterator[dict]:
    for room, filled, came, filled_out in flows:
        for other, emptied, emptied_in, went in flows:
            follows = room == other and 0 < emptied - filled <= HOUR_MS
            if follows and came - filled_out >= 10 and went - emptied_in >= 10:
                found = result([filled, emptied], {"room": room, "entered": came, "departed": went})
                yield found | {"group": {"location": room}}


EXPECTED = {"fog": expected_fog, "steam": expected_steam, "people": expected_people}

if __name__ == "__main__":
    for example, compute in EXPECTED.items():
        for name, results in compute().items():
            sys.stdout.write(f"{example} {name}: {len(results)}\n")
