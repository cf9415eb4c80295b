"""Whether what was asked for already implies what is asked for now.

Owns operators as boxes of ranges (`boxes`), the three answers to whether a box lies within others
(`covering`, with `covering_exact`), their tables and the covers of operators (`covers`). Must not
know neighbours or events.

Invariant: an operator is called covered only where each event that it asks for is asked for by the
others; a sampler that somebody brings along, as the experiments of paper 002 do, may err.

    operator ─▶ box ─▶ within a single box? ─ no ─▶ within their union? ─ no ─▶ it has to be told
"""
