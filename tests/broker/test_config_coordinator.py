"""The section of the coordinator: off unless wanted, and only where there are links."""

import pytest

from broker.config import ConfigError, load

LINKED = '[links]\nhost = "127.0.0.1"\n'


def test_nothing_is_coordinated_unless_it_is_wanted():
    assert not load().config.coordinator.enabled


def test_the_section_is_read(tmp_path):
    path = tmp_path / "site.toml"
    limits = "capacity_bytes_per_s = 5000\nlink_bytes_per_s = 70\n"
    path.write_text(f"{LINKED}[coordinator]\nenabled = true\n{limits}")
    found = load(path).config.coordinator
    assert found.enabled
    assert found.capacity_bytes_per_s == 5_000
    assert found.link_bytes_per_s == 70


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[coordinator]\nenabled = true", "coordinator.enabled: there are no links"),
        (f"{LINKED}[coordinator]\nradius = -1", "coordinator.radius"),
        (f"{LINKED}[coordinator]\nchange_percent = 0", "coordinator.change_percent"),
        (f"{LINKED}[coordinator]\nmeasure_ms = 10", "coordinator.measure_ms"),
        (f"{LINKED}[coordinator]\nsplit_windows = true", "coordinator.split_windows: windows are"),
        (f"{LINKED}[coordinator]\nprice = 1", "[coordinator] has no key `price`"),
    ],
)
def test_what_will_not_do_is_refused_with_a_sentence(tmp_path, text, says):
    path = tmp_path / "site.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert any(says in one for one in caught.value.problems)
