"""Detection in one process: from events to results.

Owns what a pattern, a window and a filter mean while events arrive. Detection moves here from
`broker.core`, room by room; what is new about detection begins here.

Must not know the network, disks, sockets or clocks: an event comes in as an argument, and so does
the current time. What stands above it (`broker.network`, `broker.core`) is never imported.

Invariant: the same events give the same results, byte for byte, however they are batched.
"""
