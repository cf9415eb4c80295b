"""`headwater functions remove`: take a file of user functions away from a network.

Owns the command's options and output. Must not know who calls the functions. Invariant: status 0
means that the removal is durable at the broker that was asked, and travels.
"""

import argparse

from headwater.cli import http_client
from headwater.cli.output import CommandError, print_json
from headwater.cli.reach import add_options, broker_of

EXAMPLE = "  headwater functions remove own"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", metavar="NAME", help="the file's name, as `functions ls` has it")
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Remove the file; 1 where that is refused."""
    broker = broker_of(arguments)
    if broker.is_mqtt:
        raise CommandError(2, "functions are removed over HTTP; name the broker's http:// address")
    where = http_client.path_of("v1", "functions", arguments.name)
    status, answer = http_client.ask(broker, "DELETE", where)
    if status != 200:
        raise http_client.refused(answer)
    if arguments.json:
        print_json(answer)
        return 0
    print(f"{answer['file']} is removed")
    for row in answer["unreached"]:
        print(f"{row['broker']} did not say what calls it: {row['reason']}")
    return 0
