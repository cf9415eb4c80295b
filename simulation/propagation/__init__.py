"""Propagation of subscriptions and events over a described network, in virtual time (paper 002).

Owns scenarios, their runs on the brokers' own routers, and what is counted of them. Must not know
the command line. Invariant: the same scenario gives the same outcome, byte for byte.

    files ─▶ reading ─▶ scenario ─▶ run, once for each approach, on brokers' own routers
                            └─▶ needed: what each subscription needs ─▶ recall, and what was extra
"""
