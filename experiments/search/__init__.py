"""A search that is to replace `planner.search`: one problem, one evaluator, moves, one loop.

    Instance     a layout compiled to lists: pieces, streams, limits (never changes)
    Distances    hop counts between all brokers, and sums and minima of them for all at once
    Topology     hop counts and multicast trees over the links with room for a rate
    Loads        what limits bear, and by how much they are broken
    TreeBuilder  trees for streams in the room that the others leave
    Evaluator    hosts, trees, loads; the exact change of a move, and its undoing
    Context      where a piece may be cheap, and the placing of several anew
    operators    relocate, swap, recreate, reroute and more: each proposes a change
    TabuSearch   the paper's method: always the best move that is not forbidden
    Descent      how a search of many brokers begins: each piece in turn to its best broker
    Search       anneals over operators drawn by weight, and every other cycle goes on by tabu
                 search from the best; adapts weights, the penalty and prices of limits

Owns finding plans. Must not know documents, clocks or files. Invariant: whatever is found depends
on the problem, the seed and the number of iterations alone; lists in place of numpy, so that a
broker can afford it.

Today no product uses it. Up to 60 brokers its plans are about as good as those of `planner.search`.
On 1,000 brokers it finds plans where no broker has room to spare. Where links are limited too, it
is slower: after 20 s of one core its flow is a few percent above that of the other. Among many
brokers trees take most of its time. `python -m experiments.search` compares the two.

The form is that of PyVRP and of adaptive large neighbourhood search (Ropke and Pisinger, 2006).
"""
