"""The statements of the catalogue: rows, their texts, and how an older table is brought up.

Owns the statements. Must not know threads or the event loop: each function is given a connection
whose transaction is open. Invariant: each row has its text, and each text a row.

Texts are stored as people may read them with any tool of SQL; what no database takes as text (a
NUL, half a surrogate pair) is escaped, and comes back as it was.

This module imports SQLAlchemy: import it where a store is open, not before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, delete, func, insert, select, text

from broker.store.tables import CATALOGUE, TEXTS

if TYPE_CHECKING:
    from broker.store.catalogue import CatalogueEntry, Key

_PLAIN: Final = ("subscriber", "subscription", "seq", "actor", "client", "proven", "installed_ms")
_AWKWARD: Final = re.compile("[\0\ud800-\udfff\ue000]")
_ESCAPED: Final = re.compile("\ue000([0-9a-f]{4})")


def escaped(said: str) -> str:
    """Return a text as any database takes it; U+E000, of nobody's use, marks what is escaped."""
    return _AWKWARD.sub(lambda one: f"\ue000{ord(one[0]):04x}", said)


def plain(stored: str) -> str:
    """Return the text that was escaped."""
    return _ESCAPED.sub(lambda one: chr(int(one[1], 16)), stored)


def change(
    connection: Connection, coming: Sequence[CatalogueEntry], leaving: Sequence[Key]
) -> None:
    """Strike out rows and put others, behind all that are there."""
    place = connection.execute(select(func.max(CATALOGUE.c.place))).scalar() or 0
    gone = [_remove(connection, key) for key in leaving]
    numbers: dict[str, int] = {}
    for entry in coming:
        gone.append(_remove(connection, (entry.subscriber, entry.subscription)))
        place += 1
        number = numbers.get(entry.text)
        if number is None:
            number = numbers[entry.text] = place
            connection.execute(insert(TEXTS), {"number": number, "text": escaped(entry.text)})
        columns = ((name, getattr(entry, name)) for name in _PLAIN)
        row = {name: escaped(it) if isinstance(it, str) else it for name, it in columns}
        connection.execute(insert(CATALOGUE), row | {"place": place, "text_number": number})
    for old in dict.fromkeys(gone):
        if old is not None:
            _forget_text(connection, old)


def _remove(connection: Connection, key: Key) -> int | None:
    """Strike out a row, if it is there; the number of its text."""
    subscriber, subscription = map(escaped, key)
    columns = CATALOGUE.c
    condition = (columns.subscriber == subscriber, columns.subscription == subscription)
    number = connection.execute(select(columns.text_number).where(*condition)).scalar()
    if number is not None:
        connection.execute(delete(CATALOGUE).where(*condition))
    return number


def _forget_text(connection: Connection, number: int) -> None:
    """Remove a text, unless a row is of it."""
    used = select(CATALOGUE.c.place).where(CATALOGUE.c.text_number == number).limit(1)
    if connection.execute(used).first() is None:
        connection.execute(delete(TEXTS).where(TEXTS.c.number == number))


def all_rows(connection: Connection) -> list[tuple[Any, ...]]:
    """The fields of each entry, its text last, in the order in which they were put."""
    texts_found = connection.execute(select(TEXTS.c.number, TEXTS.c.text))
    texts = {
        number: plain(values) for number, values in texts_found
    }  # each once, however many rows have it
    columns = [CATALOGUE.c[name] for name in _PLAIN]
    rows = connection.execute(select(*columns, CATALOGUE.c.text_number).order_by(CATALOGUE.c.place))
    return [
        (*(plain(value) if isinstance(value, str) else value for value in values), texts[number])
        for *values, number in rows
    ]


_BEFORE: Final = (
    "SELECT subscriber, subscription, seq, client, installed_ms, text FROM catalogue"
    " ORDER BY installed_ms, subscriber, subscription"
)


def third_of_second(connection: Connection) -> None:
    """Format 3 of format 2, whose rows had their texts, and knew neither actor nor proof."""
    from broker.store.catalogue import CatalogueEntry

    rows = connection.execute(text(_BEFORE)).all()
    connection.execute(text("DROP TABLE catalogue"))
    for table in (TEXTS, CATALOGUE):
        table.create(connection)
    entries = [
        CatalogueEntry(
            row[0], row[1], row[2], "", row[3], proven=False, installed_ms=row[4], text=row[5]
        )
        for row in rows
    ]
    change(connection, entries, ())
