"""Many brokers in a virtual world: links that fail, processes that end, disks that forget.

Owns these runs and what is checked of them. Must not know sockets, event loops or the wall clock.
Invariant: a seed and a version of the code determine a run, byte for byte.

    a seed ─▶ scenario, or a kind of it (cells, planned, correlated, split, twins …) ─▶ place
    place: a machine, its processes and links ─▶ faults: cut, lost, ended, restored, copied
                                                 └─▶ checks: the same results as of one engine
"""
