"""One broker among others: what it tells them, what it needs of them, and what outlasts it.

Owns the protocol between brokers, which docs/network.md tells. Must not know sockets or clocks; a
frame is bytes to be brought to a neighbour. Invariant: a host's position at an origin is passed
only by a message that carries all that the host needs up to the new one.
"""
