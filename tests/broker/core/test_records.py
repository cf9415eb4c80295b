"""The bytes of journal and snapshots: what a crash may leave is told from damage."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.recovery import records
from broker.core.recovery.records import (
    HEADER_BYTES,
    CorruptError,
    Record,
    VersionError,
    frame,
    frame_snapshot,
    header,
    read_header,
    read_segment,
    read_snapshot,
)

DATA = st.lists(st.binary(max_size=60), min_size=1, max_size=8)
SALT = 0xA1B2C3D4


def segment(first, parts, salt=SALT, synced_of=lambda number: None):
    found = header(first, salt)
    for number, data in enumerate(parts, first):
        found += frame(number, data, salt=salt, synced=synced_of(number))
    return found


@given(DATA, st.integers(1, 2**63), st.integers(0, 2**32 - 1))
def test_what_is_framed_is_read(parts, first, salt):
    written = segment(first, parts, salt)
    reading = read_segment(written, first)
    assert reading.records == [Record(first + at, data) for at, data in enumerate(parts)]
    assert reading.next_number == first + len(parts)
    assert reading.good_bytes == len(written)
    assert reading.stopped == ""


@given(DATA, st.data())
def test_any_prefix_ends_after_its_last_whole_record(parts, data):
    written = segment(1, parts)
    size = data.draw(st.integers(0, len(written)))
    ends = [len(segment(1, parts[:count])) for count in range(len(parts) + 1)]
    whole = [end for end in ends if end <= size]
    reading = read_segment(written[:size])
    assert [one.data for one in reading.records] == parts[: max(0, len(whole) - 1)]
    assert reading.good_bytes == (whole[-1] if whole else 0)
    assert bool(reading.stopped) == (size not in ends)


@given(DATA, st.data(), st.integers(0, 2**32), st.booleans())
def test_zeros_or_garbage_after_a_prefix_are_never_taken_for_a_record(parts, data, seed, zeros):
    written = segment(1, parts)
    size = data.draw(st.integers(0, len(written)))
    random = Random(seed)
    count = random.randint(1, 200)
    tail = bytes(count) if zeros else random.randbytes(count)
    intact = read_segment(written[:size])
    torn = read_segment(written[:size] + tail)
    assert torn.records == intact.records
    assert torn.good_bytes == intact.good_bytes
    assert torn.stopped


@given(DATA, st.data())
def test_a_changed_bit_is_found_wherever_it_is(parts, data):
    written = bytearray(segment(1, parts))
    at = data.draw(st.integers(0, len(written) - 1))
    written[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises((CorruptError, VersionError)) as caught:
        read_segment(bytes(written), 1, len(parts) + 1, name="journal/7")
    assert "journal/7" in str(caught.value)


def test_damage_before_the_next_segment_is_told_with_file_and_place():
    written = bytearray(segment(5, [b"one", b"two", b"three"]))
    place = len(segment(5, [b"one"]))
    written[place + 25] ^= 1
    with pytest.raises(CorruptError, match=f"journal/2, byte {place}: record 6: ") as caught:
        read_segment(bytes(written), 5, 8, name="journal/2")
    assert caught.value.place_bytes == place


def test_a_missing_record_before_the_next_segment_is_damage():
    with pytest.raises(CorruptError, match="record 3: missing"):
        read_segment(segment(1, [b"a", b"b"]), 1, 4)
    with pytest.raises(CorruptError, match="begins with record 4, and 3 is to come"):
        read_segment(segment(4, [b"a"]), 3)


def test_of_a_segment_that_was_given_up_only_what_the_next_does_not_have_counts():
    written = segment(1, [b"a", b"b", b"void", b"void"])
    for tail in (b"", b"\0" * 40, b"garbage"):
        reading = read_segment(written + tail, 1, 3)
        assert [one.data for one in reading.records] == [b"a", b"b"]
        assert reading.next_number == 3
    assert read_segment(b"", 3, 3).records == []
    assert read_segment(header(3)[:9], 3, 3).records == []


def test_in_the_last_segment_damage_to_what_was_synced_is_told_from_what_was_torn():
    parts = [b"one", b"two", b"three", b"four"]
    place = len(segment(1, parts[:1]))

    def damaged(synced_of):
        written = bytearray(segment(1, parts, synced_of=synced_of))
        written[place + 25] ^= 1
        return bytes(written)

    with pytest.raises(CorruptError, match="it was synced before 4"):
        read_segment(damaged(lambda number: 2 if number > 3 else 0), 1)
    # Nothing after the first was synced when the others were framed: a crash may do this.
    reading = read_segment(damaged(lambda _: 1), 1)
    assert [one.data for one in reading.records] == [b"one"]


def test_no_client_can_make_it_look_like_damage():
    forged = frame(9, b"x", synced=8)
    written = segment(1, [b"one"]) + b"torn" + forged
    assert len(read_segment(written).records) == 1


def test_records_of_another_segment_are_none_of_this():
    old = frame(2, b"old", salt=SALT + 1)
    assert len(read_segment(segment(1, [b"new"]) + old).records) == 1
    stale = frame(7, b"stale", salt=SALT)
    reading = read_segment(segment(1, [b"new"]) + stale)
    assert len(reading.records) == 1
    assert reading.stopped == "found number 7"


def test_the_reader_tells_what_was_durable_when_the_last_record_was_framed():
    parts = [b"one", b"two", b"three"]
    assert read_segment(segment(5, parts)).synced == 4
    assert read_segment(segment(5, parts, synced_of=lambda n: 5 if n > 6 else 4)).synced == 5
    assert read_segment(segment(5, [])).synced == 4


def test_the_header_tells_its_first_number():
    assert read_header(header(17, 3)).first == 17
    assert read_header(header(17, 3)[: HEADER_BYTES - 1]) is None
    assert read_header(bytes(HEADER_BYTES)) is None


def test_a_newer_format_is_refused_with_a_sentence(monkeypatch):
    with monkeypatch.context() as newer:
        newer.setattr(records, "VERSION", 2)
        segment_, snapshot = segment(1, [b"a"]), frame_snapshot(3, b"x")
    with pytest.raises(VersionError, match="knows formats up to 1"):
        read_segment(segment_)
    with pytest.raises(VersionError, match="snap-3 is of format 2"):
        read_snapshot(snapshot, "snap-3")


def test_a_record_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(records, "RECORD_BYTES_MAX", 10)
    assert frame(1, bytes(10))
    with pytest.raises(ValueError, match="at most 10"):
        frame(1, bytes(11))


@given(st.integers(0, 2**63), st.binary(max_size=100), st.data())
def test_a_snapshot_is_whole_or_refused(number, content, data):
    written = frame_snapshot(number, content)
    assert read_snapshot(written) == Record(number, content)
    with pytest.raises(CorruptError):
        read_snapshot(written[: data.draw(st.integers(0, len(written) - 1))])
    changed = bytearray(written)
    changed[data.draw(st.integers(0, len(written) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises((CorruptError, VersionError)):
        read_snapshot(bytes(changed))
    with pytest.raises(CorruptError):
        read_snapshot(written + b"\0")
