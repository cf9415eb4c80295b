"""Generators of problems of placement, what proves how good their plans are, and papers' figures.

Owns the generators, the figures of papers 000 (`motes`) and 004 (`rfid`), which `figures` shows,
the simulated network of planning machines, the grouping of section 5 of paper 003, and the rows
that tighten the exact method's program. Must not be known to what is installed: benches and tests
use it, and the wheel leaves it out. Invariant: the same seed makes the same problem; what tightens
a program is kept by every plan.
"""
