"""`headwater server mend`: the gaps of a history, filled from where the results still are.

Owns the command's options. Must not know how that is done: `server.upkeep` does. Invariant: with
`--check` nothing changes.
"""

import argparse
from pathlib import Path

from headwater.cli.frame import entry
from headwater.cli.server.refusals import refused_as_command

EXAMPLE = "  headwater server mend history jobs.toml --from /backup/history"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("job", metavar="JOB", help="the job of kind history")
    parser.add_argument("jobs", metavar="JOBS.toml", help="sources, jobs and sinks")
    parser.add_argument(
        "--from", dest="others", action="append", default=[], metavar="FOLDER",
        help="another history to take rows from, such as a backup; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--check", action="store_true", help="print what is missing, and do no more"
    )


def run(arguments: argparse.Namespace) -> int:
    """Return 0; 1 where something is missing still; 2 where it is refused."""
    others = [Path(folder) for folder in arguments.others]
    with refused_as_command():
        sentences, whole = entry("server.upkeep.repair", "mend")(
            Path(arguments.jobs), arguments.job, others, check=arguments.check
        )
    for sentence in sentences:
        print(sentence)
    if whole:
        print("nothing is missing")
    return 0 if whole else 1
