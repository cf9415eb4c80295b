"""Several frames to one neighbour in one message."""

import pytest

from broker.network.effects import SendFrame
from broker.network.frames import frames
from broker.network.neighbours.sessions import HOLD_MS, LinkOutlet


def joined(some):
    return b"+".join(some)


@pytest.fixture
def outlet():
    return LinkOutlet(joined, lambda peer: peer != "old")


def test_frames_of_a_step_are_one_message_for_each_neighbour(outlet):
    step = [SendFrame("b", b"1"), SendFrame("c", b"2", after=3), SendFrame("b", b"3", after=7)]
    (first, second) = outlet.pass_on(step, 0)
    assert (first.link, first.data, first.after) == ("b", b"1+3", 7)
    assert (second.link, second.data, second.after) == ("c", b"2", 3)


def test_control_waits_a_moment_behind_another_message_and_goes_before_events(outlet):
    assert outlet.pass_on([SendFrame("b", b"1")], 100)
    assert outlet.pass_on([SendFrame("b", b"2")], 101) == []
    assert outlet.pass_on([SendFrame("b", b"3")], 102) == []
    assert outlet.wake_at == 100 + HOLD_MS
    event = SendFrame("b", b"e", control=False, events=1)
    assert [one.data for one in outlet.pass_on([event], 103)] == [b"2+3", b"e"]
    assert outlet.wake_at is None
    assert outlet.pass_on([SendFrame("b", b"4")], 104) == []
    assert [one.data for one in outlet.pass_on([], 103 + HOLD_MS)] == [b"4"]


def test_a_neighbour_of_the_version_before_gets_each_frame_by_itself_and_at_once(outlet):
    step = [SendFrame("old", b"1"), SendFrame("old", b"2")]
    assert outlet.pass_on(step, 0) == step


def test_events_are_added_up_and_control_stays_apart(outlet):
    step = [SendFrame("b", bytes([at]), control=False, events=at) for at in (1, 2)]
    (message,) = outlet.pass_on(step, 0)
    assert (message.control, message.events) == (False, 3)


def test_frames_are_read_as_they_were_written_pressed_or_not():
    few = [frames.Hello(1, 2, "t")] * 2
    many = [frames.Hello(at, 2, "tree") for at in range(100)]
    for some in (few, many):
        encoded = [frames.encoded(one) for one in some]
        assert frames.decoded(frames.bundled(encoded)) == some
    assert len(frames.bundled([frames.encoded(one) for one in many])) < 600


def test_a_message_that_unpresses_to_too_much_is_refused():
    import zlib

    bomb = zlib.compress(bytes(frames.BUNDLE_BYTES_MAX + 1))
    for data in (bomb, bomb[:-1], b"no zlib"):
        with pytest.raises(frames.FrameError):
            frames.decoded(frames.encoded(frames.Bundle(True, data)))
