"""What a broker and its neighbours exchange that is no event: links, sources, actors, questions.

Owns what is said when a link comes up and what is taken back when it goes (`linking`), what is
asked of origins and taken of them (`host`), what is told of sources and when (`showing`), what the
first events of a type wait for (`announcing`) and for which actors results travel (`listening`).
Must not know tasks that are placed elsewhere, nor how frames reach a neighbour
(`broker.network.neighbours`).

Invariant: whatever is said again after a lost session says the present state, so that nothing
depends on what the other end still knew.

    LinkUp ─▶ Hello ─▶ States ─▶ sources, operators, actors that listen ─▶ what waits in the outlet
"""
