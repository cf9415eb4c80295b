"""A search that is to replace `planner.search`: one problem, one evaluator, moves, one loop.

    Instance     a layout compiled to lists: pieces, streams, limits (never changes)
    Distances    hop counts between all brokers, and their weighted sums
    Topology     hop counts and multicast trees over the links with room for a rate
    Evaluator    hosts, trees, loads; the exact change of a move, and its undoing
    operators    relocate, swap, move together, reroute, destroy and repair: each proposes
    Search       chooses an operator by its weight, accepts or undoes, adapts prices of limits

Owns finding plans. Must not know documents, clocks or files. Invariant: whatever is found depends
on the problem, the seed and the number of iterations alone; lists in place of numpy, so that a
broker can afford it.

Today it is worse than `planner.search` on large problems and on a few tight ones, so no product
uses it; `python -m experiments.search` compares the two. Among many brokers trees take most of its
time.

The form is that of PyVRP and of adaptive large neighbourhood search (Ropke and Pisinger, 2006).
"""
