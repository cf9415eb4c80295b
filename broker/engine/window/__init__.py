"""Windows: which events belong together by time, and what is computed over them.

Owns the kinds of windows (aligned ones in panes, those that slide with each event, sessions), what
an aggregate keeps of the events in one, when a window is complete, and the event that it becomes.

Must not know what becomes of that event, nor how the work of one window is spread over brokers
beyond partial results that can be merged.

Invariant: a window's event does not depend on the order in which its events came, nor on how they
were batched or split into partial results: sums are exact until they are read.
"""
