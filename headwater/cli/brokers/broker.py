"""`headwater broker`: one broker, until it is told to stop.

Owns the command's options. Must not know what a broker does: `broker.process` does. Invariant: a
configuration that is refused starts nothing.
"""

import argparse
import gc
import signal

from headwater.cli.frame import entry
from headwater.cli.output import CommandError
from headwater.cli.settings import add_options, loaded

# Objects made between looks for garbage: with Python's 700, brokers with much state spend half of
# their time looking, and every broker a twentieth of its start.
YOUNG_MAX = 20_000
EXAMPLE = "  headwater broker --set mqtt.port=1884 --set log.level=debug"


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add_options(parser)
    parser.add_argument(
        "--log",
        choices=("text", "json"),
        help="write the log as lines of text or as JSON objects, whatever log.format says",
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs until Ctrl-C or SIGTERM; 2 where it cannot start. With --json its log is JSON."""
    # Until the broker takes signals itself: it has nothing open yet that would need closing.
    before = signal.signal(signal.SIGTERM, _leave)
    gc.set_threshold(YOUNG_MAX)
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return 0
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(arguments: argparse.Namespace) -> int:
    from broker.errors import StartError

    if arguments.log is not None:
        arguments.overrides.append(f"log.format={arguments.log}")
    elif arguments.json:
        arguments.overrides.insert(0, "log.format=json")
    settings = loaded(arguments)
    try:
        entry("broker.process", "run")(settings.config)
    except StartError as error:
        raise CommandError(2, str(error)) from None
    return 0


def _leave(*_: object) -> None:
    raise SystemExit(0)
