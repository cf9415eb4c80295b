"""Several operators as one, where what lies between them need not be passed on.

Owns joins that all decide at once in one function (`fusion`), a chain of atoms as one walk over
what comes (`sequence`) with its lists (`members`), groups of these over each other (`tree`), and
their snapshots, which are those of operators one by one (`join_snapshot`).

Must not know subscriptions, selection, or which events wait before they come here.

Invariant: what runs as one passes on the same, at the same watermark and in the same order, as its
operators one by one, and takes up their snapshot as they take up its own.
"""
