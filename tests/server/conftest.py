"""What tests of the server tier share: one Spark for all tests of a process."""

import os

import pytest


@pytest.fixture(autouse=True, scope="session")
def _java_for_short_lives():
    """Javas that live for seconds: half of their time would go to compiling for hours to come."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """One for all modules: it takes as long to start as a test of it does to run.

    What it is told by the environment it is told when it starts; other tests know nothing of that.
    """
    from server.session import SparkSettings, start

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP"):
            known = os.environ.get(name)
            patch.setenv(name, known or "set")  # so that it is put back afterwards
            if not known:
                patch.delenv(name)
        session = start(SparkSettings(master="local[2]", partitions=1, memory="512m"))
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def brokers_soon_tried_again(monkeypatch):
    """A broker that is back is seen at once: that it is tried once a second is of no test here."""
    monkeypatch.setattr("server.source.watch.AGAIN_S", 0.05)
