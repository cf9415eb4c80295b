"""`headwater check`: every error of specifications.

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


def run(arguments: argparse.Namespace) -> int:
    """Checks; 1 where an error was found, 2 where a file cannot be read."""
    status: int = entry("headwater.specifications", "check")(
        arguments.specs, as_json=arguments.json
    )
    return status
