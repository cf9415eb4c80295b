"""The settings of the coordinator.

Owns their meaning, as `table` does that of all others. Must not know how a plan is found.
Invariant: as for every section, each field carries its meaning.
"""

from typing import Annotated

import msgspec

from broker.config.about import About

RATE_AT_MOST = 2**50  # bytes a second, as many as brokers tell each other


class CoordinatorSection(msgspec.Struct, frozen=True, kw_only=True):
    """Placement of tasks in a network of brokers, see docs/planning.md.

    All brokers of a network should have the same settings here, but for the three limits; while
    they differ in `radius`, some of them plan nothing.
    """

    enabled: Annotated[
        bool,
        About(
            "have this broker decide with the others where the tasks of each submission run, "
            "following the load; without it they run where they were submitted. Needs [links]"
        ),
    ] = False
    split_windows: Annotated[
        bool,
        About(
            "have the windows of what is submitted here from now on folded where their events "
            "enter, so that partial results travel instead, if the results are the same; see "
            "docs/planning.md. All brokers have to be of a version that knows this"
        ),
    ] = False
    radius: Annotated[
        int,
        About(
            "a broker plans for those so many links away; one whose limits are broken looks "
            "farther by itself",
            unit="links",
            at_least=0,
            at_most=1_000,
        ),
    ] = 3
    capacity_bytes_per_s: Annotated[
        int,
        About(
            "what the tasks that run here may take in together, measured after simple conditions; "
            "0: as much as this broker finds out that its processors can take, once they are busy",
            unit="bytes/s",
            at_least=0,
            at_most=RATE_AT_MOST,
        ),
    ] = 0
    egress_bytes_per_s: Annotated[
        int,
        About(
            "what this broker may send to all others together; 0: without limit",
            unit="bytes/s",
            at_least=0,
            at_most=RATE_AT_MOST,
        ),
    ] = 0
    link_bytes_per_s: Annotated[
        int,
        About(
            "what this broker may send to each of its neighbours; 0: without limit",
            unit="bytes/s",
            at_least=0,
            at_most=RATE_AT_MOST,
        ),
    ] = 0
    price_percent: Annotated[
        int,
        About(
            "a task moves only where that saves so much of the rate of its inputs; its state is "
            "to be moved once",
            unit="%",
            at_least=0,
            at_most=1_000,
        ),
    ] = 10
    change_percent: Annotated[
        int,
        About(
            "a rate is told again once it and what was told last are so much apart; less would "
            "have tasks follow chance",
            unit="%",
            at_least=1,
            at_most=1_000,
        ),
    ] = 20
    measure_ms: Annotated[
        int,
        About(
            "rates are means over about this time; less follows the load sooner, and chance too",
            unit="ms",
            at_least=1_000,
            at_most=86_400_000,
        ),
    ] = 30_000
