"""The searches for a cheap plan.

Owns what needs numpy: distances, Steiner trees, the state of a search and its moves. Must not know
documents, clocks or files. Invariant: whatever is found depends on the problem, the seed and the
number of steps alone; a limit of time only decides after which step the search ends.
"""
