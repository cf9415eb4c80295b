"""The stand-in of a home: a neighbour that has a copy of its subscriptions and what they found.

Owns what a home and its stand-in say to each other (`messages`), how far the stand-in has followed
and what the home withholds until then (`feed`), and which home was taken over by which
(`succession`). Must not know what a copy holds: a state and its changes are bytes, made and read by
`broker.core.standby`. Nor does it know links: what is to be said goes through a callable.

Problem: the disk of a home is the only place of its subscriptions, of the last snapshots of their
cells and of the ids of their results. Origins forget what such a snapshot holds, and hosts forget
the results that a home has. So a home that is lost for good would take both with it.

Invariant: whatever lets others forget something (a snapshot is stored, results are taken, a term is
over) leaves a home only when its stand-in has all that this rests on, or has been away for longer
than the home waits for it. A cell has one home at a time: the last succession that names it.

The way through it: a home numbers its changes within a process. The stand-in gets all as of one
number (`HomeEntrusted`), then each change (`HomeChanged`), and answers with how far its disk is
(`HomeKept`).

    none --a neighbour is found, or named--> copying --HomeKept--> following
    following, copying --no way for `WAIT_MS`--> alone --a way--> copying
    following --too much is not acknowledged--> copying

A person has a stand-in take over. It then makes `Succeeded` known, which every broker keeps and
passes on, and which a home that was taken over hears before anything else of its neighbours.
"""
