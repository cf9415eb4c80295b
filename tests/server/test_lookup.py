"""Spark finds the source by itself, as its own lookup does, and gets it by value."""

import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules

from pyspark.sql.datasource import DataSource

# What Spark's worker does, and what comes of it where nothing of Headwater can be imported.
ELSEWHERE = """
import pickle, sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("server", "headwater", "broker", "pyspark_headwater"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Nothing())
source = pickle.loads(sys.stdin.buffer.read())
print(source.name(), source({"brokers": "north=http://127.0.0.1:1"}).schema().split(",")[0])
"""


def test_spark_finds_the_source_and_a_worker_without_headwater_takes_it():
    found = [one.name for one in iter_modules() if one.name.startswith("pyspark_")]
    assert "pyspark_headwater" in found
    source = import_module("pyspark_headwater").DefaultSource
    assert issubclass(source, DataSource)
    from pyspark import cloudpickle

    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        input=cloudpickle.dumps(source),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().split()[:2] == ["headwater", "`broker`"]
