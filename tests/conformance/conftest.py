"""One server for the tests of a module, and a scene with clients for each test.

HEADWATER_CONFORMANCE=PORT runs them against whatever listens there on loopback instead.
"""

import os

import pytest

from tests.conformance.clients import NotSpoken, Scene
from tests.conformance.peers import Other, Ours


@pytest.fixture(scope="module")
def peer():
    port = os.environ.get("HEADWATER_CONFORMANCE")
    if port:
        yield Other(int(port))
    else:
        with Ours() as server:
            yield server


@pytest.fixture
def scene(peer):
    opened = Scene(peer)
    yield opened
    opened.close()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """What the server has said that it does not do is no failure, and no success either."""
    try:
        return (yield)
    except NotSpoken as what:
        pytest.xfail(str(what))
