"""`headwater user add`: a user for a broker's configuration.

Owns the command's options and the asking for a password. Must not write any file: the line is for
the user to place. Invariant: the password is neither an argument nor printed.
"""

import argparse
import json
import re
import sys

from headwater.cli.output import CommandError, ask_password, complain, print_json

EXAMPLE = '  headwater user add anna >> users.toml      # with users = "users.toml" under [mqtt]'
PASSWORD_LENGTH_MAX = 1024


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("name", metavar="NAME", help="the user")


def run(arguments: argparse.Namespace) -> int:
    """Prints the line `name = "hash"`; the password comes from the terminal or standard input."""
    from broker.config.table import NAME_PATTERN, NAME_SAYS
    from broker.credentials import hash_password

    name: str = arguments.name
    if not re.fullmatch(NAME_PATTERN, name):
        raise CommandError(2, f"the user name `{name}` will not do, expected {NAME_SAYS}")
    encoded = hash_password(_password())
    if arguments.json:
        print_json({"name": name, "hash": encoded})
    else:
        key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
        print(f'{key} = "{encoded}"')
        if sys.stdout.isatty():
            complain("place this line under [mqtt.users] in the broker's configuration")
    return 0


def _password() -> str:
    if sys.stdin.isatty():
        password = ask_password("password: ")
        if ask_password("once more: ") != password:
            raise CommandError(2, "the two passwords differ")
    else:
        password = sys.stdin.readline(PASSWORD_LENGTH_MAX + 2).rstrip("\r\n")
    if not password:
        raise CommandError(2, "an empty password is no password")
    if len(password) > PASSWORD_LENGTH_MAX:
        raise CommandError(2, f"a password has at most {PASSWORD_LENGTH_MAX} characters")
    return password
