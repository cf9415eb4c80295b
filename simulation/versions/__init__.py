"""Runs in which texts are replaced by others of their name while events come.

Owns what is changed, when, and what has to hold of what was found before and behind a change. It
must not know how a broker carries state over. The way: a run of many brokers is drawn as in
`simulation.network.scenario`; its clients submit their subscriptions again and again, each time
with a higher `seq`, and with other values assigned. In every other run subscriptions run as cells,
which go from broker to broker meanwhile, under the faults of `simulation.network.cells`.

Invariant: what all versions of a subscription found together is what one engine finds that never
had another text, each match once. A change that lost half a sequence, or that found again what was
told already, would show.

Beside them are clients of whose texts several need the same definition (`joins`), and who come and
go: each is to find what it would find alone, whichever cell it joins.
"""
