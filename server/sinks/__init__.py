"""Where jobs put what they give.

Owns the sinks. Must not know jobs. Invariant: a batch that is given again, after a crash between
its end and Spark's note of it, leaves what one giving leaves (the database, the history), or
carries the same ids (alerts).
"""
