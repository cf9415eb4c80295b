"""A fault rehearsal: a user's own network, specification and recording, in virtual time.

Owns the described network, the faults that are asked for, the run on the real cores and what is
counted of it. Must not know the command line, nor files. Invariant: the same description, text,
events and faults give the same run, byte for byte.
"""
