"""A pattern laid out: its operands by place, and what each of them has to test.

Owns the operands (`operands`), how a text becomes such a tree (`pattern`), at which operand each
conjunct of a `where` is judged (`attach`), the code of names over several places (`scopes`), and
which events may complete anything at all (`prospects`).

Must not know times that are uncertain, how matches are found, or that there are groups.

Invariant: each suffix and each conjunct is judged once, at the innermost operand that binds all
that it names; a layout depends on its case alone and never changes.

The way through: a case goes to `pattern.lay_out`, which reads it from the inside out, asks `attach`
where conjuncts belong, and returns a `Layout`; everything else here reads that.
"""
