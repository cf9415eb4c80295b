"""`headwater token ls`: the tokens in a rights file, their roles and when they end.

Owns the command's options. Must not know how the file is written. Invariant: no token and no hash
is printed.
"""

import argparse

from headwater.cli.output import print_json
from headwater.cli.rights.rights_file import RightsFile, add_file

EXAMPLE = "  headwater token ls --file rights.toml"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_file(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print a token's name a line, in the file's order."""
    file = RightsFile(arguments.file)
    listed = [
        {"name": name, "roles": table.get("roles", []), "until": str(table.get("until", ""))}
        for name, table in file.tables.get("tokens", {}).items()
    ]
    if arguments.json:
        print_json(listed)
    else:
        for token in listed:
            ends = f"until {token['until']}" if token["until"] else ""
            print("  ".join(filter(None, (token["name"], ", ".join(token["roles"]), ends))))
    return 0
