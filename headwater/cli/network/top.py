"""`headwater top`: brokers, links and tasks as they work, again and again.

Owns the command's options and output. Must not know how brokers count. Invariant: a rate is what
came between two looks, by the clock of the broker that counted; on a terminal the screen is drawn
anew for each look, elsewhere looks follow one another.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from headwater.cli.network.answers import BrokerAnswers, ask_all
from headwater.cli.network.picture import NetworkPicture, with_rates
from headwater.cli.output import print_json, print_table
from headwater.cli.reach import add_options, brokers_of

EXAMPLE = "  headwater top --count 1   # without --count until Ctrl-C"
PATHS = ("/v1/status", "/v1/network", "/v1/subscriptions")
CLEAR = "\x1b[H\x1b[2J"
BROKERS = (
    "BROKER",
    "STATE",
    "CPU",
    "MEMORY",
    "IN/S",
    "RESULTS/S",
    "HELD",
    "P99 S",
    "CLIENTS",
    "CAPACITY",
)
LAST = ("mqtt_clients", "capacity_bytes_per_s")
TASK_KEYS = ("task", "home", "state", "results", "behind", "lag_s")
Look = Mapping[str, BrokerAnswers]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("-n", "--count", type=int, metavar="N", help="end after so many looks")
    parser.add_argument(
        "--interval",
        type=_seconds,
        default=2.0,
        metavar="SECONDS",
        help="between two looks (default 2)",
    )
    add_options(parser)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.1 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"found {text[:40]}, expected 0.1 to 3600 seconds")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Show looks until Ctrl-C or the count; 1 where a broker did not answer the last one."""
    brokers = brokers_of(arguments)
    before = _by_url(ask_all(brokers, PATHS))
    left = arguments.count
    try:
        while left is None or left > 0:
            time.sleep(arguments.interval)
            after = _by_url(ask_all(brokers, PATHS))
            data = as_data(before, after)
            if arguments.json:
                print_json(data)
                sys.stdout.flush()
            else:
                _show(data, clear=sys.stdout.isatty())
            before, left = after, None if left is None else left - 1
    except KeyboardInterrupt:
        return 0
    return 1 if any(answer.error is not None for answer in before.values()) else 0


def _by_url(answers: Sequence[BrokerAnswers]) -> dict[str, BrokerAnswers]:
    return {answer.broker.url: answer for answer in answers}


def as_data(before: Look, after: Look) -> dict[str, Any]:
    """Return one look for programs: brokers, links and tasks, with what came since `before`."""
    return {
        "brokers": [_broker(before[url], answer) for url, answer in after.items()],
        "links": _links(before, after),
        "tasks": [row for answer in after.values() for row in _tasks(answer)],
    }


def _broker(before: BrokerAnswers, after: BrokerAnswers) -> dict[str, Any]:
    if after.error is not None:
        return {"broker": after.name, "state": "silent"}
    status, earlier = after.by_path["/v1/status"], before.by_path.get("/v1/status")
    process = status.get("process", {})
    row: dict[str, Any] = {
        "broker": after.name,
        "state": status["state"] if status["healthy"] else "faulty",
        "memory_bytes": process.get("memory_bytes"),
        "held": status["tasks"]["held"],
        "detection_p99_s": status.get("detection_s", {}).get("p99"),
        "mqtt_clients": status["mqtt"]["connections"],
        "capacity_bytes_per_s": _capacity(status),
    }
    if earlier is not None:
        span_s = (status["now"] - earlier["now"]) / 1000
        # A process that began between the looks has counted since then.
        base = earlier if status["since"] == earlier["since"] else None
        for name, path in (
            ("cpu", ("process", "cpu_s")),
            ("received_per_s", ("events", "received")),
            ("results_per_s", ("events", "results")),
        ):
            count = _at(status, path) - (0 if base is None else _at(base, path))
            row[name] = round(count / span_s, 3) if span_s > 0 else None
    return row


def _capacity(status: Mapping[str, Any]) -> int | None:
    """Return what the broker's tasks may take in; None without a limit or a coordinator."""
    coordinator = (status.get("network") or {}).get("coordinator") or {}
    capacity: int | None = coordinator.get("capacity_bytes_per_s")
    return capacity


def _at(status: Mapping[str, Any], path: tuple[str, str]) -> float:
    return float(status.get(path[0], {}).get(path[1], 0))


def _links(before: Look, after: Look) -> list[dict[str, Any]]:
    looks = [
        [row.by_path["/v1/network"] for row in look.values() if "/v1/network" in row.by_path]
        for look in (before, after)
    ]
    if not all(looks):
        return []
    earlier, picture = (NetworkPicture(views) for views in looks)
    up = {link.ends: link.is_up for link in picture.links}
    return [
        {
            "from": flow.sender,
            "to": flow.receiver,
            "state": "up" if up[min(ends), max(ends)] else "down",
            "events": flow.total,
            "per_s": round(flow.rate, 3) if flow.per_s else 0.0,
            "waiting": sum(row["events"] for row in flow.waiting),
        }
        for flow in with_rates(earlier, picture)
        for ends in [(flow.sender, flow.receiver)]
    ]


def _tasks(answer: BrokerAnswers) -> list[dict[str, Any]]:
    """Return the subscriptions at home at a broker, with the origin that is furthest behind."""
    status = answer.by_path.get("/v1/status", {})
    now_ms = status.get("time_of_day", 0)
    network = status.get("network") or {}
    promised = {**network.get("promised", {})}
    for cell in network.get("run_here", {}).values():
        promised |= cell.get("promised", {})
    rows = []
    for row in answer.by_path.get("/v1/subscriptions", {}).get("subscriptions", []):
        promises = promised.get(f"{row['subscriber']}/{row['subscription']}", {})
        slowest = min(promises, key=lambda origin: (promises[origin], origin), default=None)
        rows.append(
            {
                "task": f"{row['subscriber']}/{row['subscription']}",
                "home": answer.name,
                "state": row["state"],
                "results": row.get("results"),
                "behind": slowest,
                "lag_s": None if slowest is None else (now_ms - promises[slowest]) / 1000,
            }
        )
    return rows


def _show(data: Mapping[str, Any], *, clear: bool) -> None:
    if clear:
        print(CLEAR, end="")
    keys = ("cpu", "memory_bytes", "received_per_s", "results_per_s", "held", "detection_p99_s")
    rows = []
    for row in data["brokers"]:
        cells = [_text(key, row.get(key)) for key in (*keys, *LAST)]
        rows.append((row["broker"], row["state"], *cells))
    print_table(BROKERS, rows)
    if data["links"]:
        print()
        links = [
            [_text(key, row[key]) for key in ("from", "to", "state", "events", "per_s", "waiting")]
            for row in data["links"]
        ]
        print_table(("FROM", "TO", "LINK", "EVENTS", "PER S", "WAITING"), links)
    if data["tasks"]:
        print()
        tasks = [
            [
                _text(key, row[key])
                for key in ("task", "home", "state", "results", "behind", "lag_s")
            ]
            for row in data["tasks"]
        ]
        print_table(("TASK", "HOME", "STATE", "RESULTS", "BEHIND", "LAG S"), tasks)
    sys.stdout.flush()


def _text(key: str, value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float | int) and key == "cpu":
        return f"{100 * value:.0f}%"
    if isinstance(value, int) and key == "memory_bytes":
        return f"{value >> 20} MB"
    if isinstance(value, int) and key == "capacity_bytes_per_s":
        return f"{value:,} B/s"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
