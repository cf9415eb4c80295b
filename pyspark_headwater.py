"""The name by which Spark finds the data source `headwater`: nobody has to register it.

Owns nothing: Spark looks for modules called `pyspark_…` with a `DefaultSource`. Must not import
more than the source itself, as every session on the machine imports it. Invariant: the source goes
along by value, as where it is registered by hand, so that executors need nothing of Headwater.
"""

from pyspark import cloudpickle

import server.source
from server.source import HeadwaterSource as DefaultSource

__all__ = ["DefaultSource"]

cloudpickle.register_pickle_by_value(server.source)
