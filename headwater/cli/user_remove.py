"""`headwater user remove`: take a user out of a file.

Owns the command's options. Must not know how the file is written. Invariant: a user who is not
there is said to be missing, so that a slip of the keyboard shows.
"""

import argparse

from headwater.cli.output import CommandError, print_json
from headwater.cli.users_file import UsersFile, add_file

EXAMPLE = "  headwater user remove anna --file users.toml"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("name", metavar="NAME", help="the user")
    add_file(parser, required=True)


def run(arguments: argparse.Namespace) -> int:
    """Removes; 2 where there is no such user."""
    name: str = arguments.name
    file = UsersFile(arguments.file)
    if name not in file.users:
        raise CommandError(2, f"{file.path}: there is no user `{name}`")
    file.remove(name)
    if arguments.json:
        print_json({"name": name, "file": str(file.path)})
    return 0
