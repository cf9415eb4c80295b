"""Operators that decide in event time, stage over stage, for patterns that need more than joins.

A pattern of plain links runs as compiled joins (matching.py). Every other pattern runs as a tree of
stages for each partition: a stage takes what those beneath it have decided, in order, and passes on
what it has decided itself. See base.py for what a stage promises.
"""
