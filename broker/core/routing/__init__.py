"""Which events travel where: advertisements, operators and the router of one broker (seed paper 2).

Owns what neighbours are told and sent. Must not know tasks, links or clocks. Invariant: what a
broker's own users and its neighbours asked for reaches them, over each link once.
"""
