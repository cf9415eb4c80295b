"""`headwater take-over`: have a broker take over the subscriptions of a home that is lost.

Owns the command's options and output. Must not know what a copy of a home holds. Invariant: status
0 means that the broker's disk has the subscriptions that are named, and that they go on there.
"""

import argparse
from collections.abc import Mapping
from typing import Any

from headwater.cli import http_client
from headwater.cli.output import CommandError, print_json
from headwater.cli.reach import add_options, broker_of

EXAMPLE = "  headwater take-over pi3 --broker http://10.0.0.2:8080"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "name", metavar="HOME", help="the broker whose subscriptions are taken over"
    )
    parser.add_argument(
        "--force", action="store_true", help="also where it can be reached, or another has more"
    )
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Take over a home; 1 where that is refused, or some of its texts are."""
    broker = broker_of(arguments)
    if broker.is_mqtt:
        raise CommandError(2, "take-over asks over HTTP; name the broker's http:// address")
    path = http_client.path_of("v1", "brokers", arguments.name, "take-over")
    params = {"force": "1"} if arguments.force else {}
    status, answer = http_client.ask(broker, "POST", path, **params)
    if status != 200:
        raise http_client.refused(answer)
    if arguments.json:
        print_json(answer)
        return 1 if answer["refused"] else 0
    begun = {tuple(key) for key in answer["begun"]}
    print(f"{len(answer['subscriptions'])} subscriptions of {arguments.name} go on here")
    for subscriber, name in answer["subscriptions"]:
        note = ", which begins with nothing" if (subscriber, name) in begun else ""
        print(f"  {name} of {subscriber}{note}")
    for refusal in answer["refused"]:
        names = ", ".join(name for _, name in refusal["subscriptions"])
        print(f"not taken over: {names} ({refusal['reason']})")
    return 1 if answer["refused"] else 0


def remark_of(unreached: Mapping[str, Any]) -> str:
    """Return who has the subscriptions of a broker that cannot be asked; "": nobody is known."""
    home, stand_in = unreached["broker"], unreached.get("stand_in")
    if stand_in:
        return (
            f"{stand_in} has a copy of {home}; if {home} will not come back, have it go on "
            f"there: `headwater take-over {home}`, asked of {stand_in}"
        )
    heir = unreached.get("taken_over_by")
    return f"{heir} has taken {home} over" if heir else ""
