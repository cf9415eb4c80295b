"""Which table stands behind the views that people ask.

Owns the note of it in the database. Must not know streams or checkpoints. Invariant: whoever makes
views holds the note of their name until they are there, so that no other change falls between.

A version of a job that is filled beside another has a table with a suffix. Its views stand under
the table's own name, until it is shown: then they take the places of the former ones.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from sqlalchemy import Connection, MetaData, Table

SHOWN: Final = "headwater_shown"


class TableName(NamedTuple):
    """The table of a sink: as people know it, and what the version's own has behind that."""

    name: str
    suffix: str = ""

    @property
    def stored(self) -> str:
        """Return the table with the rows."""
        return self.name + self.suffix


def shown_table(connection: "Connection", name: str) -> str:
    """Return the table that the views of a name show, which no other transaction changes now."""
    import sqlalchemy as sa

    notes = notes_in(sa.MetaData())
    if not sa.inspect(connection).has_table(SHOWN):
        return name
    asked = sa.select(notes.c.stored).where(notes.c.name == name).with_for_update()
    stored: str | None = connection.execute(asked).scalar()
    return name if stored is None else stored


def views_of(connection: "Connection", table: TableName) -> str | None:
    """Return the name under which the views of a table stand; None where it has none any more."""
    if shown_table(connection, table.name) == table.stored:
        return table.name
    return table.stored if table.suffix else None


def notes_in(meta: "MetaData") -> "Table":
    """Return the table of what is shown."""
    import sqlalchemy as sa

    return sa.Table(
        SHOWN,
        meta,
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("stored", sa.String(200), nullable=False),
    )
