"""Documents that are written from code say what the code says."""

from pathlib import Path

import pytest

from headwater.pages import PAGES, text_of

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_a_written_page_is_up_to_date(name):
    """Where this fails, `make docs` and commit the difference."""
    assert (DOCS / name).read_text(encoding="utf-8") == text_of(name)
