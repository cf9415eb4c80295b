"""`headwater drain`: have the tasks that run at a broker go elsewhere, or let them come again.

Owns the command's options and output. Must not know where they go: the brokers decide that.
Invariant: with --wait, status 0 means that nothing runs there any more.
"""

import argparse
import time

from headwater.cli import http_client
from headwater.cli.output import CommandError, print_json
from headwater.cli.plan import seconds
from headwater.cli.reach import BrokerAddress, add_options, broker_of

EXAMPLE = "  headwater drain --broker http://127.0.0.1:8080 --wait 60"
LOOK_S = 0.5


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("--undo", action="store_true", help="let tasks come again")
    parser.add_argument(
        "--wait", type=seconds, metavar="SECONDS", help="until all have gone, at most"
    )
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Drains; 1 where tasks are left when the time to wait is over."""
    broker = broker_of(arguments)
    if broker.is_mqtt:
        raise CommandError(2, "drain asks over HTTP; name the broker's http:// address")
    if arguments.undo and arguments.wait:
        raise CommandError(2, "--wait is for tasks to go; with --undo there is nothing to wait for")
    status, answer = http_client.ask(broker, "DELETE" if arguments.undo else "POST", "/v1/drain")
    if status != 200:
        raise http_client.refused(answer)
    left = None if arguments.wait is None else _left(broker, arguments.wait)
    if arguments.json:
        print_json({"ok": True, "drained": not arguments.undo, "tasks": left})
    elif arguments.undo:
        print("tasks may come again")
    elif left is None:
        print("tasks are going elsewhere; `headwater plan --broker URL` tells where they are")
    elif left:
        print(f"{left} tasks are still here; the plan tells why")
    else:
        print("no task runs here any more")
    return 1 if left else 0


def _left(broker: BrokerAddress, wait_s: float) -> int:
    """Return how many submissions run here once all have gone, or the time is over."""
    until = time.monotonic() + wait_s
    while True:
        status, reply = http_client.ask(broker, "GET", "/v1/plan")
        if status != 200:
            raise http_client.refused(reply)
        left = len([task for task in reply["tasks"] if task["host"] == reply["broker"]])
        if (reply["drained"] and reply["quiet"] and not left) or time.monotonic() >= until:
            return left
        time.sleep(LOOK_S)
