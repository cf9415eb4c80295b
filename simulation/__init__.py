"""Brokers' cores in a virtual world: virtual clock, network and disk, seeded, with checkers.

Owns worlds, simulated clients and what is checked of a run. Must not know sockets, event loops or
the wall clock. Invariant: a seed and a version of the code determine a run, byte for byte.
"""
