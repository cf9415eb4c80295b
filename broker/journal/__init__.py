"""The journal of one broker on a disk: what its core was told, before anything is promised.

Owns the journal's folder: segments, snapshots, and the thread that writes. Must not know what a
record or a snapshot means; how they stand in a file is `broker.core.recovery.records`. Invariant:
a number is told to be durable only after its record, and all before it, have been written and
synced.
"""

from broker.journal.errors import JournalError
from broker.journal.files import Files
from broker.journal.journal import Journal, JournalOptions
from broker.journal.reading import JournalContent, read

__all__ = ["Files", "Journal", "JournalContent", "JournalError", "JournalOptions", "read"]
