"""Every maximum and time of the coordinator, each with its reason and what happens beyond it.

Owns the numbers. Must not know who enforces them. Invariant: no neighbour can make what a broker
knows of others grow without a line here.
"""

from __future__ import annotations

from msgspec import Struct

NAME_CHARS_MAX = 1_100
"""Of a broker, type or key of a submission: more is refused, as no name is that long."""

SUBMISSIONS_MAX = 1_000
"""Told by one home; those beyond stay at home and are counted (`submissions_untold`)."""

INPUTS_MAX = 1_000
"""(origin, type) of one submission; beyond these the home does not tell it, and counts it so."""

STATEMENT_BYTES_MAX = 4_194_304
"""Of all that a home says of its submissions; what does not fit stays at home, counted as above."""

KNOWN_BYTES_MAX = 67_108_864
"""Of all words together, so that no neighbour fills the memory; beyond: refused, counted."""

WORD_BYTES_MAX = 262_144
"""Of a word: a quarter of what a link takes as one message. A submission of which more would have
to be said stays at home, counted as above."""

SUBMISSION_BYTES_MAX = WORD_BYTES_MAX - 4_096
"""Of a submission's word, so that it fits into one that names its reader."""

HOPS_MAX = 1_000
"""That a word travels: no tree that links are cut from within minutes is deeper."""

LOOK_MS = 100
"""Changes of submissions come in bursts: one look for all of a burst."""

SETTLE_MS = 500
"""Words come in bursts: so long must all be silent before what they say is planned with."""

SETTLE_MS_MAX = 3_000
"""It is planned with after so long, however much is said."""

OVERRULED = 1_000
"""Terms that a home goes ahead by where it sets a host itself: more than brokers can agree on while
its word is on its way, so that it holds against whatever they did."""

STEADY_MS = 1_500
"""A task is asked to run elsewhere once nobody has wanted it to be yet another place for so long:
what brokers agree on goes step by step, and each that is carried out costs the task's state."""

STAYS = 2
"""Times of a mean that a task stays where it was moved to, so that rates that go up and down do not
have it go to and fro: what was measured of it before says little of what it is there."""

STAY_MAX = 64
"""A task that comes back to where it was before stays twice as long each time, up to so many times
as long as at first: whatever the rates do, going to and fro dies out."""

STAY_OVER = 3
"""Once a task has stayed so many times as long as it had to, where it was before is forgotten."""

LOST_MS = 5_000
"""A host that nothing is known of for so long has lost its tasks: a tree that changes, and a home
that starts, have every broker unknown for a moment."""

REFUSED_MS = 20_000
"""A host of which so long after it was asked nothing is seen is not asked again; who begins has the
time that its home gives it."""

REFUSALS_MS = 600_000
"""Until then: what it lacked may be there by now."""

RATE_MAX = 2**50
"""Bytes a second; more is refused as no rate."""


class CoordinatorSettings(Struct, frozen=True):
    """Configure the coordinator; 0 is no limit of `capacity`, `egress`, `link`, in bytes a second.

    `capacity` bounds what the tasks that run here take in, `egress` what this broker sends to
    others, `link` what it sends to each neighbour. `price_percent` of the rate of its inputs is
    what moving a task must gain. Rates are means over `measure_ms` and told anew once they differ
    by `change_percent`, and by `rate_least` bytes a second: a change of less moves nothing that
    would be worth it.
    """

    radius: int = 3
    capacity: int = 0
    egress: int = 0
    link: int = 0
    price_percent: int = 10
    change_percent: int = 20
    measure_ms: int = 30_000
    rate_least: int = 64
