"""The Python data source `headwater`: results of brokers, read from their output logs by HTTP.

Owns everything that runs where rows are planned and read, on a driver or an executor. Imports the
standard library, pyarrow and pyspark alone, so that it can be sent along by value and an executor
needs nothing of Headwater. Invariant: a planned range of offsets gives the same rows each time.
"""

from server.source.source import HeadwaterSource, register

__all__ = ["HeadwaterSource", "register"]
