"""The public face of Headwater: what a program imports and what a person types.

Owns the names that users rely on and the command line. Must not know how anything beneath it
works. Invariant: importing this package is cheap; every part is loaded when it is first used.
"""
