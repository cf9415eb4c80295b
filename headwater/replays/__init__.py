"""Recorded events to results, in one process and without a broker.

Owns the reading of files of events, their sorting beyond what memory holds, and the release of
results in one order. Must not know how anything is detected, nor the command line's options.
Invariant: memory does not grow with the number of events; the same events give the same results in
the same order, however they are cut into files.

    file → lines → records, columns (CSV) → readers → sorter (packed runs) → replay ─▶ the engine
                                    reference_tables ────────────────────────▲   │
                                           standard output ← outlet ← release ◀──┘

States of a replay: reading, sorting where files are not in order, replaying, and done; what is bad
in a file is told with its line, and skipped or fatal, as the user says.
"""
