"""When origins are told how far a host has stored what they keep."""

import pytest

from broker.network.replication.progress import (
    FAR,
    STORED_MS,
    STORED_MS_MAX,
    StoredReports,
    StoredUpto,
)


class Host:
    """With origins a and b one way, and c another, to a neighbour of the version before."""

    def __init__(self):
        self.rows = []
        self.said = []
        self.reports = StoredReports(
            "host",
            {"a": "x", "b": "x", "c": "old"},
            lambda via: 2 if via == "old" else 3,
            lambda _via, _stored: self.rows,
            lambda peer, body, after: self.said.append((peer, body, after)),
            lambda *row: row,
        )


@pytest.fixture
def host():
    return Host()


def test_an_origin_that_was_never_told_hears_soon_and_then_seldom(host):
    host.reports.told_ms = 1_000
    host.rows = [("a", 1, 5)]
    assert host.reports.due() == 1_000 + STORED_MS
    host.reports.wake(1_000 + STORED_MS, 7)
    host.rows = [("a", 1, 6)]
    assert host.reports.due() == 1_000 + STORED_MS + STORED_MS_MAX
    host.rows = [("a", 1, 5 + FAR)]
    assert host.reports.due() == 1_000 + 2 * STORED_MS
    host.rows = [("a", 1, 6)]
    host.reports.hurry("a")
    assert host.reports.due() == 1_000 + 2 * STORED_MS


def test_all_origins_of_one_way_are_told_in_one_frame_and_old_neighbours_one_by_one(host):
    host.rows = [("a", 1, 5), ("c", 3, 7), ("b", 2, 6)]
    host.reports.tell(0, 9)
    assert host.said == [
        ("x", StoredUpto("host", (("a", 1, 5), ("b", 2, 6))), 9),
        ("old", ("host", "c", 3, 7), 9),
    ]


def test_what_passes_does_not_go_back_where_it_came_from(host):
    host.reports.pass_on("x", StoredUpto("other", (("a", 1, 5), ("c", 3, 7), ("gone", 1, 1))))
    assert host.said == [("old", ("other", "c", 3, 7), 0)]
