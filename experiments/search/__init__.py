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
uses it; `python -m experiments.search` compares the two. With 2 s of one core on 32 problems of
`bench.placement_bounds` (15 to 45 brokers) its plans are at most 2.74 % above the best known, the
median is 0.24 %. On a geometric graph of 1,000 brokers it makes 200 to 700 steps a second,
`planner.search` 2,100; two fifths of its time go to trees.

The form is that of PyVRP and of adaptive large neighbourhood search (Ropke and Pisinger, 2006).
"""
