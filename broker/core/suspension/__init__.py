"""Suspended subscriptions whose tasks run elsewhere than at their homes.

Owns how a home and the hosts of its cells come to agree. Must not know frames, nor when agents are
suspended.
"""
