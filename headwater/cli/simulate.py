"""`headwater simulate`: a described network in virtual time: its loads, or a rehearsal of faults.

Owns the command's options. Must not simulate: `headwater.simulations` sees to it. Invariant:
the same files and options give the same bytes.
"""

import argparse

from headwater.cli.frame import entry
from headwater.cli.output import CommandError
from headwater.cli.settings import functions_option

EXAMPLE = """  headwater simulate examples/propagation/table-1.json --output loads.json
  headwater simulate --spec examples/steam.hw --network examples/rehearsal/steam.network.json \\
      --events examples/data/steam.csv.gz --map source=mote --cut bridge-lab@+10m+5m"""
ALL = "all"
APPROACHES = (
    "centralised",
    "naive",
    "operator-placement",
    "multi-join",
    "filter-split-forward",
)
REHEARSED = (
    "network", "events", "functions", "map", "skip_bad", "since", "until", "cut", "end", "slow",
    "lateness", "idle", "results",
)  # fmt: skip


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "scenario",
        nargs="?",
        metavar="SCENARIO.json",
        help="a tree of brokers, sensors, subscriptions and a file of events; - is standard input",
    )
    parser.add_argument(
        "--approach",
        choices=(*APPROACHES, ALL),
        default=ALL,
        metavar="NAME",
        help=f"one of {', '.join(APPROACHES)}; default: all",
    )
    parser.add_argument(
        "--output",
        metavar="OUT.json",
        help="write what was delivered, the loads and the recall there, and a table to standard"
        " output; default: the JSON to standard output. Of a rehearsal: write the report there",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE.svg",
        help="draw the loads and the recall of the approaches; of a rehearsal, loads and delays"
        " over time (needs the extra `plots`)",
    )
    parser.add_argument(
        "--energy",
        metavar="MODEL.toml",
        help="tell the joules that each broker takes, by what a message, a byte and a second cost",
    )
    parser.add_argument(
        "--loss",
        metavar="SHARE",
        type=float,
        help="lose such a share of the events on each link, as where nobody acknowledges; a number"
        " from 0 to 1",
    )
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="of what is lost; 1")
    _configure_rehearsal(parser.add_argument_group("rehearsal of faults, in place of a scenario"))


def _configure_rehearsal(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--spec", metavar="SPEC.hw", help="the specification")
    functions_option(group)
    group.add_argument(
        "--network",
        metavar="NET.json",
        help="brokers, links, sources with their brokers, homes, actors",
    )
    group.add_argument(
        "--events", metavar="FILE", nargs="+", help="recorded events, as for `headwater replay`"
    )
    group.add_argument(
        "--map",
        metavar="NAME=COLUMN,…",
        action="append",
        default=[],
        help="names of CSV columns, as for `headwater replay`",
    )
    group.add_argument(
        "--skip-bad", action="store_true", help="count faulty lines and pass over them"
    )
    group.add_argument(
        "--since", metavar="WHEN", help="leave out the events before this time; see --cut for WHEN"
    )
    group.add_argument("--until", metavar="WHEN", help="leave out the events from this time on")
    group.add_argument(
        "--cut",
        metavar="A-B@WHEN+LASTS",
        action="append",
        default=[],
        help="cut a link, as hall-roof@14:00+20m; WHEN by the events' own clock: 14:00,"
        " 2014-01-11T14:00 (UTC, or with an offset), or +30m after the first event",
    )
    group.add_argument(
        "--end",
        metavar="B@WHEN+LASTS",
        action="append",
        default=[],
        help="end a broker's process and begin it again, as hall@14:05+2m",
    )
    group.add_argument(
        "--slow",
        metavar="A-B@WHEN+LASTS:BY",
        action="append",
        default=[],
        help="make a link slower, as hall-roof@14:00+20m:500ms",
    )
    group.add_argument(
        "--lateness", metavar="DURATION", help="how late events may come; default: 1s, as brokers"
    )
    group.add_argument(
        "--idle",
        metavar="DURATION",
        help="how long a silent source is waited for; default: 1m, as brokers",
    )
    group.add_argument(
        "--results", metavar="FILE", help="write the results there, as `headwater replay` does"
    )


def run(arguments: argparse.Namespace) -> int:
    """Simulates; 1 where a rehearsal's results differ, 2 where the input is faulty."""
    rehearsed = [name for name in REHEARSED if getattr(arguments, name)]
    if (arguments.scenario is None) == (arguments.spec is None):
        raise CommandError(
            2, "tell either SCENARIO.json, or --spec SPEC.hw, --network NET.json and --events FILE"
        )
    if arguments.loss is not None and not 0 <= arguments.loss <= 1:
        raise CommandError(2, f"--loss is a number from 0 to 1, and {arguments.loss:g} is not")
    if arguments.spec is None:
        if rehearsed:
            name = rehearsed[0].replace("_", "-")
            raise CommandError(2, f"--{name} is for a rehearsal, which --spec begins")
        return int(entry("headwater.simulations.loads", "run")(arguments))
    missing = [name for name in ("network", "events") if not getattr(arguments, name)]
    if missing:
        raise CommandError(2, f"a rehearsal needs --{missing[0]}, too")
    if arguments.loss is not None:
        raise CommandError(
            2, "--loss is for a SCENARIO.json; in a rehearsal brokers repeat what was lost"
        )
    if arguments.approach != ALL:
        raise CommandError(2, "--approach is for a SCENARIO.json; a rehearsal runs what brokers do")
    return int(entry("headwater.simulations.rehearsal", "run")(arguments))
