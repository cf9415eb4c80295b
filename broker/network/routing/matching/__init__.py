"""Which operators an event serves, and with which partners.

Owns the events that are held for partners that may come and the rows of the one index over what is
asked of them (`rows`, `wide`), the joins, the matching itself and the routers' strategies (paper
002). Must not know neighbours' sessions, frames or clocks.

Invariant: an event is said to be wanted exactly by those whose operators it meets; a partner is
found in whichever order both came.

    event ─▶ rows: the index's candidates ─▶ conditions ─▶ alone: wanted
                                                     └▶ joined: partner held? ─▶ both are wanted
"""
