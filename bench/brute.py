"""The same results by looking at everything, and the form in which results are compared.

Owns one search for each pattern, as plain as its meaning, and what names a result. Must not know
the loops or the engine's ways. Invariant: no state is kept, nothing is assumed of the order in
which results come; what the engine and the loops give is compared with it, result by result.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from bench.workload import HEAVY, RANGES, Row

Named = tuple[Any, ...]  # ids in the order of the places; where that is none, sorted
ByPlace = dict[str, list[Row]]


def _of(rows: Sequence[Row], kind: str, above: float = 0.0) -> ByPlace:
    found: ByPlace = defaultdict(list)
    for row in rows:
        if row[0] == kind and row[3] > above:
            found[row[2]].append(row)
    return found


def _mean(value: float) -> str:
    return f"{value:.9f}"  # finer than values of two decimals by fewer than 256 can lie between


def brute_filter(rows: Sequence[Row]) -> list[Named]:
    return [(row[4],) for row in rows if row[0] == "Temperature" and 20 < row[3] < 25]


def brute_average(rows: Sequence[Row]) -> list[Named]:
    """Exact sums of all that lie in a window."""
    values: dict[tuple[int, str], list[Fraction]] = defaultdict(list)
    for kind, time_ms, location, value, _ in rows:
        if kind == "Temperature":
            values[time_ms // 300_000, location].append(Fraction(value))
    return [(*key, _mean(float(sum(own) / len(own)))) for key, own in values.items()]


def brute_list(rows: Sequence[Row]) -> list[Named]:
    """Every pair of a motion and a high temperature within a minute, with the doors between."""
    motions, doors, hot = _of(rows, "Motion"), _of(rows, "Door"), _of(rows, "Temperature", 30)
    found: list[Named] = []
    for place, own in motions.items():
        for motion in own:
            for last in hot[place]:
                if motion[1] < last[1] <= motion[1] + 60_000:
                    list_ = [one[4] for one in doors[place] if motion[1] < one[1] < last[1]]
                    if list_:
                        found.append((motion[4], *list_, last[4]))
    return found


def brute_first(rows: Sequence[Row]) -> list[Named]:
    """From each unspent motion the earliest door, from there the earliest high temperature."""
    motions, doors, hot = _of(rows, "Motion"), _of(rows, "Door"), _of(rows, "Temperature", 30)
    found: list[Named] = []
    for place, own in motions.items():
        spent_ms = -1
        for motion in own:
            if motion[1] <= spent_ms:
                continue
            door = next((one for one in doors[place] if one[1] > motion[1]), None)
            last = door and next((one for one in hot[place] if one[1] > door[1]), None)
            if door and last and last[1] - motion[1] <= 60_000:
                found.append((motion[4], door[4], last[4]))
                spent_ms = last[1]
    return found


def brute_any_order(rows: Sequence[Row]) -> list[Named]:
    """Pairs no more than ten seconds apart, and for each pair all of the third type."""
    humid, light, carbon = (_of(rows, kind) for kind in ("Humidity", "Light", "Carbon"))
    found: list[Named] = []
    for place, own in humid.items():
        for a in own:
            for b in light[place]:
                if abs(a[1] - b[1]) <= 10_000:
                    least, greatest = max(a[1], b[1]) - 10_000, min(a[1], b[1]) + 10_000
                    third = [c for c in carbon[place] if least <= c[1] <= greatest]
                    found += [tuple(sorted((a[4], b[4], c[4]))) for c in third]
    return found


def brute_subscriptions(rows: Sequence[Row]) -> list[Named]:
    """Each event against each subscription to its type and location."""
    asked: dict[tuple[str, str], list[tuple[str, float, float]]] = defaultdict(list)
    for number, (kind, place, low, high) in enumerate(RANGES):
        asked[kind, place].append((f"S{number}", low, high))
    return [
        (name, row[4])
        for row in rows
        for name, low, high in asked.get((row[0], row[2]), ())
        if low <= row[3] <= high
    ]


def brute_pairs(rows: Sequence[Row]) -> list[Named]:
    """For each of one type those of the other in the twenty seconds around it."""
    warm, power = _of(rows, "Temperature", 20), _of(rows, "Power", 20)
    found: list[Named] = []
    for place, own in warm.items():
        others = power[place]
        times = [one[1] for one in others]
        for one in own:
            first = bisect_left(times, one[1] - 10_000)
            near = others[first : bisect_right(times, one[1] + 10_000)]
            found += [tuple(sorted((one[4], other[4]))) for other in near]
    return found


BRUTE: dict[str, Callable[[Sequence[Row]], list[Named]]] = {
    "filter": brute_filter,
    "average of 5 min": brute_average,
    "sequence with a list": brute_list,
    "sequence, first": brute_first,
    "three in any order": brute_any_order,
    "1,000 subscriptions": brute_subscriptions,
    HEAVY: brute_pairs,
}

# --- what names a result ----------------------------------------------------------------------

ANY_ORDER = frozenset(("three in any order", HEAVY))


def of_loop(name: str, results: Iterable[tuple[Any, ...]]) -> list[Named]:
    """What the loop for this pattern found."""
    if name == "average of 5 min":
        return [(window, place, _mean(mean)) for window, place, mean in results]
    if name == "1,000 subscriptions":
        return [(f"S{number}", row[4]) for number, row in results]
    found: list[Named] = []
    for result in results:
        ids = []
        for part in result:
            ids += [one[4] for one in part] if isinstance(part, list) else [part[4]]
        found.append(tuple(sorted(ids) if name in ANY_ORDER else ids))
    return found


def of_engine(name: str, results: Iterable[Mapping[str, Any]]) -> list[Named]:
    """What the engine reported."""
    if name == "average of 5 min":
        return [
            (one["end"] // 300_000, mean["place"], _mean(mean["mean"]))
            for one in results
            for mean in [one["values"]["Mean"]]
        ]
    if name == "1,000 subscriptions":
        return [(one["subscription"], *next(iter(one["events"].values()))) for one in results]
    found: list[Named] = []
    for one in results:
        ids = [id_ for bound in one["events"].values() for id_ in bound]
        found.append(tuple(sorted(ids) if name in ANY_ORDER else ids))
    return found
