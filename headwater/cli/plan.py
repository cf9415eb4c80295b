"""`headwater plan`: where the tasks of a network are done best, or run in one that is there.

Owns the command's options. Must not plan: the planner does. Invariant: standard output is the plan,
or in its place the table or the differences that were asked for, and nothing else.
"""

import argparse
from importlib.util import find_spec

from headwater.cli.frame import entry
from headwater.cli.output import CommandError
from headwater.cli.reach import add_options
from headwater.cli.settings import functions_option

EXAMPLE = """  headwater plan examples/placement.json --time-limit 2 --table
  headwater plan --from examples/fog.hw --network examples/placement/brittany.network.json
  headwater plan --broker http://127.0.0.1:8080"""
RADIUS_MAX = 1_000_000
SECONDS_MAX = 86_400.0
METHODS = ("tabu", "local", "hop", "central", "greedy", "optimal")


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "problem",
        nargs="?",
        metavar="PROBLEM.json",
        help="brokers, links, contents, tasks; - is standard input",
    )
    parser.add_argument(
        "--from",
        dest="spec",
        metavar="SPEC.hw",
        help="in place of a problem: make it of a specification, on the network of --network",
    )
    parser.add_argument(
        "--network",
        metavar="NET.json",
        help="for --from: brokers, links, sources with their rates, homes, actors, estimates",
    )
    functions_option(parser)
    parser.add_argument(
        "--write-problem", metavar="FILE", help="for --from: write the problem there, as JSON"
    )
    parser.add_argument(
        "--method",
        choices=METHODS,
        default="tabu",
        help="tabu (default) searches; local hands tasks on within --radius; hop counts hops only;"
        " central runs all at the server; greedy places by estimate; optimal proves a bound",
    )
    parser.add_argument(
        "--radius", type=whole(0, RADIUS_MAX), default=3, metavar="R", help="for local; default: 3"
    )
    parser.add_argument(
        "--seed", type=whole(0, 2**63), default=1, metavar="N", help="of tabu's chances; default: 1"
    )
    parser.add_argument(
        "--time-limit",
        type=seconds,
        default=10.0,
        metavar="S",
        help="seconds at most for tabu and optimal; default: 10; ends early if nothing improves",
    )
    parser.add_argument(
        "--steps",
        type=whole(0, 10**12),
        metavar="N",
        help="for tabu: exactly so many steps in place of a time, for the same plan everywhere",
    )
    _output_options(parser)
    add_options(parser)


def _output_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is written and drawn."""
    parser.add_argument("--output", metavar="FILE", help="write the plan there, as JSON")
    parser.add_argument("--table", action="store_true", help="print tables in place of the plan")
    parser.add_argument(
        "--diff", metavar="OLD.json", help="print what changes from an older plan, in its place"
    )
    parser.add_argument(
        "--picture", metavar="FILE.svg|FILE.dot", help="draw the network with the plan in it"
    )
    parser.add_argument(
        "--search-picture",
        metavar="FILE.svg",
        help="draw the search: cost over time, moves by kind; needs the extra [plots]",
    )


def run(arguments: argparse.Namespace) -> int:
    """Plans, or asks a running broker; 1 where no plan is feasible, 2 where the input is faulty."""
    if arguments.broker is not None or arguments.context is not None:
        asked: int = entry("headwater.cli.network_plan", "run")(arguments)
        return asked
    # The search itself does without: what else needs numpy says so before any work is done.
    wants = "--picture" if arguments.picture else "--method optimal"
    if (arguments.picture or arguments.method == "optimal") and find_spec("numpy") is None:
        raise CommandError(2, f"{wants} needs numpy: install headwater[planning]")
    status: int = entry("headwater.placement.run", "run")(arguments)
    return status


class whole:  # noqa: N801 - argparse names the type in its messages
    """A whole number within bounds."""

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def __call__(self, text: str) -> int:
        """Raises ArgumentTypeError for anything else."""
        if not text.isascii() or not text.isdigit() or not self.low <= int(text) <= self.high:
            raise argparse.ArgumentTypeError(
                f"found {text}, expected a whole number from {self.low} to {self.high}"
            )
        return int(text)


def seconds(text: str) -> float:
    """More than 0, a day at most."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number <= SECONDS_MAX:
        raise argparse.ArgumentTypeError(f"found {text}, expected seconds, as 10 or 0.5")
    return number
