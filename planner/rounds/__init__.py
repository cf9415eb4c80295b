"""Distributed planning: each broker plans for its vicinity, with what it knows of it.

Owns the coordinator's thinking (paper 003, section 4, problem definition 2). Must not know
sockets, clocks or the broker around it: machines take messages and the time, and give effects.
Invariant: between two changes from outside every agreed step lessens (violation, flow) of the whole
network, both whole numbers; so planning always ends.
"""
