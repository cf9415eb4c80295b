"""`headwater forget`: have nobody wait any more for a broker that will not come back.

Owns the command's options and output. Must not know what others had kept for that broker.
Invariant: status 0 means that the network was told.
"""

import argparse

from headwater.cli import http_client
from headwater.cli.output import CommandError, print_json
from headwater.cli.reach import add_options, broker_of

EXAMPLE = "  headwater forget pi3 --broker http://127.0.0.1:8080"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", metavar="NAME", help="the broker that will not come back")
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Forget a broker; 1 where the broker asked does not know it."""
    broker = broker_of(arguments)
    if broker.is_mqtt:
        raise CommandError(2, "forget asks over HTTP; name the broker's http:// address")
    path = http_client.path_of("v1", "brokers", arguments.name)
    status, answer = http_client.ask(broker, "DELETE", path)
    if status not in {200, 202}:
        raise http_client.refused(answer)
    if arguments.json:
        print_json({"ok": True, "forgotten": arguments.name})
    else:
        print(f"nobody waits for {arguments.name} any more; what was kept for it is let go")
    return 0
