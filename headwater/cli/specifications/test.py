"""`headwater test`: tests of specifications, on a virtual clock.

Owns the command's options. Must not read or run a test: `headwater.testing` does. Invariant: status
0 means that every test of every file passed.
"""

import argparse

from headwater.cli.frame import entry

EXAMPLE = "  headwater test examples/*.hwt"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "files", metavar="FILE.hwt", nargs="+", help="events with times, and expected results"
    )


def run(arguments: argparse.Namespace) -> int:
    """Tests; 1 where a result differs, 2 where a file is faulty."""
    status: int = entry("headwater.testing.run", "run")(arguments.files, as_json=arguments.json)
    return status
