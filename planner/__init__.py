"""Placement of tasks on brokers: from a described network and its tasks to a plan.

    document ─▶ problem ─▶ layout (what is placed) ─▶ methods ─▶ search | baselines | optimal
    flow judges every plan; rounds are how brokers plan among themselves, each for its vicinity

Owns the problem, the plan, what a plan costs, and the searches for a cheap one. Must not know
brokers at run time, specifications, or any input and output.
Invariant: all but `optimal` and `program` need no numpy, so that a broker can find, read and weigh
a plan.
"""
