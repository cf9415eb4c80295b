"""What examples/weather.hw finds in the extracts, worked out by looking at every combination.

Owns the meaning of that file's subscriptions, written once more by hand. Must not import the
product. `python -m tests.examples.expected_weather` prints the counts.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.examples.recordings import Mean, Reading, distance_m, mean_of, readings, result

MINUTE_MS = 60_000
FILES = ("grand_st_bernard.csv.gz", "singapore.csv.gz")


def by_source(rows: Iterable[Reading]) -> Iterator[list[Reading]]:
    groups = defaultdict(list)
    for row in rows:
        groups[row.source].append(row)
    yield from groups.values()


def expected() -> dict[str, list[dict]]:
    kinds = defaultdict(list)
    for row in readings(*FILES):
        kinds[row.kind].append(row)
    air, wind = kinds["ambient_temperature"], kinds["wind_speed"]
    means = mean_temperatures(air)
    return {
        "FrozenGround": [
            result([row.time], {"station": row.source, "temperature": row.value})
            for row in kinds["surface_temperature"]
            if row.value <= -8
        ],
        "ColdStation": [reported(m) for m in means if m.mean < -8],
        "HotStation": [reported(m) for m in means if m.mean > 32],
        "WindChill": list(wind_chill(air, wind)),
        "RapidCooling": list(rapid_cooling(air)),
        "CoolingFront": list(cooling_front(means)),
        "StormCell": list(storm_cells(air, kinds["relative_humidity"], wind)),
    }


def mean_temperatures(air: list[Reading]) -> list[Mean]:
    windows = defaultdict(list)
    for row in air:
        windows[row.source, row.time // (10 * MINUTE_MS)].append(row)
    return [mean_of(group, (k + 1) * 10 * MINUTE_MS - 1) for (_, k), group in windows.items()]


def reported(m: Mean) -> dict:
    values = {"station": m.source, "mean": m.mean, "readings": m.readings}
    return result([m.time], values)


def wind_chill(air: list[Reading], wind: list[Reading]) -> Iterator[dict]:
    cold = [row for row in air if row.value <= -7.5]
    gales = [row for row in wind if row.value >= 9]
    for a in cold:
        for w in gales:
            if a.source == w.source and abs(a.time - w.time) <= 2 * MINUTE_MS:
                values = {"temperature": a.value, "speed": w.value}
                yield result([a.time, w.time], values, a.source)


def rapid_cooling(air: list[Reading]) -> Iterator[dict]:
    for group in by_source(air):
        for warm in group:
            for cool in group:
                gap = cool.time - warm.time
                if 8 * MINUTE_MS <= gap <= 10 * MINUTE_MS and cool.value <= warm.value - 3:
                    values = {"warm": warm.value, "cool": cool.value}
                    yield result([warm.time, cool.time], values, warm.source)


def cooling_front(means: list[Mean]) -> Iterator[dict]:
    for warm in means:
        for cool in means:
            # means are points, so that "after" is a gap of more than nothing: the next window
            follows = warm.source == cool.source and 0 < cool.time - warm.time <= 10 * MINUTE_MS
            if follows and cool.mean <= warm.mean - 2:
                values = {"warm": warm.mean, "cool": cool.mean}
                yield result([warm.time, cool.time], values, warm.source)


def in_singapore(row: Reading) -> bool:
    return row.place is not None and (
        1.15 <= row.place[0] <= 1.50 and 103.55 <= row.place[1] <= 104.10
    )


def near(a: Reading, b: Reading) -> bool:
    return abs(a.time - b.time) <= MINUTE_MS and distance_m(a.place, b.place) <= 8000


def storm_cells(air: list[Reading], humidity: list[Reading], wind: list[Reading]) -> Iterator[dict]:
    cold = [row for row in air if row.value < 25 and in_singapore(row)]
    damp = [row for row in humidity if row.value > 90 and in_singapore(row)]
    gusts = [row for row in wind if row.value > 6 and in_singapore(row)]
    for a in cold:
        for h in damp:
            if near(a, h):
                for w in gusts:
                    if near(a, w) and near(h, w):
                        values = {"temperature": a.value, "cold_at": a.source}
                        values |= {"humidity": h.value, "damp_at": h.source}
                        values |= {"speed": w.value, "gust_at": w.source}
                        yield result([a.time, h.time, w.time], values)


if __name__ == "__main__":
    for name, results in expected().items():
        sys.stdout.write(f"{name}: {len(results)}\n")
