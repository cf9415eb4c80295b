"""Hold and probe: rare events travel first, frequent ones wait for them.

Owns how often sources send, which keys of an operator lead, what neighbours are told of leads, and
which events are released in each direction. Must not know how operators are covered, links or
clocks. Invariant: leads travel as they would without what waits for them, so no two wait for each
other; a neighbour that was asked with silent keys is told all events that these want.

    own events ─▶ rates ─▶ advertisements ─▶ which keys of an operator lead
    an operator with leads ─▶ asked with silent keys ─▶ probing: who asks tells of them
    events, probes ─▶ releases: what goes where, what waits, who is told
"""
