"""`headwater fmt`: specifications in their canonical form.

Owns the command's options and output. Must not know the form: `language` does. Invariant: a file is
replaced only by a text of the same meaning, and only where its form was another.
"""

import argparse

from headwater.cli.frame import entry

EXAMPLE = "  headwater fmt --check examples/*.hw"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "specs",
        metavar="SPEC.hw",
        nargs="+",
        help="a specification, replaced in its place; - from standard input to standard output",
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing; 1 where a file would change"
    )


def run(arguments: argparse.Namespace) -> int:
    """Formats; with --check only looks. 2 where a file cannot be read, understood or written."""
    work = entry("headwater.specifications", "fmt")
    status: int = work(arguments.specs, check=arguments.check, as_json=arguments.json)
    return status
