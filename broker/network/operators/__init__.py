"""From tasks to operators: what a subscription's home needs of other brokers.

Owns the decision of what may travel correlated, the keys that conditions become, and who wants an
event. Must not know links, neighbours or how events are matched over several brokers. Invariant:
what the operators of a task let travel, and any more than that, gives the results of all events.

    a task ─▶ may its inputs travel correlated? (`decision`, with `reasons` in words) ─▶ operators
    conditions ─▶ keys and ranges (`keys`, `conditions`) ─▶ what a neighbour's index looks up
"""
