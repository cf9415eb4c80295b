"""Rows of the log of results, made of what results say of themselves.

Owns the making. Must not know the store that they go into. Invariant: id and end are those that the
payload tells.
"""

import json

from broker.store import Row


def row_of(offset, subscription, subscriber, actor, payload):
    """A row of the log for a result of this JSON."""
    said = json.loads(payload)
    return Row(offset, said["id"], subscription, subscriber, actor, said["end"], payload)
