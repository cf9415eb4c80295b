"""`headwater explain`: what an error's code means.

Owns the command's options and output. Must not know any error: the table in `language` does.
Invariant: every code that a diagnostic carries can be explained.
"""

import argparse

from headwater.cli.frame import entry

EXAMPLE = "  headwater explain HW104"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("code", metavar="CODE", nargs="?", help="the code; without it, all of them")


def run(arguments: argparse.Namespace) -> int:
    """Explains; 2 where there is no such code."""
    status: int = entry("headwater.specifications", "explain")(
        arguments.code, as_json=arguments.json
    )
    return status
