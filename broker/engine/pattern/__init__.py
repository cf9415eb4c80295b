"""Patterns: operators over operators that find matches in event time, for one case of a task.

Owns a pattern's layout (`operands`, `pattern`, `attach`), the analysis of its time (`timing`,
`durations`, `hold`, `bounds`, `completion`, `promises`), the operators (`base` and those built on
it: `joint`, `course`, `chronicle`, `gathered`, `repeats`, `pick`, `negation`, `silence`), the fused
ones (`fusion`, `sequence`, `members`, and `tree` of these over each other), verdicts where times
are uncertain, selection among whole matches, and the agent that runs all of it for each group
(`staged_*`).

Must not know who wants a result, what an event's payload looked like, or which broker this is.

Invariant: an operator takes what those beneath it have decided, in order, and passes on what it has
decided itself, with two promises about what is still to come: it ends after one time (`hold`) and
begins at or after another (`floor`). Where times are exact a verdict is yes or no, never maybe.
"""
