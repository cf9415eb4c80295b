"""`headwater submit`: a specification into a running broker.

Owns the command's options and output. Must not judge the text: the broker does. Invariant: status 0
means that the broker has installed every subscription of the file.
"""

import argparse
import time
from typing import Any

from headwater.cli import http_client
from headwater.cli.diagnostics import rendered
from headwater.cli.output import CommandError, complain, print_json, read_text
from headwater.cli.reach import Broker, add_options, broker_of

EXAMPLE = "  headwater submit examples/weather.hw --wait"
LOOK_EVERY_S = 0.2
ACTIVE = "active"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("spec", metavar="SPEC.hw", help="the specification; - is standard input")
    parser.add_argument(
        "--wait",
        action="store_true",
        help="until every subscription is active everywhere (HTTP only)",
    )
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Submits; 2 where the specification is faulty."""
    text = read_text(arguments.spec)
    broker = broker_of(arguments)
    if broker.is_mqtt and arguments.wait:
        raise CommandError(2, "--wait asks over HTTP; name the broker's http:// address")
    reply = _submitted(broker, text)
    if arguments.json:
        print_json(reply)
    if reply.get("ok") is not True:
        if not arguments.json:
            complain(rendered(arguments.spec, text, reply.get("errors") or [{}]))
        return 2
    names = [str(name) for name in reply.get("subscriptions", [])]
    if arguments.wait:
        _wait(broker, names)
    if not arguments.json:
        print(f"installed: {', '.join(names) or 'nothing to run'}")
    return 0


def _submitted(broker: Broker, text: str) -> dict[str, Any]:
    if broker.is_mqtt:
        from headwater.cli import mqtt_client

        return mqtt_client.run(mqtt_client.ask(broker, "submit", text))
    path = "/v1/subscriptions"
    _status, reply = http_client.ask(broker, "POST", path, text, client=broker.client)
    return reply


def _wait(broker: Broker, names: list[str]) -> None:
    """Asks until all are active, at most for the time that the options allow."""
    deadline = time.monotonic() + broker.timeout_s
    while True:
        _status, listed = http_client.ask(broker, "GET", "/v1/subscriptions")
        states = {s.get("subscription"): s.get("state") for s in listed.get("subscriptions", [])}
        waiting = [name for name in names if states.get(name) != ACTIVE]
        if not waiting:
            return
        if time.monotonic() > deadline:
            told = ", ".join(f"{name} ({states.get(name, 'not listed')})" for name in waiting)
            raise CommandError(1, f"installed, but not active everywhere in time: {told}")
        time.sleep(LOOK_EVERY_S)
