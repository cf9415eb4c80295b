"""What origins and hosts know of each other's events, and how a host goes on without an origin.

Owns the lives of an origin (`descent`), the beginning of each of its processes (`incarnation`:
which positions two lives share, how far the network has seen a broker, and when that may admit its
first event), which types its sources send and which of these others have not answered yet
(`local_sources`), and what a host does while an origin is away (`absence`, `absence_watch`,
`waiting_clocks`); which subscriptions a home has cancelled, kept by its neighbours
(`cancellations`); and what origins promise of the uncertainty and duration of their events, and
what they keep to themselves while such a promise grows (`time_promises`, `growth_hold`).

Must not know events, sessions or links, and nothing of the broker that it is composed into: what
it wants said it hands back as frames, and what it has to know comes in as plain values.

The way through it: a process begins *asking*. To each broker to which a way leads it says `Recall`,
and hears `Recalled`: the places (life, position) that this one has stored, and what it was
promised. When all have answered, or after a bounded wait, it is *settled*: in the life that its
disk tells of, if nobody has seen more; else in a new one. A namesake that was announced before it,
or a broker on a copy of its disk (`disk_claim`), makes it *displaced*; it asks again once that one
is gone.

    asking --all answered, or the wait is over--> settled
    asking, settled --a namesake, or a copy of the disk, was here first--> displaced
    displaced --the link is free again, or the other is forgotten--> asking
    settled --a host has seen more of this very life--> asking, for no time

A host has the time of the origin that is furthest behind, so that one which is away holds all
others. A subscription that says how long it waits has clocks of its own, which pass it over.

    reachable --no way any more--> lost --for AWAY_MS--> away --for `wait`--> passed over
    lost, away, passed over --a way, and the question is answered--> reachable

A type's way: its first event, or an advertisement, shows it; others are told, and asked by a probe
(`broker.network.routing`); behind their answers the events that waited for that are taken.

    unknown --shown--> unanswered --all that can be reached have answered--> answered
    unanswered, answered --no source sends it any more--> unknown

Invariant: two processes that admit events under one name and one life have never both been able to
be heard by one host; so a position of a life means one event, everywhere. Who is away is a message
in the journal, as events are; so a host that recovers passes over the same origins at the same
times, and gives the same results. A type counts as answered only when every broker that could be
reached has said whether it wants it.
"""
