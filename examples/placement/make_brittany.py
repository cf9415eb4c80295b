"""Writes brittany.network.json: five brokers for the stations of ../data/molene.csv.gz.

Owns the choice of brokers and of who is at which. The rates are those of the recording: readings of
a station and type over the time that the recording lasts. What a reading has in bytes is what it
has as JSON; the links' delays are made up. Invariant: the same file each time.

    python examples/placement/make_brittany.py
"""  # noqa: INP001  (a script, run by hand)

import csv
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DEPARTMENTS = {"22": "saint-brieuc", "29": "brest", "35": "rennes", "56": "vannes"}
ELSEWHERE = "nantes"
LINKS = (("brest", "saint-brieuc", 4), ("saint-brieuc", "rennes", 3), ("rennes", "vannes", 5))
LINKS += (("vannes", "nantes", 4),)
ACTORS = (("foghorns", "brest"), ("notices", "rennes"))


def network() -> dict[str, Any]:
    """The description, its sources in the order of their first readings."""
    with gzip.open(HERE.parent / "data" / "molene.csv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    times = [int(row["timestamp_ms"]) for row in rows]
    lasts_s = (max(times) - min(times)) / 1000
    counts: dict[str, Counter[str]] = {}
    sizes: dict[str, Counter[str]] = {}
    for row in rows:
        station, name = row["station"], row["attribute"]
        said = {"type": name, "source": station, "timestamp": int(row["timestamp_ms"])}
        said |= {"position": [float(row["lat"]), float(row["lon"])], "value": float(row["value"])}
        counts.setdefault(station, Counter())[name] += 1
        sizes.setdefault(station, Counter())[name] += len(json.dumps(said))
    sources = [
        {
            "source": station,
            "broker": DEPARTMENTS.get(station[:2], ELSEWHERE),
            "types": {
                name: {
                    "rate": round(count / lasts_s, 9),
                    "bytes": round(sizes[station][name] / count),
                }
                for name, count in counts[station].items()
            },
        }
        for station in counts
    ]
    return {
        "name": "brittany",
        "server": "nantes",
        "nodes": [{"id": name} for name in (*DEPARTMENTS.values(), ELSEWHERE)],
        "links": [{"a": a, "b": b, "delay_ms": delay_ms} for a, b, delay_ms in LINKS],
        "sources": sources,
        "home": "rennes",
        "homes": {"FogBank": "brest"},
        "actors": [{"actor": actor, "broker": broker} for actor, broker in ACTORS],
        "estimates": {
            "FogRisk": {"passes": 0.05, "only": {"wind_speed": 0.18}},
            "FogBank": {"passes": 0.13},
            "PersistentFog": {"passes": 0.2},
        },
    }


def written() -> str:
    """The file's text: one entry of a list a line."""
    lines = []
    for key, value in network().items():
        text = json.dumps(value)
        if isinstance(value, list):
            text = "[\n  " + ",\n  ".join(json.dumps(one) for one in value) + "\n]"
        lines.append(f"{json.dumps(key)}: {text}")
    return "{" + ",\n".join(lines) + "}\n"


if __name__ == "__main__":
    (HERE / "brittany.network.json").write_text(written(), encoding="utf-8")
