"""`headwater user add`: a user, with a password and roles, in a broker's rights file.

Owns the command's options. Must not know how the file is written. Invariant: the password is
neither an argument nor printed.
"""

import argparse

from headwater.cli.output import print_json
from headwater.cli.rights.rights_file import (
    RightsFile,
    add_file,
    add_password,
    add_roles,
    checked_name,
    password,
)

EXAMPLE = "  headwater user add anna --role subscribe --file rights.toml"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", metavar="NAME", help="the user")
    add_roles(parser)
    add_file(parser)
    add_password(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the user into the file, which is made where it is missing."""
    from broker.credentials import hash_password

    name = checked_name(arguments.name)
    file = RightsFile(arguments.file, new=True)
    file.demand("users", name, there=False)
    encoded = hash_password(password(arguments))
    file.add("users", name, {"roles": arguments.role, "password": encoded})
    if arguments.json:
        print_json({"name": name, "roles": arguments.role, "file": str(file.path)})
    return 0
