"""Every maximum of the topology, each with its value, its reason and what happens at it.

Owns the numbers. Must not know who enforces them. Invariant: no neighbour can make a broker's view
of the network grow without a line here.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from broker.engine.limits import said


class TopologyLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The maxima and times of the topology; all maxima are inclusive."""

    brokers_max: Annotated[
        int, said("brokers known, forgotten ones too: each is some 500 bytes", "refused, told")
    ] = 10_000
    links_max: Annotated[
        int, said("links of one broker: more is no tree of brokers but a mistake", "refused, told")
    ] = 1_000
    states_per_message: Annotated[
        int, said("so many brokers' links are told together: some 10 kB", "the next message")
    ] = 100
    settle_ms: Annotated[
        int, said("changes come in bursts, and a new tree is dear", "one new tree for all", 0)
    ] = 50
    outdone_max: Annotated[
        int,
        said(
            "what is known of earlier lives is outdone at once; who has to do so more often "
            "has a namesake, and each change is a new tree for all",
            "told as an error; the next after outdo_ms, then twice as long each time",
        ),
    ] = 5
    rivals_max: Annotated[
        int,
        said(
            "so often may a state come of one other process of this name, as one left over from "
            "before does",
            "it has a namesake; the one announced later leaves the name to the other",
        ),
    ] = 1
    outdo_ms: Annotated[
        int, said("as long as changes of the tree are let be", "at most an hour apart", 0)
    ] = 1_000
    down_after_ms: Annotated[
        int, said("a link that is back sooner goes on where it was", "it is told as lost", 0)
    ] = 3_000
