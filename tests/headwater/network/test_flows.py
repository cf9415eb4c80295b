"""Where it cannot pay that events wait for partners, `headwater flows` says so, and why."""

import pytest

from headwater.cli.network.flows import as_data, kept_back_lines, unsure_lines
from headwater.cli.network.picture import NetworkPicture
from tests.headwater.network.views import neighbour, view

LINKS = (("a", "b"),)


def picture(unsure=False, **more):
    near = neighbour(sent={"T": 5}, unsure=unsure)
    return NetworkPicture([view("a", LINKS, neighbours={"b": near}) | more])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"unbounded": ["Wash"]}, ("Wash", "lasts at most")),
        ({"too_far_ms": {"Temp": 3_600_001}}, ("Temp (3,600.0 s)", "limits.kept_back_ms_max")),
        ({"correlates": False}, ("links.correlate",)),
    ],
)
def test_what_keeps_events_from_waiting_at_a_broker_is_said_with_what_would_help(more, words):
    assert kept_back_lines(picture(unbounded=[], too_far_ms={}, correlates=True)) == []
    (line,) = kept_back_lines(picture(**more))
    assert line.startswith("a ")
    assert all(word in line for word in words)


def test_a_broker_of_an_earlier_version_says_nothing_of_it():
    assert kept_back_lines(picture()) == []
    assert unsure_lines(NetworkPicture([view("a", LINKS)]).flows()) == []


def test_a_link_before_which_nothing_waits_for_now_is_named():
    assert unsure_lines(picture().flows()) == []
    flows = picture(unsure=True).flows()
    (line,) = unsure_lines(flows)
    assert line.startswith("a keeps nothing back from b for now")
    assert [row["unsure"] for row in as_data(picture(unsure=True), flows)["flows"]] == [True, False]
