"""Where things are in the demonstration, and what is told of each link."""

from headwater.demo import layout
from headwater.demo.material import load
from language import check_text


def test_every_subscription_is_at_one_home_and_its_text_passes_there():
    material = load()
    texts = layout.texts_by_home(material.text, material.expected)
    found = []
    for home, text in texts.items():
        checked = check_text(text).demand()
        names = [name for _, name in checked.subscriptions]
        assert {layout.home_of(name) for name in names} == {home}
        found += names
    assert sorted(found) == sorted(material.expected)
    assert len(texts) > 2


def test_the_stations_of_each_network_are_spread_over_brokers():
    for recording in load().recordings:
        origins = {layout.origin_of(one.location) for one in recording.stations.values()}
        assert len(origins) == 2
        assert origins <= set(layout.NAMES)


def test_a_central_server_gets_each_reading_over_each_link_on_its_way_and_answers_likewise():
    found = layout.links(
        {("north", "pass"): 3, ("pass", "north"): 1, ("pass", "centre"): 2},
        {"north": 10, "city": 5},
        {"pass": 7, "harbour": 2, "centre": 100},
    )
    assert {(one.child, one.parent): (one.events, one.central) for one in found} == {
        ("pass", "centre"): (2, 17),
        ("city", "centre"): (0, 7),
        ("north", "pass"): (4, 10),
        ("south", "pass"): (0, 0),
        ("harbour", "city"): (0, 2),
    }
