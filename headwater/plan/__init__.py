"""The operator plan of a specification: from sources over operators to where results go.

Owns the reading of tasks as steps, and their drawing as text and as SVG. Must not know how anything
runs. Invariant: every operand, condition and option of a detect stands in exactly one step.

    specification ─▶ run ─▶ steps (source, filter, stamp, detect, sink) ─▶ text, svg
                       └─▶ travel: what goes between brokers for a task, and why as it does
"""
