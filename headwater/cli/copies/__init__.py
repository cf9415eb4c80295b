"""The commands that copy what a broker keeps, and put a copy in its place.

Owns their options and output. Must not know what is in a copy: `broker.backup` does. Invariant: a
copy that is refused changes nothing.
"""
