"""`headwater user passwd`: another password for a user of a file.

Owns the command's options. Must not know how the file is written. Invariant: the password is
neither an argument nor printed.
"""

import argparse

from headwater.cli.output import CommandError, print_json
from headwater.cli.users_file import UsersFile, add_file, add_password, checked_name, password

EXAMPLE = "  headwater user passwd anna --file users.toml"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("name", metavar="NAME", help="the user")
    add_file(parser, required=True)
    add_password(parser)


def run(arguments: argparse.Namespace) -> int:
    """Changes it; 2 where there is no such user."""
    from broker.credentials import hash_password

    name = checked_name(arguments.name)
    file = UsersFile(arguments.file)
    if name not in file.users:
        raise CommandError(2, f"{file.path}: there is no user `{name}`")
    file.put(name, hash_password(password(arguments)))
    if arguments.json:
        print_json({"name": name, "file": str(file.path)})
    return 0
