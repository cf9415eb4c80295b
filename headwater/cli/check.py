"""`headwater check`: every error of specifications, and what they come to.

Owns the command's options and output. Must not judge a text: `language` does. Invariant: status 0
means that each file would be taken by a broker of this version.
"""

import argparse

from headwater.cli.frame import entry

EXAMPLE = "  headwater check examples/*.hw"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "specs", metavar="SPEC.hw", nargs="+", help="a specification; - is standard input"
    )
    parser.add_argument(
        "--plan", action="store_true", help="draw how each task gets from its sources to its sink"
    )
    parser.add_argument("--svg", metavar="FILE", help="write that drawing there, as SVG")


def run(arguments: argparse.Namespace) -> int:
    """Checks; 1 where an error was found, 2 where a file cannot be read."""
    status: int
    if arguments.plan or arguments.svg is not None:
        status = entry("headwater.plan.run", "run")(
            arguments.specs, plan=arguments.plan, svg=arguments.svg, as_json=arguments.json
        )
        return status
    status = entry("headwater.specifications", "check")(arguments.specs, as_json=arguments.json)
    return status
