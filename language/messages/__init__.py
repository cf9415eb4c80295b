"""The table of all errors: code, title, sentence, help, and bad examples with their place.

Owns the entries; the reporter, the tests and the page `docs/errors.md` read them from here.
Must not know how an error is found. Invariant: each code has one entry, with an example that
gets it.

    an error's code ─▶ its entry ─▶ the diagnostic; `headwater explain`; docs/errors.md

HW1xx: the text cannot be read; HW2xx: names; HW3xx: types and values; HW4xx: what cannot be meant;
HW9xx was what could not run yet. A code is never used again for another error.
"""

from __future__ import annotations

from language.messages import clauses, names, syntax, types
from language.messages import semantics as meaning
from language.messages.entry import Example, MessageEntry

__all__ = ["TABLE", "Example", "MessageEntry"]

TABLE: dict[str, MessageEntry] = {
    entry.code: entry
    for module in (syntax, names, types, meaning, clauses)
    for entry in module.ENTRIES
}
