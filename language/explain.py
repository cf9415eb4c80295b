"""What an error means, for the command line and the page `docs/errors.md`.

Owns how entries of the table are shown with their examples. Must not hold any entry itself.
Invariant: the page is the table and nothing else; a test compares the two.
"""

from __future__ import annotations

from language import check_text
from language.errors import LanguageError
from language.messages import TABLE, MessageEntry
from language.messages.entry import Example

SHOWN_LENGTH_MAX = 400
"""Longer examples show a limit and nothing that a reader would learn from."""

SECTIONS = {
    "HW1": "Texts that cannot be read",
    "HW2": "Names",
    "HW3": "Types and values",
    "HW4": "What cannot be meant",
}

INTRODUCTION = """\
# The errors of the language

Every error has a code that stays the same, a sentence that says what was found, and one that says
what would be right. `headwater explain CODE` tells about one of them. This page is written from
the same table as the messages are: `make docs` writes it anew.

In messages the words in braces are those of the text at hand. Examples show the report as
`headwater check` prints it, with the error's own line.
"""


def explain(code: str) -> str:
    """Explain an error, with examples; raises LanguageError for an unknown code."""
    entry = TABLE.get(code.strip().upper())
    if entry is None:
        raise LanguageError(f"no error has the code {code[:20]}; the first is {next(iter(TABLE))}")
    examples = [
        _told(entry, example) for example in entry.examples if len(example.text) <= SHOWN_LENGTH_MAX
    ]
    parts = [f"{entry.code}: {entry.title}", entry.message, entry.help, *examples]
    return "\n\n".join(parts) + "\n"


def page() -> str:
    """The page that tells of all errors."""
    parts = [INTRODUCTION]
    section = ""
    for code, entry in TABLE.items():
        if code[:3] != section:
            section = code[:3]
            parts.append(f"## {section}xx: {SECTIONS[section]}\n")
        parts.append(_entry(entry))
    return "\n".join(parts)


def _entry(entry: MessageEntry) -> str:
    parts = [
        f"### {entry.code}: {entry.title}\n",
        f"Message: {entry.message}.\n\n{capital(entry.help)}.\n",
    ]
    shown = [
        _told(entry, example) for example in entry.examples if len(example.text) <= SHOWN_LENGTH_MAX
    ]
    if shown:
        parts.append("```text\n" + "\n\n".join(shown) + "\n```\n")
    return "\n".join(parts)


def capital(text: str) -> str:
    """A sentence's beginning."""
    return f"{text[0].upper()}{text[1:]}"


def _told(entry: MessageEntry, example: Example) -> str:
    """The report of an example, of this error alone; general advice is not repeated."""
    checked = check_text(
        example.text,
        file="example",
        functions=dict.fromkeys(example.functions),
        tables=example.read_table if example.tables else None,
    )
    lines = checked.report(code=entry.code).split("\n")
    return "\n".join(line for line in lines if line.strip() != f"= {entry.help}")
