"""`headwater functions add`: give a file of user functions to a network of brokers.

Owns the command's options and output. Must not know what is in the file: the broker runs it.
Invariant: status 0 means that the file is durable at the broker that was asked, and travels.
"""

import argparse
from pathlib import Path

from headwater.cli import http_client
from headwater.cli.output import CommandError, print_json
from headwater.cli.reach import add_options, broker_of

EXAMPLE = "  headwater functions add own.py"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("file", metavar="FILE.py", type=Path, help="functions in Python, in UTF-8")
    parser.add_argument(
        "--name", metavar="NAME", help="what the file is called there; else as here, without .py"
    )
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Give the file; 2 where it is refused."""
    broker = broker_of(arguments)
    if broker.is_mqtt:
        raise CommandError(2, "functions are given over HTTP; name the broker's http:// address")
    path: Path = arguments.file
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        raise CommandError(2, f"{path}: not UTF-8") from None
    except OSError as error:
        raise CommandError(2, f"{path}: {(error.strerror or str(error)).lower()}") from None
    where = http_client.path_of("v1", "functions", arguments.name or path.stem)
    status, answer = http_client.ask(broker, "POST", where, text)
    if status != 200:
        raise http_client.refused(answer, 2)
    if arguments.json:
        print_json(answer)
        return 0
    names = ", ".join(answer["functions"])
    done = "travels from here" if answer["changed"] else "was here already"
    print(f"{answer['file']} ({answer['digest'][:12]}) {done}: {names}")
    for row in answer["unreached"]:
        print(f"{row['broker']} did not say what it runs: {row['reason']}")
    return 0
