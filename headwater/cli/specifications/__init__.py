"""The commands about specifications, without a broker: check, lay out, explain, test, replay.

Owns their options and output. Must not know the language's rules: `headwater.specifications`,
`headwater.replays` and `headwater.testing` ask those who do. Invariant: a faulty text is told
whole, each error with its place and what would be right; its exit status is that of faulty input.

The way: each command reads its files (`headwater.given`), has the work done, and prints what came
of it; `diagnostics` is how an error looks.
"""
