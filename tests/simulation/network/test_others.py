"""Clients of each broker are told, retained, which other brokers can be reached."""

import json

import pytest

from broker.core.effects import Publish
from broker.network.frames.messages import ForgetRequested
from tests.simulation.network.town import LINE, Site, Town


@pytest.fixture
def retained(monkeypatch):
    """By broker: what is retained there below `status/`."""
    found = {}
    leaves = Site.leaves

    def noted(site, effect):
        if isinstance(effect, Publish):
            for one in effect.publications:
                if one.topic.startswith("status/") and one.topic != f"status/{site.name}":
                    assert one.retain
                    there = found.setdefault(site.name, {})
                    there[one.topic.removeprefix("status/")] = (
                        json.loads(one.payload)["state"] if one.payload else None
                    )
        leaves(site, effect)

    monkeypatch.setattr(Site, "leaves", noted)
    return found


def others(me, **states):
    """All others, ready where nothing else is said."""
    return {name: "ready" for name in ("b0", "b1", "b2", "b3") if name != me} | states


def test_who_is_cut_off_is_lost_and_ready_when_it_is_back(retained):
    town = Town(1, LINE)
    town.start({})
    assert retained == {name: others(name) for name in town.sites}
    town.sites["b2"].away_ms = 60_000
    town.sites["b2"].end()
    town.run(30_000)  # with it goes the way to b3, and that from there
    for name in ("b0", "b1"):
        assert retained[name] == others(name, b2="lost", b3="lost")
    assert retained["b3"] == others("b3", b0="lost", b1="lost", b2="lost")
    town.run(60_000)
    assert {name: states for name, states in retained.items() if name != "b2"} == {
        name: others(name) for name in ("b0", "b1", "b3")
    }
    assert retained["b2"] == others("b2")


def test_of_one_that_is_forgotten_nothing_is_retained(retained):
    town = Town(2, LINE)
    town.start({})
    town.sites["b3"].away_ms = 10_000_000
    town.sites["b3"].end()
    town.run(30_000)
    assert retained["b0"]["b3"] == "lost"
    town.home.hear(ForgetRequested("b3"))
    town.run(10_000)
    assert [retained[name]["b3"] for name in ("b0", "b1", "b2")] == [None] * 3


def test_a_link_that_is_back_soon_is_no_news(retained):
    town = Town(3, LINE)
    town.start({})
    retained.clear()
    town.links[1].cut(500, lost=True)
    town.run(30_000)
    assert retained == {}
