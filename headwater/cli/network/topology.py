"""`headwater topology`: brokers, links, and what travels over each for whom.

Owns the command's options and output. Must not know how brokers decide on a tree. Invariant: status
0 means that every broker that was asked has answered.
"""

import argparse

from headwater.cli.network import diagram
from headwater.cli.network.look import add_interval, seen
from headwater.cli.network.picture import LinkFlow, NetworkPicture
from headwater.cli.output import harmless, print_json
from headwater.cli.reach import add_options, brokers_of

EXAMPLE = "  headwater topology --as svg > network.svg   # --context home asks all of its brokers"
FORMS = ("tree", "dot", "svg")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--as", dest="form", choices=FORMS, default="tree", help="the form (default: tree)"
    )
    parser.add_argument(
        "--operators", action="store_true", help="in the tree: what travels over each link for whom"
    )
    add_interval(parser)
    add_options(parser, client=False)


def run(arguments: argparse.Namespace) -> int:
    """Show the network; 1 where a broker of the context does not answer, or has no links."""
    picture, flows, status = seen(brokers_of(arguments), arguments.interval)
    if arguments.json:
        print_json(as_data(picture, flows))
    elif arguments.form == "dot":
        print(diagram.as_dot(picture, flows), end="")
    elif arguments.form == "svg":
        print(diagram.as_svg(picture, flows), end="")
    else:
        for line in diagram.as_tree(picture, flows, operators=arguments.operators):
            print(harmless(line))
    return status


def as_data(picture: NetworkPicture, flows: list[LinkFlow]) -> dict[str, object]:
    """Return the network for programs."""
    return {
        "brokers": [
            {"name": name, "reachable": reachable, "asked": name in picture.views}
            for name, reachable in sorted(picture.reachable.items())
        ],
        "links": [
            {"ends": list(link.ends), "tree": link.in_tree, "up": link.is_up, "reason": link.reason}
            for link in picture.links
        ],
        "flows": [
            {
                "from": flow.sender,
                "to": flow.receiver,
                "events": flow.total,
                "per_s": round(flow.rate, 3) if flow.per_s else None,
                "operators": [
                    {
                        "wants": operator["wants"],
                        "for": picture.users(operator["id"]),
                        "covers": [row["wants"] for row in picture.covered(operator["id"], flow)],
                    }
                    for operator in flow.operators
                ],
            }
            for flow in flows
        ],
    }
