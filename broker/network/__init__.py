"""Many brokers as one: sessions, routing, replication, placement and delivery, without I/O.

Owns the machines that decide what travels between brokers, each an object with a narrow `handle`
that is composed into a broker and testable alone. The rooms, each importing only those above it:

    delivery, functions, replication, session    copies of homes, tables, positions, one link
    overlay, placement                           the one tree; tasks, their homes, hosts and terms
    routing                                      which events travel where
    frames, operators                            what is said; from tasks to what they need
    actors, host, neighbours, origin             the parts that a broker composes

Must not know sockets, disks and clocks, and nothing of the broker that it is composed into
(`broker.core`).

Invariant: the same messages in the same order give the same effects, byte for byte.
"""
