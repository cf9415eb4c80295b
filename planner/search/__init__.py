"""The search for a cheap plan: one problem, one evaluator, moves as objects, one loop.

    Instance     a layout compiled to lists: pieces, streams, limits (never changes)
    Distances    hop counts between all brokers, and sums and minima of them for all at once
    RatedTopology     hop counts and multicast trees over the links with room for a rate
    Loads        what limits bear, by how much they are broken, and which streams take them
    TreeBuilder  trees for streams in the room that the others leave
    Evaluator    hosts, trees, loads; the exact change of a move, and its undoing
    MoveContext      where a piece may be cheap, and the placing of several anew
    moves        recreate, together, eject, reroute and more: each proposes a change
    TabuSearch   the paper's method: always the best move that is not forbidden
    FirstDescent      how a search of many brokers begins: pieces in turn to their best brokers
    Search       anneals over operators drawn by weight, and every other cycle goes on by tabu
                 search from the best; adapts weights, the penalty and prices of limits
    stops        when a search ends, and what it tells of itself

Owns finding plans. Must not know documents, clocks or files. Invariant: whatever is found depends
on the problem, the seed and the number of steps alone; lists in place of numpy, so that a broker
can afford it.

The form is that of PyVRP and of adaptive large neighbourhood search (Ropke and Pisinger, 2006).
"""
