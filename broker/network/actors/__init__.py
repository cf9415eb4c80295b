"""Results for actors that listen at another broker than the one that has the results.

Owns the copies that wait until that broker has them (`copies`) and the results of the moment in
which an actor moves from one broker to another (`roaming`). Must not know frames, topics or who
placed the tasks.

Invariant: a copy is kept until its broker has taken it or the limit lets the oldest go, which is
counted; numbers ascend for each broker within one life.

    a result ─▶ its actor listens elsewhere ─▶ a copy with a number ─▶ taken ─▶ let go
                 └▶ it has just left        ─▶ held for a while ─▶ heard of again ─▶ given
"""
