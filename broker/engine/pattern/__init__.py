"""Patterns: operators over operators that find matches in event time, for one case of a task.

Owns all of a pattern's detection, in rooms whose imports run one way, each knowing those after it:

    bounds       the most that it can hold, said beforehand from its text
    agent        its groups, which of them wait, and what one of them holds
    fused        several operators as one          selection    which whole matches count
    operators    the operators one by one
    stage        what an operator is to those around it
    times        the one analysis of time
    uncertainty  what is asked of times and values, and how certain the answer is
    layout       its operands, by place

Must not know who wants a result, what an event's payload looked like, or which broker this is.

Invariant: an operator takes what those beneath it have decided, in order, and passes on what it has
decided itself, with two promises about what is still to come: it ends after one time (`hold`) and
begins at or after another (`floor`). Where times are exact a verdict is yes or no, never maybe.
"""
