"""`headwater user remove`: take a user out of a rights file.

Owns the command's options. Must not know how the file is written. Invariant: a user that is not
there is reported as missing, so that a slip of the keyboard shows.
"""

import argparse

from headwater.cli.output import print_json
from headwater.cli.rights.rights_file import RightsFile, add_file

EXAMPLE = "  headwater user remove anna --file rights.toml"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", metavar="NAME", help="the user")
    add_file(parser)


def run(arguments: argparse.Namespace) -> int:
    """Remove it; 2 where there is no such user."""
    name: str = arguments.name
    file = RightsFile(arguments.file)
    file.demand("users", name, there=True)
    file.remove("users", name)
    if arguments.json:
        print_json({"name": name, "file": str(file.path)})
    return 0
