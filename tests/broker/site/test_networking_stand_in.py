"""What a running broker does for its stand-in at its start, and where that one is forgotten."""

import asyncio
from types import SimpleNamespace

import pytest

from broker.errors import StartError
from broker.network.frames.messages import ForgetRequested
from broker.site.networking import Networking
from broker.store import StoreError


class Bare(Networking):
    """A place in a network of which nothing but a stand-in is known."""

    def __init__(self, stand_in, log=None, setting="", state="alone"):
        self.put = []
        self.broker = SimpleNamespace(
            durable=SimpleNamespace(
                network=SimpleNamespace(
                    own=SimpleNamespace(hosts={}),
                    upstream={},
                    standing_in=SimpleNamespace(homes={}),
                )
            ),
            topology=SimpleNamespace(known=(), me="hall"),
            stand_ins=SimpleNamespace(
                feed=SimpleNamespace(stand_in=stand_in, setting=setting, state=state, behind=3)
            ),
        )
        self._runner = SimpleNamespace(put=self.put.append)
        self._fence = 0
        self._log = log


def test_a_stand_in_that_was_gone_before_the_process_began_can_be_forgotten():
    site = Bare("roof")
    assert site.forget("roof")
    assert site.put == [ForgetRequested("roof")]
    assert not site.forget("shed")


def test_without_a_stand_in_nobody_is_known():
    site = Bare("")
    assert not site.forget("")
    assert site.put == []


def test_a_log_that_cannot_be_read_stops_the_start_with_its_reason():
    async def unreadable():
        raise StoreError("the disk is broken")

    site = Bare("roof", SimpleNamespace(end=5, least_read=unreadable))
    with pytest.raises(StartError, match="the output log cannot be read: the disk is broken"):
        asyncio.run(site.start())


@pytest.mark.parametrize(
    ("stand_in", "setting", "state", "series"),
    [
        ("roof", "*", "following", {"roof": 1}),
        ("roof", "*", "alone", {"roof": 0}),
        ("", "*", "none", {"*": 0}),  # an alert has to see that nobody has a copy
        ("", "", "none", {}),
    ],
)
def test_the_metric_says_that_nobody_follows_where_somebody_should(
    stand_in, setting, state, series
):
    found = Bare(stand_in, setting=setting, state=state).stand_ins()
    assert found["stand_in"] == series
    assert found["stand_in_behind"] == ({"roof": 3} if stand_in else {})
