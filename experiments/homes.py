"""Nursing homes made up by a seed: the scenario that the paper simulates at a larger scale.

Owns the buildings and the four requests. Must not know any planner. Invariant: what a sensor sends
and what a broker bears are the paper's: 1.5 KB a minute from one for the environment, 1.5 KB/s from
a wearable, 6.75 MB/s from a camera; a broker bears 25 K, one unit being 1 KB/s of input.

Paper 003, section 6.3. Three buildings; cameras, wearables and sensors for the environment in their
rooms; surveillance goes to a local server, faces of building A to the gateway, averages to a
controller on each floor, heart-rate patterns to the nearest nurse's tablet.
"""

from random import Random
from typing import Any

Document = dict[str, Any]

ENVIRONMENT = 25  # bytes a second from one sensor
WEARABLE = 1_500
CAMERA = 6_750_000
BEARS = 25_000  # units of work; one is 1 KB/s of input
BUILDINGS = ("A", "B1", "B2")


def nursing_home(seed: int, *, video: bool = True) -> Document:
    """A home of about 20 to 50 brokers; without video what remains is small but no less wanted."""
    random = Random(f"nursing home {seed}")
    nodes, links = ["server", "gateway"], [("server", "gateway")]
    contents: list[Document] = []
    tasks: list[Document] = []
    for building in BUILDINGS:
        hub = f"{building}/hub"
        nodes.append(hub)
        links.append((hub, "server"))
        for floor in range(random.randint(2, 3)):
            _floor(random, f"{building}/{floor}", hub, (nodes, links), (contents, tasks))
    links.append(("A/hub", "B1/hub"))
    if video:
        cameras = {}
        for building in BUILDINGS:
            rooms = [n for n in nodes if n.startswith(f"{building}/") and "room" in n]
            cameras[building] = sorted(random.sample(rooms, 2))
        _video(cameras, contents, tasks)
    return {
        "name": f"nursing home {seed}" + ("" if video else " without video"),
        "server": "server",
        "nodes": [{"id": n} if n == "server" else {"id": n, "capacity": BEARS} for n in nodes],
        "links": [{"a": a, "b": b} for a, b in links],
        "contents": contents,
        "tasks": tasks,
    }


def _floor(
    random: Random,
    floor: str,
    hub: str,
    network: tuple[list[str], list[tuple[str, str]]],
    work: tuple[list[Document], list[Document]],
) -> None:
    """A corridor with rooms; averages to its controller, heart rates to a nurse."""
    nodes, links = network
    contents, tasks = work
    corridor = f"{floor}/corridor"
    rooms = [f"{floor}/room-{i}" for i in range(random.randint(2, 4))]
    nodes += [corridor, *rooms]
    links.append((corridor, hub))
    links += [(room, corridor) for room in rooms]
    links += [(rooms[i], rooms[i + 1]) for i in range(len(rooms) - 1) if random.random() < 0.5]
    rates = {room: ENVIRONMENT * random.randint(1, 4) for room in rooms}
    contents.append({"id": f"Env {floor}", "rates": rates})
    tasks.append(
        {
            "id": f"Average {floor}",
            "inputs": [f"Env {floor}"],
            "mode": "aggregate",
            "cost": 1,
            "merge_cost": 1,
            "partial_rate": 8,
            "rate": 4,
            "destinations": [corridor],
        }
    )
    worn = random.sample(rooms, random.randint(1, 2))
    contents.append({"id": f"Heart {floor}", "rates": dict.fromkeys(sorted(worn), WEARABLE)})
    tasks.append(
        {
            "id": f"Pattern {floor}",
            "inputs": [f"Heart {floor}"],
            "cost": 2 * len(worn),
            "rate": 15,
            "destinations": [random.choice(rooms)],
        }
    )


def _video(cameras: dict[str, list[str]], contents: list[Document], tasks: list[Document]) -> None:
    """Surveillance of all buildings, and faces of building A; each camera's is a shard."""
    for building, rooms in cameras.items():
        contents.append({"id": f"Video {building}", "rates": dict.fromkeys(rooms, CAMERA)})
        tasks.append(
            {
                "id": f"Surveillance {building}",
                "inputs": [f"Video {building}"],
                "mode": "sharded",
                "cost": CAMERA // 1000,
                "rate": CAMERA // 100,
                "destinations": ["server"],
            }
        )
    tasks.append(
        {
            "id": "Faces A",
            "inputs": ["Video A"],
            "mode": "sharded",
            "cost": CAMERA // 1000,
            "rate": 40_000,
            "destinations": ["gateway"],
        }
    )
