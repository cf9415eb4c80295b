"""`headwater user passwd`: another password for a user of a rights file.

Owns the command's options. Must not know how the file is written. Invariant: the password is
neither an argument nor printed.
"""

import argparse

from headwater.cli.output import print_json
from headwater.cli.rights.rights_file import (
    RightsFile,
    add_file,
    add_password,
    checked_name,
    password,
)

EXAMPLE = "  headwater user passwd anna --file rights.toml"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", metavar="NAME", help="the user")
    add_file(parser)
    add_password(parser)


def run(arguments: argparse.Namespace) -> int:
    """Change it; 2 where there is no such user."""
    from broker.credentials import hash_password

    name = checked_name(arguments.name)
    file = RightsFile(arguments.file)
    file.demand("users", name, there=True)
    file.put("users", name, "password", hash_password(password(arguments)))
    if arguments.json:
        print_json({"name": name, "file": str(file.path)})
    return 0
