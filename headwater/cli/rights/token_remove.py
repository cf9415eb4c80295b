"""`headwater token remove`: take a token out of a rights file.

Owns the command's options. Must not know how the file is written. Invariant: a token that is not
there is reported as missing, so that a slip of the keyboard shows.
"""

import argparse

from headwater.cli.output import print_json
from headwater.cli.rights.rights_file import RightsFile, add_file

EXAMPLE = "  headwater token remove spark --file rights.toml"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", metavar="NAME", help="the token")
    add_file(parser)


def run(arguments: argparse.Namespace) -> int:
    """Remove it; 2 where there is no such token."""
    name: str = arguments.name
    file = RightsFile(arguments.file)
    file.demand("tokens", name, there=True)
    file.remove("tokens", name)
    if arguments.json:
        print_json({"name": name, "file": str(file.path)})
    return 0
