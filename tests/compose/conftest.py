"""The cluster that all tests share: built, brought up and taken down once.

They are not part of `make test`: `make test-compose` runs them.
"""

import os

import pytest

from tests.compose.cluster import SPECIFICATION, Cluster
from tests.compose.engine import Engine, base_images, context, missing

if os.environ.get("HEADWATER_TEST_COMPOSE") != "1":
    collect_ignore_glob = ["test_*"]


@pytest.fixture(scope="session")
def engine(tmp_path_factory):
    if why := missing():
        pytest.skip(why)
    made = Engine(tmp_path_factory.mktemp("engine"))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def folder(engine, tmp_path_factory):
    """What docker-compose.yml stands in, with secrets and wheels; the images are built of it."""
    base_images(engine)
    made = context(tmp_path_factory.mktemp("context") / "headwater")
    for image in ("broker", "server"):
        words = ["build", "-f", str(made / "deploy/Dockerfile"), "--target", image]
        engine.docker(*words, "-t", f"headwater-{image}:local", str(made), timeout_s=1800)
    return made


@pytest.fixture(scope="session")
def cluster(engine, folder):
    """Six brokers and all around them, healthy, with the subscription that the tests count by."""
    made = Cluster(engine, folder)
    made.down("-v", "--remove-orphans")
    made.up()
    try:
        made.until_healthy(300.0)
        made.asked("hwtest_pass_1", "/v1/subscriptions?client=demo", body=SPECIFICATION)
        yield made
    finally:
        for name in engine.docker("ps", "-aq", "--filter", "name=sensor-").split():
            engine.docker("rm", "-f", name)
        made.down("-v", "--remove-orphans")
