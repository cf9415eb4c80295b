"""`headwater server status`: how far the jobs of a running server are.

Owns the table that a person reads. Must not know Spark. Invariant: it says no more than the server
told.
"""

import argparse
import os
from datetime import UTC, datetime
from typing import Any

from headwater.cli import http_client
from headwater.cli.output import CommandError, print_json, print_table
from headwater.cli.reach import add_options, broker_of

DEFAULT_SERVER = "http://127.0.0.1:8090"
EXAMPLE = "  headwater server status --server http://127.0.0.1:8090"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "--server",
        metavar="URL",
        default=os.environ.get("HEADWATER_SERVER") or DEFAULT_SERVER,
        help=f"where the server answers (default {DEFAULT_SERVER})",
    )


def run(arguments: argparse.Namespace) -> int:
    """0; 1 where a stream failed or a broker is away; 3 where the server cannot be reached."""
    status = _asked(arguments.server)
    if arguments.json:
        print_json(status)
    else:
        _show(status)
    away = any(not broker["up"] for broker in status["brokers"])
    return 1 if away or any(stream["state"] == "failed" for stream in status["streams"]) else 0


def _asked(url: str) -> dict[str, Any]:
    if not url.startswith(("http://", "https://")):
        raise CommandError(2, f"--server {url}: expected http://… or https://…")
    parser = argparse.ArgumentParser()
    add_options(parser)
    server = broker_of(parser.parse_args(["--broker", url]))
    try:
        status, reply = http_client.ask(server, "GET", "/v1/status")
    except CommandError as error:
        if error.status != 3:
            raise
        raise CommandError(
            3, f"cannot reach a server at {url}: is `headwater server run` running?"
        ) from None
    if status != 200 or "streams" not in reply:
        raise CommandError(3, f"what answers at {url} is no Headwater server")
    return reply


def _show(told: dict[str, Any]) -> None:
    streams = told["streams"]
    print_table(
        ("stream", "state", "batch", "rows", "watermark", "behind"),
        [
            (
                stream["stream"],
                stream["state"],
                stream["batch"],
                stream["rows"],
                (stream["watermark"] or "-").replace("1970-01-01T00:00:00.000Z", "-"),
                sum(broker.get("lag") or 0 for broker in stream["brokers"]),
            )
            for stream in streams
        ],
    )
    rows = [
        (
            broker["broker"],
            stream["stream"],
            "up" if broker["up"] else "away",
            broker.get("next"),
            broker.get("lag"),
            _time(broker.get("reached")),
            _time(broker.get("settled")),
        )
        for stream in streams
        for broker in stream["brokers"]
    ]
    if rows:
        print()
        print_table(("broker", "stream", "state", "next", "behind", "reached", "settled"), rows)
    for stream in streams:
        if (who := stream.get("held_by")) is not None:
            print(f"{stream['stream']}: {_held(who, stream['brokers'])}")
        if stream.get("late"):
            print(
                f"{stream['stream']}: {stream['late']} came later than the windows that they are of"
            )
        if stream.get("error"):
            print(f"{stream['stream']}: {stream['error']}")
    for broker in told["brokers"]:
        if broker.get("why") and not broker["up"]:
            print(broker["why"])


def _held(who: str, brokers: list[dict[str, Any]]) -> str:
    """Why its watermark is where it is."""
    broker = next(each for each in brokers if each["broker"] == who)
    if not broker["up"]:
        return f"waits for broker {who}, which is away"
    return f"waits for broker {who}: {broker['behind']}"


def _time(ms: int | None) -> str:
    if ms is None:
        return "-"
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
