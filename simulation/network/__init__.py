"""Many brokers in a virtual world: links that fail, processes that end, disks that forget.

Owns these runs and what is checked of them. Must not know sockets, event loops or the wall clock.
Invariant: a seed and a version of the code determine a run, byte for byte.
"""
