"""The experiments of paper 002, section VI, on the brokers' own routers.

Owns how its settings are drawn from a recording, what is measured of them, and the page that tells
it beside what the paper says. Must not know how a router works. Invariant: the same recording and
seed give the same figures.
"""
