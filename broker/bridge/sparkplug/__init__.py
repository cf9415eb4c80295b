"""Messages of Sparkplug B, for mappings.

Owns what that protocol lets be said and what has to be remembered of it. Must not know who
publishes or what the core makes of events. Invariant: what is remembered is bounded, and a number
stands for a metric only where a birth that is known to be in force said so.
"""
