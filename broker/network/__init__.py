"""Many brokers as one: sessions, routing, replication, placement and delivery, without I/O.

Owns the machines that decide what travels between brokers, each an object with a narrow `handle`
that is composed into a broker and testable alone. They move here from `broker.core.network`, one by
one; what is new about the network begins here.

Must not know sockets, disks and clocks, and nothing of the broker that it is composed into
(`broker.core`).

Invariant: the same messages in the same order give the same effects, byte for byte.
"""
