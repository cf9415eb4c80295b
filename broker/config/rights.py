"""The rights file of a broker: read whole, with the line and a caret for each fault.

Owns the way from a path to a table. Must not know what rights mean: `broker.rights` does.
Invariant: either every right was understood or none is used.
"""

from pathlib import Path

from broker.config.document import Document
from broker.config.errors import ConfigError
from broker.rights.reader import RightsError, read_rights
from broker.rights.table import RightsTable


def load_rights(path: str) -> RightsTable:
    """Return what the file says; without a name, a table that is open to everybody.

    Raises ConfigError with all that is wrong.
    """
    if not path:
        return RightsTable()
    document = Document(Path(path))
    try:
        return read_rights(document.tables)
    except RightsError as error:
        problems = sorted(
            (document.position(*keys), document.place(*keys), sentence, document.caret(*keys))
            for keys, sentence in error.faults
        )
    raise ConfigError(*(f"{place}: {sentence}\n{caret}" for _, place, sentence, caret in problems))
