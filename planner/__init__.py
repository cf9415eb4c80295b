"""Placement of tasks on brokers: from a described network and its tasks to a plan.

Owns the problem, the plan, what a plan costs, and the searches for a cheap one. Must not know
brokers at run time, text of specifications beyond their task graph, or any input and output.
Invariant: all but `optimal` and `program` need no numpy, so that a broker can find, read and weigh
a plan.
"""
