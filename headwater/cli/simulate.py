"""`headwater simulate`: subscription propagation on a described network, in virtual time.

Owns the command's options. Must not simulate: `headwater.simulating` sees to it. Invariant: the
same scenario gives the same bytes.
"""

import argparse

from headwater.cli.frame import entry

EXAMPLE = "  headwater simulate examples/propagation/table-1.json --output loads.json"
ALL = "all"
APPROACHES = (
    "centralised",
    "naive",
    "operator-placement",
    "multi-join",
    "filter-split-forward",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "scenario",
        metavar="SCENARIO.json",
        help="a tree of brokers, sensors, subscriptions and a file of events",
    )
    parser.add_argument(
        "--approach",
        choices=(*APPROACHES, ALL),
        default=ALL,
        metavar="NAME",
        help=f"one of {', '.join(APPROACHES)}; default: all",
    )
    parser.add_argument(
        "--output",
        metavar="OUT.json",
        help="write what was delivered, the loads and the recall there, and a table to standard"
        " output; default: the JSON to standard output",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE.svg",
        help="draw the loads and the recall of the approaches (needs the extra `plots`)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Simulates; 2 where the scenario is faulty."""
    status: int = entry("headwater.simulating", "run")(arguments)
    return status
