"""`headwater server tables`: the tables, views and folders that a file of jobs fills.

Owns the table that a person reads. Must not know databases: `server.catalogue` does. Invariant: it
only reads.
"""

import argparse
from pathlib import Path
from typing import Any

from headwater.cli.frame import entry
from headwater.cli.output import print_json, print_table
from headwater.cli.server.refusals import refused_as_command

EXAMPLE = "  headwater server tables jobs.toml --json"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("jobs", metavar="JOBS.toml", help="sources, jobs and sinks")


def run(arguments: argparse.Namespace) -> int:
    """Return 0; 2 where the file is faulty or a database cannot be asked."""
    with refused_as_command():
        listed: list[dict[str, Any]] = entry("server.catalogue", "tables")(Path(arguments.jobs))
    if arguments.json:
        print_json({"tables": listed})
        return 0
    print_table(
        ("name", "kind", "job", "subscription", "rows", "first", "last"),
        [
            (
                table["name"],
                table["kind"],
                table["job"],
                table.get("subscription", "-"),
                "-" if table["rows"] is None else table["rows"],
                table.get("first", "-"),
                table.get("last", "-"),
            )
            for table in listed
        ],
    )
    return 0
