"""Entries for what is understood but not run yet; gone when the engine can do it."""

from __future__ import annotations

from language.messages.entry import Entry, Marked, bad

HELP = "a later version runs it; nothing of a text is installed while one of its parts cannot run"


def _pending(code: str, what: str, *marked: Marked) -> Entry:
    return Entry(
        code, f"{what} (not run yet)", f"{what}: understood, but not run yet", HELP, marked
    )


ENTRIES: tuple[Entry, ...] = (
    _pending(
        "HW918",
        "the nearest actor",
        bad("event A(x: int)\nsubscription S from u to ‸nearest NurseTablet\ndetect A"),
        bad("event A(x: int)\nsubscription S seq 2 from u to ‸nearest b\ndetect A"),
    ),
)
