"""One server for the tests of a module, and a scene with clients for each test.

HEADWATER_CONFORMANCE=PORT runs them against whatever listens there on loopback instead.
"""

import os

import pytest

from tests.conformance.clients import NotSpoken, Scene
from tests.conformance.peers import Other, Ours

ANOTHER = os.environ.get("HEADWATER_CONFORMANCE")


@pytest.fixture(scope="module", params=["another"] if ANOTHER else ["memory", "disk"])
def peer(request, tmp_path_factory):
    """What a server promises is kept in memory, or on disk before it is promised."""
    if ANOTHER:
        yield Other(int(ANOTHER))
        return
    folder = tmp_path_factory.mktemp("peer") if request.param == "disk" else None
    with Ours(folder=folder) as server:
        yield server


@pytest.fixture
def scene(peer):
    opened = Scene(peer)
    yield opened
    opened.close()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """What another server has said that it does not do is no failure, and no success either.

    Ours does all that is tested, so here it is one.
    """
    try:
        return (yield)
    except NotSpoken as what:
        if not ANOTHER:
            raise
        pytest.xfail(str(what))
