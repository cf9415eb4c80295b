"""Why and why not: which events made a result, and how far a subscription without one got.

Owns the diagnostic pass over recorded events, apart from the engine's own way, and its telling.
Must not change what is detected. Invariant: an explanation is of a bounded sample and says so.

    events ─▶ run ─▶ the engine, and beside it record: results with their events, and a sample
    record ─▶ why ─▶ funnel (operator by operator) ─▶ pairs, lists ─▶ criteria ─▶ words ─▶ tell
"""
