"""Which events travel where: advertisements, operators and the router of one broker (paper 002).

Owns what neighbours are told and sent. Must not know tasks, links or clocks. Invariant: what a
broker's own users and its neighbours asked for reaches them, over each link once.

    advertisements ─▶ sources ─┐
    operators ─▶ covering (is it implied by what was asked?) ─▶ growing ─▶ told to neighbours
    an event ─▶ rows of the filter's one index ─▶ matching, joins ─▶ router ─▶ which neighbours
"""
