"""What waits on either side of a joined server, and how long to wait for it."""

import random

from hypothesis import given
from hypothesis import strategies as st

from broker.bridge.backoff import STOOD_S, Backoff
from broker.bridge.inbound import InboundMessages
from broker.bridge.messages import Arrived, OutgoingMessage
from broker.bridge.outbound import OutboundMessages


def arrived(number, size=1):
    return Arrived("t", b"x" * size, 1, False, False, number)


def outgoing(number, size=1):
    return OutgoingMessage(str(number), b"x" * size)


# --- waits --------------------------------------------------------------------------------------


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_waits_double_up_to_the_cap_and_are_drawn_below_it(seed, count):
    waits = Backoff(random.Random(seed), first_s=0.5, cap_s=30)
    for index in range(count):
        step = min(0.5 * 2**index, 30)
        assert step / 2 <= waits.next_s() <= step


def test_waits_repeat_with_the_seed_and_differ_between_brokers():
    def waits(seed):
        one = Backoff(random.Random(seed))
        return [one.next_s() for _ in range(10)]

    assert waits(1) == waits(1)
    assert waits(1) != waits(2)


def test_what_has_stood_begins_anew_and_what_fell_at_once_does_not():
    waits = Backoff(random.Random(1), first_s=1, cap_s=64)
    for _ in range(5):
        waits.next_s()
    waits.stood(STOOD_S / 2)
    assert waits.next_s() > 1
    waits.stood(STOOD_S)
    assert waits.next_s() <= 1


# --- in -----------------------------------------------------------------------------------------


@given(st.permutations(range(12)), st.sets(st.integers(0, 11)))
def test_acknowledgements_go_out_in_the_order_of_arrival(order, failing):
    """Those that failed are left out, and keep nobody waiting."""
    inbound = InboundMessages("join", 10_000)
    inbound.begin()
    tokens = [inbound.add(arrived(number)) for number in range(12)]
    found = []
    for index in order:
        done = inbound.fail if index in failing else inbound.taken
        found += done(tokens[index])
        assert done(tokens[index]) == []
    assert found == [number for number in range(12) if number not in failing]
    assert (len(inbound), inbound.pending_bytes, inbound.failed) == (0, 0, len(failing))


def test_nothing_of_a_connection_that_has_ended_is_acknowledged():
    """Its numbers may by then stand for other messages."""
    inbound = InboundMessages("join", 10_000)
    inbound.begin()
    old = [inbound.add(arrived(7)), inbound.add(arrived(8))]
    inbound.begin()
    new = inbound.add(arrived(7))
    assert inbound.taken(old[0]) == inbound.fail(old[1]) == []
    assert (inbound.failed, len(inbound)) == (0, 1)
    assert inbound.pending_bytes == new.size_bytes
    assert inbound.taken(new) == [7]


def test_reading_stops_past_the_bound_and_goes_on_at_half_of_it():
    inbound = InboundMessages("join", 10_000)
    inbound.begin()
    tokens = []
    while not inbound.full:
        tokens.append(inbound.add(arrived(len(tokens), 1_000)))
    assert inbound.pending_bytes > 10_000
    while not inbound.eased:
        inbound.taken(tokens.pop(0))
    assert inbound.pending_bytes <= 5_000


# --- out ----------------------------------------------------------------------------------------


STEPS = ["put", "put stored", "take", "confirm", "confirm last", "lose"]


@given(st.lists(st.sampled_from(STEPS), max_size=60))
def test_what_is_sent_is_sent_in_order_and_kept_until_it_is_confirmed(steps):
    outbound = OutboundMessages(10_000, 10**9)
    put, done, under_way = [], set(), {}
    for step in steps:
        if step.startswith("put"):
            put.append(str(len(put)))
            made = stored(len(put) - 1) if step == "put stored" else outgoing(put[-1])
            assert outbound.put(made) == 0
        elif step == "take":
            taken = outbound.take()
            left = [one for one in put if one not in done and one not in under_way.values()]
            assert (taken[1].topic if taken else None) == (left[0] if left else None)
            if taken:
                under_way[taken[0]] = taken[1].topic
        elif step == "lose":
            outbound.rewind()
            under_way.clear()
        elif under_way:
            number = (max if step == "confirm last" else min)(under_way)
            outbound.confirmed(number)
            done.add(under_way.pop(number))
        assert len(outbound) == len(put) - len(done)
        assert outbound.under_way == len(under_way)
    assert outbound.queued_bytes == sum(outgoing(one).size_bytes for one in put if one not in done)


def test_past_its_bounds_the_oldest_that_is_not_under_way_goes_and_is_counted():
    outbound = OutboundMessages(3, 10**9)
    for number in range(3):
        outbound.put(outgoing(number))
    number, first = outbound.take()
    assert [outbound.put(outgoing(number)) for number in (3, 4, 5)] == [0, 1, 1]
    outbound.confirmed(number)
    rest = [outbound.take()[1].topic for _ in range(3)]
    assert (first.topic, rest, outbound.dropped) == ("0", ["3", "4", "5"], 2)


def stored(number, size=1):
    return OutgoingMessage(str(number), b"x" * size, offset=number)


def test_what_lies_in_an_outbox_is_never_dropped_and_room_is_told_for_it():
    outbound = OutboundMessages(3, 10**9)
    for number in range(3):
        assert outbound.room == 3 - number
        outbound.put(stored(number))
    assert outbound.room == 0
    assert [outbound.put(outgoing(f"other{number}")) for number in range(5)] == [0, 0, 0, 1, 1]
    found = [outbound.take()[1].topic for _ in range(6)]
    assert found == ["0", "1", "2", "other2", "other3", "other4"]


def test_the_oldest_offset_is_that_of_what_is_not_confirmed():
    outbound = OutboundMessages(10, 10**9)
    assert outbound.oldest_offset() is None
    for one in (outgoing("other"), stored(5), stored(5), stored(6), outgoing("more")):
        outbound.put(one)
    assert outbound.oldest_offset() == 5
    numbers = [outbound.take()[0] for _ in range(5)]
    for number, oldest in zip(numbers, (5, 5, 6, None, None), strict=True):
        outbound.confirmed(number)
        assert outbound.oldest_offset() == oldest
    outbound.put(stored(7))
    outbound.take()
    outbound.rewind()
    assert outbound.oldest_offset() == 7


def test_one_message_alone_may_be_larger_than_the_bound():
    outbound = OutboundMessages(100, 1_000)
    outbound.put(outgoing(0))
    assert outbound.put(outgoing(1, 5_000)) == 1
    assert outbound.take()[1].topic == "1"
