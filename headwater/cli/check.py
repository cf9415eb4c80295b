"""`headwater check`: every error of specifications.

Owns the command's options and output. Must not judge a text: `language` does. Invariant: status 0
means that each file would be taken by a broker of this version.
"""

import argparse

from headwater.cli.frame import entry
from headwater.cli.output import read_text

EXAMPLE = "  headwater check examples/*.hw"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "specs", metavar="SPEC.hw", nargs="+", help="a specification; - is standard input"
    )


def run(arguments: argparse.Namespace) -> int:
    """Checks; 1 where an error was found."""
    texts = [(name, read_text(name)) for name in arguments.specs]
    status: int = entry("headwater.specifications", "check")(texts, as_json=arguments.json)
    return status
