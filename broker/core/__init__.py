"""One broker as pure state machines: the sans-IO core.

Owns events, matching, ordering and accounting. Must not know sockets, files, clocks, randomness,
asyncio or logging: time comes in as integer milliseconds, everything that leaves is an effect.
Invariant: the same messages in the same order give the same effects, byte for byte.
"""
