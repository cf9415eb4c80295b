"""`headwater invite`: make a code by which a new broker may join the network.

Owns the command's options and output. Must not know what a code opens. Invariant: standard output
has the code and nothing else; nothing else has it.
"""

import argparse

from broker.config import is_loopback
from headwater.cli import http_client
from headwater.cli.output import CommandError, complain, print_json
from headwater.cli.reach import add_options, broker_of

EXAMPLE = "  headwater invite --broker http://127.0.0.1:8080 --address http://10.0.0.2:8080"
OWN_MACHINE = (
    "the code is of use on this machine alone, as the new broker asks at {}; "
    "--address names where others reach this broker"
)
OVERHEARD = "the code came over the network in the clear: make it at the broker's own machine"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--address",
        metavar="URL",
        help="where the new broker reaches this one over HTTP (default: as this command does)",
    )
    parser.add_argument(
        "--trusted",
        action="store_true",
        help="where links need certificates: the new broker may invite others, too, so that it "
        "gets the authority's key",
    )
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print a code; 1 where the broker asked cannot admit others."""
    broker = broker_of(arguments)
    if broker.is_mqtt:
        raise CommandError(2, "invite asks over HTTP; name the broker's http:// address")
    address = arguments.address or broker.url
    params = {"address": address} | ({"trusted": "yes"} if arguments.trusted else {})
    status, answer = http_client.ask(broker, "POST", "/v1/invites", **params)
    if status != 200:
        raise http_client.refused(answer, 2 if status == 422 else 1)
    local = is_loopback(broker.host)
    if local and address == broker.url:
        complain(f"headwater: {OWN_MACHINE.format(address)}")
    elif not (local or broker.encrypted):
        complain(f"headwater: {OVERHEARD}")
    if arguments.json:
        print_json(answer)
    else:
        print(answer["code"])
    return 0
