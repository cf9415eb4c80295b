"""docs/configuration.md is what `make docs` writes."""

from pathlib import Path

from broker.config.show import page


def test_the_page_on_settings_is_up_to_date():
    written = Path(__file__).parents[2] / "docs" / "configuration.md"
    assert written.read_text(encoding="utf-8") == page()
