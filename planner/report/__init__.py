"""What a plan and its search are told as: why limits are broken, and how a search went.

    reasons    what no plan can keep, before any search; what would mend a limit that a plan breaks
    history    the samples of one search: time, steps, cost, best, moves by kind

Owns the words and the samples. Must not know how a plan is found, nor any terminal. Invariant: it
needs the standard library alone, and changes neither the plan nor the search that it tells of.
"""
