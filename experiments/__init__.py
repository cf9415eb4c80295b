"""What problems of placement are made of, what proves how good their plans are, and RFID readings.

Owns the generators of problems, the readings and figures of seed paper 4 (`rfid`), the simulated
network of planning machines, the grouping of section 5 of seed paper 003, and the rows that tighten
the exact method's program. Must not be known to what is installed: benches and tests use it, and
the wheel leaves it out. Invariant: the same seed makes the same problem; what tightens a program is
kept by every plan.
"""
