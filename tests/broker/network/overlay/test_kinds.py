"""Messages and bytes over links, by what they are for."""

from typing import get_args

import pytest

from broker.network.frames import frames
from broker.network.overlay.kinds import KIND_OF, KINDS, KindTraffic, kind_of, table_of
from broker.network.replication.progress import Advanced, Claimed
from broker.network.routing.advertisement.messages import Advertise, Unwant, Want, Withdraw


def test_every_frame_is_of_a_kind_and_no_kind_is_of_a_frame_that_is_gone():
    words = [Advertise, Withdraw, Want, Unwant]
    bodies = [one for one in get_args(frames.Sealed) if one is not frames.Routed]
    tags = {str(one.__struct_config__.tag).lower() for one in (*words, *bodies)}
    assert tags | {"hello", "states"} == KIND_OF.keys()
    assert set(KIND_OF.values()) <= set(KINDS)


@pytest.mark.parametrize(("places", "kind"), [((), "progress"), ((0,), "events")])
def test_a_claim_without_events_is_progress(places, kind):
    row = Claimed("a", 1, 1, 1, places=places, events=b"x" * len(places))
    assert kind_of(Advanced(0, (), (row,))) == kind


def test_a_message_is_of_the_first_kind_that_it_holds_and_each_byte_of_its_own():
    traffic = KindTraffic()
    traffic.count([("progress", 30), ("events", 60), ("progress", 10)], 50)
    traffic.count([("progress", 7)], 7)
    assert table_of([traffic, traffic]) == {
        "events": {"messages": 2, "bytes": 60},
        "progress": {"messages": 2, "bytes": 54},
    }
