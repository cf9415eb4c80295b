"""What `headwater plan` shows: tables, differences, pictures.

Owns the form in which people see a placement. Must not plan. Invariant: the same plan is shown the
same way.
"""
