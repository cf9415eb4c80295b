"""Basic events stand for all readings and no other, and the paper's operators do what it shows."""

import pytest

from experiments.rfid import CYCLE_S, RfidSetting, counted, operators, readings

SMALL = RfidSetting("small", 7, 0.8, 5)


def stays(setting, seconds, seed):
    """The runs of readings of a tag at a reader, cut at the limit: by a plain look at them."""
    runs = []
    by_tag = {}
    for reading in readings(setting, seconds, seed):
        by_tag.setdefault(reading["tagID"], []).append((reading["timestamp"], reading["readerID"]))
    for of_tag in by_tag.values():
        begin, before, place = None, None, None
        for at_ms, reader in of_tag:
            goes_on = place == reader and at_ms - begin <= 1000 * setting.longest_s
            if not goes_on:
                runs += [] if begin is None else [before]
                begin, place = at_ms, reader
            before = at_ms
        runs.append(before)
    return sorted(runs)


@pytest.mark.parametrize("seed", range(4))
def test_there_is_a_basic_event_for_each_stay(seed):
    counts = counted(SMALL, 120, seed)
    assert sorted(counts["Basic"]) == stays(SMALL, 120, seed)
    assert len(counts["readings"]) == 120 * SMALL.tags


@pytest.mark.parametrize("setting", [SMALL, RfidSetting("long", 7, 0.95, 60)])
def test_the_mean_of_stays_is_as_computed(setting):
    seconds = 6000
    assert len(stays(setting, seconds, 1)) / seconds == pytest.approx(setting.bounded(), rel=0.05)


def test_the_formula_holds_at_both_ends():
    moving, standing = RfidSetting("moving", 5, 0.0, 9), RfidSetting("standing", 5, 1.0, 9)
    assert (moving.expected(), moving.bounded()) == (5, 5)
    assert standing.expected() == pytest.approx(5 * CYCLE_S / 9)
    assert standing.bounded() == pytest.approx(5 / 10)  # both ends of a stay are read


def test_the_operators_give_what_the_paper_shows():
    rows = list(operators())
    assert len(rows) == 3
    assert [row[2] for row in rows] == [row[3] for row in rows]
