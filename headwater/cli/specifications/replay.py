"""`headwater replay`: a specification over recorded events, in one process.

Owns the command's options and output. Must not match anything: the engine does. Invariant: the same
files give the same bytes.
"""

import argparse

from broker.engine.runtime.budget import CANDIDATES_ALONE
from headwater.cli.frame import entry
from headwater.cli.settings import functions_option
from simulation.durations import duration_ms

EXAMPLE = "  headwater replay examples/fog.hw --events examples/data/molene.csv.gz"
ERRORS_ASIDE = True  # standard output is for results alone


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("spec", metavar="SPEC.hw", help="the specification")
    parser.add_argument(
        "--events",
        metavar="FILE",
        nargs="+",
        required=True,
        help="JSON lines or CSV, gzip or plain; - is standard input",
    )
    parser.add_argument(
        "--map",
        metavar="NAME=COLUMN,…",
        action="append",
        default=[],
        help='names of CSV columns: timestamp=time,source=mote,x=x_m; type="=Temp" is a constant',
    )
    parser.add_argument(
        "--output", metavar="FILE", help="write results there; - is standard output"
    )
    parser.add_argument(
        "--lateness",
        type=lateness_ms,
        metavar="DURATION",
        help="take events as they come, late by at most so much, as 2s; default: sort them first",
    )
    parser.add_argument(
        "--drift",
        type=drift,
        default=0.0,
        metavar="SHARE",
        help="greatest drift of the clocks, 0.0001 being 100 ppm; makes durations uncertain",
    )
    parser.add_argument(
        "--step-candidates",
        type=positive,
        default=CANDIDATES_ALONE,
        metavar="COUNT",
        help="candidates that one step may look at before the replay ends with status 2",
    )
    parser.add_argument(
        "--skip-bad", action="store_true", help="count faulty lines and pass over them"
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="in place of results, tell which events made each, or how far those without one got",
    )
    functions_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Replays; 2 where the specification or the input is faulty."""
    module = "headwater.explaining.run" if arguments.explain else "headwater.replays.replay"
    status: int = entry(module, "run")(arguments)
    return status


def positive(text: str) -> int:
    """A whole number from 1 up."""
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number from 1 up")
    return int(text)


def drift(text: str) -> float:
    """A share, 0 or more and less than 1."""
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        raise argparse.ArgumentTypeError(f"found {text}, expected a share such as 0.0001")
    return share


def lateness_ms(text: str) -> int:
    """Return the milliseconds of an option such as `2s`, as argparse asks for it."""
    try:
        return duration_ms(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
