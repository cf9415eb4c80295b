"""Brokers' cores in a virtual world: virtual clock, network and disk, seeded, with checkers.

Owns worlds, simulated clients and what is checked of a run. Must not know sockets, event loops or
the wall clock. Invariant: a seed and a version of the code determine a run, byte for byte.

    a seed ─▶ scenario ─▶ clients (readings, faults, visitors) ─▶ world (virtual time)
                              site, disk: the core as a process would drive it ◀─┘
                                      └─▶ account, checkers ─▶ what did not hold, with the seed
"""
