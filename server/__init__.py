"""The tier that hands the brokers' results to Spark.

Owns what runs on Spark and how it is started. Must not be needed by a broker: it is the extra
`[server]`. Invariant: what it makes of the brokers' output logs does not depend on how often it, an
executor or a broker was stopped on the way.
"""
