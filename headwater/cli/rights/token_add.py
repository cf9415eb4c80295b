"""`headwater token add`: a token for a program, in a broker's rights file.

Owns the command's options. Must not know how the file is written. Invariant: the token is printed
once, on standard output; the file holds its hash alone.
"""

import argparse
import sys

from headwater.cli.output import complain, print_json
from headwater.cli.rights.rights_file import RightsFile, add_file, add_roles, checked_name

EXAMPLE = "  headwater token add spark --role look --until 2027-12-31T00:00Z --file rights.toml"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", metavar="NAME", help="the program")
    add_roles(parser)
    parser.add_argument("--until", metavar="INSTANT", help="when it ends; without: never")
    add_file(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the token's hash into the file and print the token."""
    from broker.credentials import new_token, token_digest

    name = checked_name(arguments.name)
    file = RightsFile(arguments.file, new=True)
    file.demand("tokens", name, there=False)
    token = new_token()
    keys = {"roles": arguments.role, "digest": token_digest(token)}
    if arguments.until:
        keys["until"] = arguments.until
    file.add("tokens", name, keys)
    if arguments.json:
        print_json({"name": name, "token": token, "file": str(file.path)})
    else:
        print(token)
        if sys.stdout.isatty():
            complain("it is shown this once; a program sends it as `Authorization: Bearer TOKEN`")
    return 0
