"""The Python data source `headwater`: results of brokers, read from their output logs by HTTP.

Owns everything that runs where rows are planned and read, on a driver or an executor. Must not know
what becomes of rows. Invariant: a planned range of offsets gives the same rows each time.

It imports the standard library, pyarrow and pyspark alone, so that it can be sent along by value
and an executor needs nothing of Headwater.

    Spark ─▶ source ─▶ planning (fanout: all brokers at once; alignment: by event time) ─▶ ranges
    a range ─▶ reading ─▶ log (live), or history ─▶ columnar (untouched), or rows ─▶ Spark
                places: what was read so far
"""

from server.source.source import HeadwaterSource, register

__all__ = ["HeadwaterSource", "register"]
