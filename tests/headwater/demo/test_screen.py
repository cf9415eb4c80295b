"""The progress line keeps to one line of its terminal, as only that one can be wiped."""

import io

import pytest

from headwater.demo.screen import Screen


class Terminal(io.StringIO):
    def isatty(self):
        return True


WORDS = "2007-10-21 10:27 UTC  1,994 events/s  175 results"


@pytest.mark.parametrize("columns", [1, 20, 80, 300])
def test_the_progress_line_fits_the_terminal_and_is_wiped(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    side = Terminal()
    screen = Screen(as_json=False, out=io.StringIO(), side=side)
    screen.progress(7_913, 50_183, WORDS)
    *_, drawn = side.getvalue().split("\r\x1b[2K")
    assert 0 < len(drawn) <= max(1, columns - 1)
    whole = f"[###.....................] 7,913 of 50,183  {WORDS}"
    assert whole.startswith(drawn)
    assert (drawn == whole) == (columns > len(whole))
    screen.say("a line")
    screen.end_progress()
    assert side.getvalue().endswith("\r\x1b[2K")
