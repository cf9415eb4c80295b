"""`headwater broker rename`: another name for a stopped broker, which keeps all that it has.

Owns the command's options and output. Must not know where a name stands, as
`broker.admission.former_names` does. Invariant: status 0 means that the broker's next start is
under the new name.
"""

import argparse

from headwater.cli.output import CommandError, print_json
from headwater.cli.settings import add_options, loaded

EXAMPLE = "  headwater broker rename roof-2 --config roof/broker.toml   # while it is stopped"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("name", metavar="NAME", help="the new name")
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Rename; 2 where that is refused, and nothing is changed."""
    from broker.admission.former_names import RenameError, rename

    given = loaded(arguments)
    try:
        old = rename(given, arguments.name)
    except RenameError as error:
        raise CommandError(2, str(error)) from None
    if arguments.json:
        print_json({"ok": True, "broker": arguments.name, "was": old})
        return 0
    print(f"{old} is {arguments.name} from its next start on, and goes on with all that it has")
    if given.config.links.tls_cert:
        print(f"its certificate for links has to be made out to {arguments.name} before that")
    if given.config.links.host:
        print(f"brokers that have {old} under [links.peers] need the new name there")
    return 0
