"""Repeats seeded runs: `python -m simulation --seed 7`, or `--seed 0 --count 1000` for many.

Owns the command line. Must not know what a run does. Invariant: a run that is not good is told with
its seed, and the exit status is 1.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from simulation import scenario
from simulation.crashes import scenario as crashes
from simulation.network import (
    cells,
    clones,
    correlated,
    first,
    planned,
    remote,
    rewound,
    split,
    suspensions,
    twins,
)
from simulation.network import scenario as network
from simulation.standins import scenario as standins
from simulation.versions import joins
from simulation.versions import scenario as versions

KINDS: dict[str, Callable[[int], Any]] = {
    "cells": cells.run,
    "cloned": clones.run,
    "correlated": correlated.run,
    "crashes": crashes.run,
    "first": first.run,
    "judging": scenario.run,
    "leads": correlated.run_with_leads,
    "lease": standins.run_leased,
    "network": network.run,
    "planned": planned.run,
    "remote": remote.run,
    "rewound": rewound.run,
    "split": split.run,
    "standin": standins.run,
    "suspended": suspensions.run,
    "twins": twins.run,
    "versions": versions.run,
    "joins": joins.run,
}


def main(arguments: list[str]) -> int:
    """Run what is asked for; 0 if all is good."""
    parser = ArgumentParser(prog="python -m simulation", description="Repeat seeded runs.")
    parser.add_argument("--seed", type=int, required=True, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds from there")
    parser.add_argument(
        "--kind",
        choices=tuple(KINDS),
        default="crashes",
        help="crashes: a broker with a journal on a disk that forgets; judging: without a disk,"
        " with malformed input; network: many brokers, with links that fail; correlated:"
        " the same where events wait on their way for partners; leads: as correlated, where one"
        " type is so rare that others wait for it at their origin; cells: the"
        " same with tasks that go from broker to broker; planned: the same where the brokers decide"
        " that; suspended: as cells, with a text that is too much work and begins anew at times;"
        " split: as cells, with windows whose events are folded where they enter; twins: as"
        " network and cells, with sources that are at two brokers and leave one of them; rewound:"
        " as network, with a broker whose disk goes back in time or is empty all at once; cloned:"
        " as network, with a copy of a broker's disk that begins beside it; first:"
        " first events of types, behind *active* and at brokers that have just begun; remote:"
        " subscriptions that are ended from other brokers; standin: as cells, with a home that"
        " is lost and that its stand-in takes over; lease: the same, by itself, with clocks that"
        " differ in rate; versions: as network and cells, with texts that"
        " are replaced by others of their name; joins: as cells, with texts that share definitions"
        " (default: crashes)",
    )
    options = parser.parse_args(arguments)
    bad = 0
    for seed in range(options.seed, options.seed + options.count):
        try:
            outcome = KINDS[options.kind](seed)
        except AssertionError as error:
            bad += 1
            sys.stdout.write(f"{error}\n")
            sys.stdout.flush()
        else:
            if options.count == 1:
                sys.stdout.write(f"{outcome}\n")
    if options.count > 1:
        sys.stdout.write(f"{options.count} runs, {bad} of them not good\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
