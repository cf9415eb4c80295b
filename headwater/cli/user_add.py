"""`headwater user add`: a user for a broker, in its file of users or as a line to be placed.

Owns the command's options. Must not know how the file is written. Invariant: the password is
neither an argument nor printed.
"""

import argparse
import sys

from headwater.cli.output import CommandError, complain, print_json
from headwater.cli.users_file import (
    UsersFile,
    add_file,
    add_password,
    checked_name,
    line_of,
    password,
)

EXAMPLE = '  headwater user add anna --file users.toml    # with users = "users.toml" under [mqtt]'


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("name", metavar="NAME", help="the user")
    add_file(parser, required=False)
    add_password(parser)


def run(arguments: argparse.Namespace) -> int:
    """Writes the user into the file, which is made where it is missing, or prints the line."""
    from broker.credentials import hash_password

    name = checked_name(arguments.name)
    file = UsersFile(arguments.file, new=True) if arguments.file else None
    if file is not None and name in file.users:
        raise CommandError(
            2, f"{file.path}: `{name}` is there already; `headwater user passwd` changes a password"
        )
    encoded = hash_password(password(arguments))
    if file is not None:
        file.put(name, encoded)
        if arguments.json:
            print_json({"name": name, "file": str(file.path)})
    elif arguments.json:
        print_json({"name": name, "hash": encoded})
    else:
        print(line_of(name, encoded))
        if sys.stdout.isatty():
            complain("place this line under [mqtt.users] in the broker's configuration")
    return 0
