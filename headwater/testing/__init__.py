"""Tests of specifications: events with times and expected results in one readable file.

Owns the format of `*.hwt`, the playing of a test on a virtual clock, and the telling of what
differs. Must not match anything itself: the engine does. Invariant: a test passes only if every
expectation in it was looked at.
"""
