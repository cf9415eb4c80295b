"""Which events travel where: the router of one broker (paper 002), and who has heard what it asks.

Owns which operators each neighbour is asked with and which neighbours an event goes to (`router`,
`asking`, `growing`), and the probes by which a broker learns that every broker that it can reach
has heard all that it said before (`probes`, `wants`, `entry`). Must not know tasks, links, journals
or clocks. Its rooms: `advertisement` (what is said),
`covering` (is it implied?), `matching` (what an event serves), `leads` (who travels first).

Invariant: what a broker's own users and its neighbours asked for reaches them, over each link once.
An echo is said by a broker only behind its own answers to what came before the probe, and behind
the echoes of all brokers beyond it; links keep the order of what they bring. So where an echo has
come, every answer has.

    advertisements ─▶ sources ─┐
    operators ─▶ covering (is it implied by what was asked?) ─▶ growing ─▶ told to neighbours
    an event ─▶ rows of the filter's one index ─▶ matching, joins ─▶ router ─▶ which neighbours

A broker begins a probe; each passes it on to its other neighbours in the tree; one that has none
echoes at once, and each other one when all of its neighbours have echoed. This is the echo
algorithm (a wave out and a convergecast back), with numbers in place of one wave at a time: an echo
stands for all probes up to its number. A neighbour whose session ended has heard nothing and is
asked anew in the next; one that is no neighbour in the tree any more is not waited for. A process
that has just begun waits besides until its links are up, or had their time.

    begun ──▶ asked of all neighbours ──▶ echoed by all ──▶ answered
                  ▲                │
                  └── session ended┘
"""
