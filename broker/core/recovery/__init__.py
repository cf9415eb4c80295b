"""What a broker writes down, and how it becomes itself again after a restart.

Owns the records of the journal, the form of a snapshot, and the replay of both into a fresh broker.

Must not know files or syncs: bytes come in and go out as arguments.

Invariant: a broker that is restored from a snapshot and the records behind it has the state, and
gives the results, that it would have had without the stop.
"""
