"""How agents run: what one step of an agent may cost, and what becomes of one that costs more.

Owns the budget of a step and the stand-in for a suspended agent. Must not know patterns, windows or
who feeds agents. Work is counted in candidates and bytes and never in time, so that what is
suspended depends on the events alone: a fast machine and a slow one, the compiled passes and the
plain ones, suspend the same agents at the same events.

Invariant: what is charged for a piece of work depends on the work alone, and it is charged before
the work is done, or in pieces so small that little is overdrawn.
"""
