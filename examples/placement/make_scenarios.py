"""Draws the placement scenarios: a smart nursing home, the logical test and a laboratory.

Owns the networks, and the texts that say the same of each floor. Nothing in them was measured: the
paper names the rates, docs/planning.md says what is ours. Invariant: the same files each time.

    python examples/placement/make_scenarios.py
"""  # noqa: INP001  (a script, run by hand)

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from broker.own_functions import load_functions  # noqa: E402
from headwater.placing import placement_problem  # noqa: E402
from language import check_text  # noqa: E402
from simulation.rehearsal.description import read_network  # noqa: E402

Document = dict[str, Any]

# --- the smart nursing home ---------------------------------------------------------------------

FLOORS = {"a": 3, "b1": 2, "b2": 2}
CAPACITY = 25_000  # the paper's 25 K; one unit is 1 KB/s of input
FRAMES_PER_S, FRAME_BYTES = 30, 225_000  # 6.75 MB/s
MOVING = 0.15  # the part of the frames in which something moves: ours, the paper tells none

HOME_HEAD = """\
# A nursing home of three buildings: what is to be told to whom. Made by make_scenarios.py, since
# each floor has its own air-flow controller.

event Climate(temperature: float, humidity: float, co2: float)   # once a minute from each sensor
event Wearable(heart_rate: int, activity: float)                 # once a second from each resident
event Video(frame: bytes, motion: float, faces: int)             # thirty frames a second

# (i) General surveillance, to the local server: the frames in which something moves.

define Scene(location, frame)
  detect Video(motion > 0.2)
  assign location = Video.location, frame = Video.frame

subscription Surveillance from security to LocalServer
  detect Scene

# (ii) The faces of building A, to the Internet gateway.

define Face(location, frame)
  detect Video(faces > 0, location in path("home/a"))
  assign location = Video.location, frame = Video.frame

subscription FacesOfA from reception to Internet
  detect Face

# (iii) The mean climate of each floor, to its air-flow controller.
"""

FLOOR = """
define Climate_{name}(temperature, humidity, co2) aggr every 5 mins
  detect Climate(location in path("home/{path}"))
  assign temperature = Avg(Climate.temperature), humidity = Avg(Climate.humidity),
         co2 = Max(Climate.co2)

subscription AirFlow_{name} from facilities to AirFlow/{path}
  detect Climate_{name}
"""

HEARTS = """
# (iv) A heart that beats fast though its owner rests, to the nurses' nearest tablet.
"""

HEART = """
subscription Heart_{building} from nurses-{building} to nearest NurseTablet
  detect (Wearable(heart_rate > 120, activity < 0.1) as once
          then[..10 s] Wearable(heart_rate > 120, activity < 0.1) as again)
    in path("home/{building}")
  group by source
"""


def nursing_home_text() -> str:
    """The four requests, floor by floor and building by building."""
    floors = [
        FLOOR.format(name=f"{building.upper()}_{floor}", path=f"{building}/{floor}")
        for building, floor in every_floor()
    ]
    return HOME_HEAD + "".join(floors) + HEARTS + "".join(HEART.format(building=b) for b in FLOORS)


def every_floor() -> list[tuple[str, int]]:
    """Building and floor of each."""
    return [(building, floor) for building, top in FLOORS.items() for floor in range(1, top + 1)]


def nursing_home_network() -> Document:
    """A broker for each wing, floor and building, one at the Internet and the local server."""
    nodes: list[Document] = [{"id": "server"}, {"id": "internet", "capacity": CAPACITY}]
    links: list[Document] = [{"a": "server", "b": "internet"}]
    sources: list[Document] = []
    actors = [
        {"actor": "LocalServer", "broker": "server"},
        {"actor": "Internet", "broker": "internet"},
    ]
    homes = {"Surveillance": "server", "FacesOfA": "internet"}
    for building, top in FLOORS.items():
        nodes.append({"id": building, "capacity": CAPACITY})
        links.append({"a": "server" if building == "a" else "a", "b": building})
        homes[f"Heart_{building}"] = building
        for floor in range(1, top + 1):
            below = building if floor == 1 else f"{building}-{floor - 1}"
            own = f"{building}-{floor}"
            nodes.append({"id": own, "capacity": CAPACITY})
            links.append({"a": below, "b": own})
            actors.append({"actor": f"AirFlow/{building}/{floor}", "broker": own})
            homes[f"AirFlow_{building.upper()}_{floor}"] = own
            for wing in ("east", "west"):
                broker = f"{own}-{wing}"
                nodes.append({"id": broker, "capacity": CAPACITY})
                links.append({"a": own, "b": broker})
                sources += wing_sources(broker, f"home/{building}/{floor}/{wing}")
            if floor % 2:
                tablet = {"actor": f"NurseTablet/{own}", "broker": f"{own}-west"}
                actors.append(tablet)
    return {
        "name": "smart nursing home",
        "server": "server",
        "nodes": nodes,
        "links": links,
        "sources": sources,
        "homes": homes,
        "actors": actors,
        "estimates": nursing_home_estimates(),
    }


def wing_sources(broker: str, location: str) -> list[Document]:
    """Four climate sensors, three residents and a camera."""
    return [
        {
            "source": f"climate-{broker}",
            "broker": broker,
            "location": location,
            "count": 4,
            "types": {"Climate": {"rate": 1 / 60, "bytes": 1500}},
        },
        {
            "source": f"wearable-{broker}",
            "broker": broker,
            "location": location,
            "count": 3,
            "types": {"Wearable": {"rate": 1, "bytes": 1500}},
        },
        {
            "source": f"camera-{broker}",
            "broker": broker,
            "location": location,
            "types": {"Video": {"rate": FRAMES_PER_S, "bytes": FRAME_BYTES}},
        },
    ]


def nursing_home_estimates() -> Document:
    """What of the frames shows something, and what comes of them."""
    found: Document = {
        "Scene": {"passes": MOVING, "bytes": FRAME_BYTES},
        "Surveillance": {"passes": 1, "bytes": FRAME_BYTES},
        "Face": {"passes": 0.05, "bytes": 20_000},
        "FacesOfA": {"passes": 1, "bytes": 20_000},
    }
    for building, floor in every_floor():
        found[f"AirFlow_{building.upper()}_{floor}"] = {"passes": 1}
    for building in FLOORS:
        found[f"Heart_{building}"] = {"passes": 0.001}
    return found


# --- the logical test ---------------------------------------------------------------------------

INTERVALS = (100, 150, 200, 250, 300)  # the paper's "producing rate" behaves like an interval


def logical_test(interval: int, *, rate: int | None = None) -> Document:
    """Four sources, three joins over them and a server four hops away: ours, after section 6.2.

    What the sources send a second falls with the interval; what the brokers can do stays.
    """
    scale = 1000 / interval if rate is None else rate
    names = [f"n{i}" for i in range(1, 10)]
    room = {"n1": 12, "n2": 12, "n3": 12, "n4": 30, "n5": 30, "n6": 60, "n8": 30, "n9": 12}
    ways = [(1, 4), (2, 4), (3, 5), (9, 5), (4, 6), (5, 6), (6, 8), (8, 7)]
    raw = {
        "Stair": ("n1", 300),
        "InBuilding": ("n2", 200),
        "Mobile": ("n3", 150),
        "Monitor": ("n9", 400),
    }

    def sends(*inputs: str, part: float) -> float:
        return round(part * sum(raw[name][1] for name in inputs) * scale, 3)

    def cost(*inputs: str) -> float:
        return round(sum(raw[name][1] for name in inputs) * scale / 100, 3)

    tasks = [
        ("Presence", ["Stair", "InBuilding"], ["n7"], 0.1),
        ("Position", ["InBuilding", "Mobile"], ["n3"], 0.2),
        ("Watch", ["Monitor"], ["n7"], 0.3),
        ("Alarm", ["Stair", "Monitor"], ["n1", "n7"], 0.05),
    ]
    return {
        "name": f"logical test, interval {interval}",
        "server": "n7",
        "nodes": [
            {"id": name, "capacity": room[name]} if name in room else {"id": name} for name in names
        ],
        "links": [{"a": f"n{a}", "b": f"n{b}"} for a, b in ways],
        "contents": [
            {"id": name, "rates": {broker: round(size * scale, 3)}}
            for name, (broker, size) in raw.items()
        ],
        "tasks": [
            {
                "id": name,
                "inputs": inputs,
                "cost": cost(*inputs),
                "rate": sends(*inputs, part=part),
                "destinations": ends,
            }
            for name, inputs, ends, part in tasks
        ],
    }


# --- the laboratory -----------------------------------------------------------------------------


def laboratory_network() -> Document:
    """Six brokers, sixteen sensors of temperature and humidity, eight trackers and one camera.

    Which sensor stood where is not told by the paper's text; the rates are.
    """
    rooms = {"n1": "hall", "n2": "office", "n3": "office", "n4": "meeting", "n5": "meeting"}
    sources: list[Document] = []
    for number in range(16):
        broker = f"n{number % 5 + 1}"
        types = {name: {"rate": 1 / 60, "bytes": 150} for name in ("Temp", "Humid")}
        sources.append(
            {
                "source": f"th-{number + 1}",
                "broker": broker,
                "types": types,
                "location": f"lab/{rooms[broker]}",
            }
        )
    for number in range(8):
        broker = f"n{number % 5 + 1}"
        types = {"Tracking": {"rate": 1 / 30, "bytes": 160}}
        sources.append(
            {
                "source": f"tracking-{number + 1}",
                "broker": broker,
                "types": types,
                "location": f"lab/{rooms[broker]}",
            }
        )
    camera = {"Video": {"rate": 20, "bytes": 216 * 144}}
    sources.append({"source": "camera", "broker": "n6", "location": "lab/hall", "types": camera})
    links = [("n1", "n2"), ("n1", "n3"), ("n2", "n4"), ("n3", "n5"), ("n4", "n6")]
    return {
        "name": "laboratory",
        "server": "n1",
        "nodes": [{"id": f"n{i}", "capacity": 1000} for i in range(1, 7)],
        "links": [{"a": a, "b": b, "capacity": 1_000_000} for a, b in links],
        "sources": sources,
        "homes": {"TempOut": "n3", "HumidOut": "n4", "FaceOfArrival": "n4"},
        "actors": [
            {"actor": "AirController", "broker": "n3"},
            {"actor": "Gateway", "broker": "n4"},
        ],
        "estimates": {
            "MoveIn": {"passes": 1},
            "MoveOut": {"passes": 1},
            "TempOut": {"per_s": 0.001},
            "HumidOut": {"per_s": 0.001},
            "FaceOfArrival": {"per_s": 0.1, "bytes": 400},
        },
    }


# --- writing ------------------------------------------------------------------------------------


def written() -> dict[str, str]:
    """The text of every file, by name."""
    home = nursing_home_text()
    network = nursing_home_network()
    files = {"nursing-home.hw": home, "nursing-home.network.json": as_json(network)}
    files["nursing-home.json"] = as_json(problem(home, network))
    for interval in INTERVALS:
        files[f"logical-test-{interval}.json"] = as_json(logical_test(interval))
    lab = (HERE / "laboratory.hw").read_text(encoding="utf-8")
    network = laboratory_network()
    files["laboratory.network.json"] = as_json(network)
    files["laboratory.json"] = as_json(problem(lab, network))
    return files


def problem(text: str, network: Document) -> Document:
    """The placement problem of a text on a network."""
    functions = load_functions(str(HERE / "laboratory_functions.py"))
    checked = check_text(text, functions=functions).demand()
    return placement_problem(checked, read_network(network)).document


def as_json(document: Document) -> str:
    """JSON with one entry of a list a line."""
    lines = []
    for key, value in document.items():
        if isinstance(value, list):
            inner = ",\n  ".join(json.dumps(entry) for entry in value)
            lines.append(f"{json.dumps(key)}: [\n  {inner}\n]")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{" + ",\n".join(lines) + "}\n"


if __name__ == "__main__":
    for name, text in written().items():
        (HERE / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{name}: {len(text):,} characters\n")
