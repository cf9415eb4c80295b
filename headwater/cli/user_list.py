"""`headwater user list`: the names of the users in a file.

Owns the command's options. Must not know how the file is written. Invariant: no hash is printed.
"""

import argparse

from headwater.cli.output import print_json
from headwater.cli.users_file import UsersFile, add_file

EXAMPLE = "  headwater user list --file users.toml"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add_file(parser, required=True)


def run(arguments: argparse.Namespace) -> int:
    """Prints a name a line, in the file's order."""
    names = list(UsersFile(arguments.file).users)
    if arguments.json:
        print_json(names)
    else:
        for name in names:
            print(name)
    return 0
