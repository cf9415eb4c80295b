"""`headwater user list`: the names of the users in a rights file, and their roles.

Owns the command's options. Must not know how the file is written. Invariant: no hash is printed.
"""

import argparse

from headwater.cli.output import print_json
from headwater.cli.rights.rights_file import RightsFile, add_file

EXAMPLE = "  headwater user list --file rights.toml"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_file(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print a user a line, in the file's order."""
    file = RightsFile(arguments.file)
    roles = {name: file.tables["users"][name].get("roles", []) for name in file.names("users")}
    if arguments.json:
        print_json([{"name": name, "roles": granted} for name, granted in roles.items()])
    else:
        for name, granted in roles.items():
            print("  ".join(filter(None, (name, ", ".join(granted)))))
    return 0
