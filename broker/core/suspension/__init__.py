"""Suspended subscriptions whose tasks run elsewhere than at their homes.

Owns what a home and the hosts of its cells make of the rows in which they tell each other which
subscriptions are suspended (`broker.network.placement.suspension`). Must not know frames, cells, or
when a step of an agent is too much work.

Invariant: a home counts how often each has begun anew, and both ends say that count with whatever
they say; so what was said before a new beginning changes nothing behind it. What a home has heard
of is on its disk, and goes to every host that follows.

    host: a step exceeded its budget ──▶ home writes it down and tells the subscriber
                                           │ a wish to resume: the count goes up
    host: begins anew, or stays as it is ◀─┘
"""
