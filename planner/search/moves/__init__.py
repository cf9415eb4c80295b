"""The moves of a search: each proposes one change of a placement, which the loop keeps or undoes.

    kinds     what a move is (`MoveKind`); recreate, together
    ejection  a piece to a full broker, and what it takes there on to brokers with room
    joint     a piece and the one that it feeds, to the pair of brokers where both cost least
    relief    streams that go around, and limits that are broken

Owns what is tried. Must not know which changes are kept, nor how often a move is drawn: `OPERATORS`
in `planner.search.search` lists the moves, and their weights follow their success. Invariant: a
move changes a placement by `Evaluator.apply` alone and hands back what undoes all of that, in the
order in which it was done; pieces go to brokers that are allowed to run them.

A move is a file or a class here. What it needs is in its `MoveContext`: the evaluator with hosts,
streams and loads, the instance, chances, and where some pieces may be cheap (`choices`).
"""
