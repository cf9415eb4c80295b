"""Whether what was asked for already implies what is asked for now.

Owns operators as boxes of ranges (`boxes`), the three answers to whether a box lies within others
(`covering`, with `covering_exact` and `sampling`), their tables and the covers of operators
(`covers`). Must not know neighbours or events.

Invariant: an operator is called covered only where each event that it asks for is asked for by the
others; the sampled answer may err, and says how often at most.

    operator ─▶ box ─▶ within a single box? ─ no ─▶ within their union? ─ no ─▶ it has to be told
"""
