"""`headwater doctor`: what is wrong with brokers, and the command that mends it.

Owns the command's options and output. Must not know what is asked of brokers. Invariant: status 0
means that nothing was found; what is found is told, and nothing is changed.
"""

import argparse
import time

from headwater.cli.network.answers import BrokerAnswers, ask_one, need_http
from headwater.cli.network.findings import PATHS, Finding, findings
from headwater.cli.network.premises import premises
from headwater.cli.output import harmless, print_json
from headwater.cli.reach import add_options, brokers_of

EXAMPLE = "  headwater doctor   # --context home asks all of its brokers, --config FILE a file"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--config",
        metavar="FILE.toml",
        help="look at a configuration, and what it needs of this machine, in place of brokers",
    )
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Tell what is wrong; 1 where something is, also where a broker does not answer."""
    if arguments.config is not None:
        rows = premises(arguments.config)
        asked = arguments.config
    else:
        brokers = brokers_of(arguments)
        need_http(brokers)
        answers: list[BrokerAnswers] = [ask_one(broker, PATHS) for broker in brokers]
        rows = findings(answers, int(time.time() * 1000))
        asked = f"{len(brokers)} broker{'' if len(brokers) == 1 else 's'}"
    if arguments.json:
        print_json({"ok": not rows, "findings": [_as_data(row) for row in rows]})
    elif not rows:
        print(f"nothing is wrong with {asked}")
    for row in () if arguments.json else rows:
        print(harmless(f"{row.level}: {row.about}: {row.sentence}"))
        print(harmless(f"  mend: {row.mend}"))
    return 1 if rows else 0


def _as_data(row: Finding) -> dict[str, str]:
    return {
        "level": row.level,
        "about": row.about,
        "message": row.sentence,
        "mend": row.mend,
    }
