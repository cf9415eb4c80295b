"""What is known to be needed travels, and no more: as the exact routers say, over each link."""

import pytest

from bench import settings
from bench.settings import SHAPES, case_of, compare


@pytest.mark.parametrize("count", SHAPES)
def test_a_setting_in_small_is_a_tree_of_as_many_brokers(count, tmp_path):
    for name, shape in SHAPES[count].items():
        scenario = case_of(name, count, tmp_path).scenario
        assert shape.brokers == scenario.nodes == count == len(scenario.edges) + 1
        nodes = {sensor.node for sensor in scenario.sensors.values()}
        assert len(nodes) == shape.stations * shape.beside
        assert len(scenario.subscriptions) == shape.subscriptions


@pytest.mark.timeout(120)
def test_brokers_in_a_virtual_world_send_what_the_exact_routers_send(tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "HOURS", 1)
    row = compare(case_of("large", 6, tmp_path), 2.0, real=False)
    assert row.found == row.expected > 0
    assert row.surplus == 0
    assert row.events == row.exact > row.least
    assert row.worst == 1
