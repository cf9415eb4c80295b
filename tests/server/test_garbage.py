"""Processes of Spark's look for garbage seldom, and not among what they had loaded."""

import subprocess
import sys

PROBE = """
import gc
from pyspark import TaskContext
from server.source.garbage import YOUNG_MAX, look_seldom

look_seldom()
driver = gc.get_freeze_count(), gc.get_threshold()[0] == YOUNG_MAX
TaskContext._setTaskContext(TaskContext())
look_seldom()
first = gc.get_freeze_count()
left = [[] for _ in range(1000)]
left.append(left)
look_seldom()
again = gc.get_freeze_count()
del left
print(*driver, first > 1000, again == first, gc.get_threshold()[0] == YOUNG_MAX, gc.collect() >= 1)
"""


def test_a_process_goes_through_what_tasks_leave_alone():
    ran = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True, timeout=50
    )
    assert ran.stdout.split() == ["0", "False", "True", "True", "True", "True"]
