"""What origins and hosts know of each other's events: lives, positions and incarnations.

Owns the lives of an origin (`descent`) and the beginning of each of its processes (`incarnation`):
which positions two lives share, how far the network has seen a broker, and when that may admit its
first event.

Must not know events, sessions or links, and nothing of the broker that it is composed into: what
it wants said it hands back as frames, and what it has to know comes in as plain values.

The way through it: a process begins *asking*. To each broker to which a way leads it says `Recall`,
and hears `Recalled`: the places (life, position) that this one has stored, and what it was
promised. When all have answered, or after a bounded wait, it is *settled*: in the life that its
disk tells of, if nobody has seen more; else in a new one. A namesake that was announced before it
makes it *displaced*; it asks again once that one is gone.

    asking --all answered, or the wait is over--> settled
    asking, settled --a namesake was here first--> displaced
    displaced --the link is free again--> asking
    settled --a host has seen more of this very life--> asking, for no time

Invariant: two processes that admit events under one name and one life have never both been able to
be heard by one host; so a position of a life means one event, everywhere.
"""
