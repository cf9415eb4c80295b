"""Continued detection: a specification over the brokers' results, by the very core of a broker.

Owns what runs inside Spark's stateful operator. Must not know sources or sinks. Invariant: the
results depend on the specification and the events alone, not on how Spark cut them into batches,
and are those of a replay of the same events.
"""

from server.detection import passes

passes.load(__spec__.loader)  # before anything imports the engine
