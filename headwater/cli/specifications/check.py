"""`headwater check`: every error of specifications, and what they come to.

Owns the command's options and output. Must not judge a text: `language` does. Invariant: status 0
means that each file would be taken by a broker of this version.
"""

import argparse
from fractions import Fraction

from headwater.cli.frame import entry
from headwater.cli.settings import functions_option
from headwater.cli.specifications.replay import drift, lateness_ms

EXAMPLE = "  headwater check examples/*.hw"
RATE_MAX = 10**9


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "specs", metavar="SPEC.hw", nargs="+", help="a specification; - is standard input"
    )
    parser.add_argument(
        "--plan", action="store_true", help="draw how each task gets from its sources to its sink"
    )
    parser.add_argument("--svg", metavar="FILE", help="write that drawing there, as SVG")
    parser.add_argument(
        "--bounds",
        action="store_true",
        help="say of each task what the most is that it can hold, and whether it can be split",
    )
    parser.add_argument(
        "--rate",
        metavar="[TYPE=]N",
        action="append",
        default=[],
        type=rate,
        help="for --bounds: events a second of a type, or of each that is not named; default: 1",
    )
    parser.add_argument(
        "--lateness",
        metavar="DURATION",
        type=lateness_ms,
        default=0,
        help="for --bounds: how late events may come, as 2s; default: in order",
    )
    parser.add_argument(
        "--groups", metavar="N", type=groups, help="for --bounds: how many keys `group by` meets"
    )
    parser.add_argument(
        "--operators",
        action="store_true",
        help="say which filters travel toward the sensors, which events travel correlated, and why",
    )
    parser.add_argument(
        "--uncertainty",
        metavar="DURATION",
        type=lateness_ms,
        default=0,
        help="for --bounds, --operators: how uncertain times may be, as 100ms; default: certain",
    )
    parser.add_argument(
        "--drift",
        metavar="SHARE",
        type=drift,
        default=0.0,
        help="for --operators: greatest drift of the clocks, 0.0001 being 100 ppm",
    )
    functions_option(parser)


def groups(text: str) -> int:
    """A number of keys."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"found {text}, expected 1 or more")
    return number


def rate(text: str) -> tuple[str, Fraction]:
    """The event type, or none, and the events a second of `Temp=20` or `0.5`."""
    name, _, number = text.rpartition("=")
    try:
        events_per_s = Fraction(number)
    except (ValueError, ZeroDivisionError):
        events_per_s = Fraction(-1)
    if not 0 <= events_per_s <= RATE_MAX:
        raise argparse.ArgumentTypeError(f"found {text}, expected as Temp=20, or 0.5 for all types")
    return name, events_per_s


def run(arguments: argparse.Namespace) -> int:
    """Checks; 1 where an error was found, 2 where a file cannot be read."""
    status: int
    specs, as_json = arguments.specs, arguments.json
    bounds = arguments.bounds or bool(arguments.rate) or arguments.groups is not None
    if not (arguments.plan or bounds or arguments.operators or arguments.svg is not None):
        status = entry("headwater.specifications", "check")(
            specs, as_json=as_json, functions=arguments.functions
        )
        return status
    rates = dict(arguments.rate)
    usual = rates.pop("", Fraction(1))
    inputs = entry("broker.engine.pattern.bounds.bounds", "Inputs")(
        rates, usual, arguments.lateness, arguments.uncertainty
    )
    times = None
    if arguments.operators:
        times = entry("broker.network.operators.times", "Times")(
            uncertainty_ms_max=arguments.uncertainty, drift=Fraction(str(arguments.drift))
        )
    wanted = entry("headwater.plan.run", "PlanRequest")(
        arguments.plan, arguments.svg, bounds, inputs, arguments.groups, arguments.functions, times
    )
    status = entry("headwater.plan.run", "run")(specs, wanted, as_json=as_json)
    return status
