"""One broker that keeps a journal, on a disk that forgets, with clients who come again.

Owns these runs and what is checked of them. Must not know sockets, event loops or the wall clock.
Invariant: a seed and a version of the code determine a run, byte for byte.
"""
