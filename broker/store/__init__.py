"""What a broker keeps in a database: the catalogue, the outbox, and what its MQTT face must keep.

Owns the database, its formats and the one thread that writes. Must not know the core, MQTT or HTTP.
Invariant: what was reported as stored outlasts a loss of power; what was not may be missing, but
never in part. SQLAlchemy is imported when a store is opened, not before.
"""

from broker.store.catalogue import CatalogueEntry, StoredCatalogue
from broker.store.errors import StoreError
from broker.store.outbox import Outbox
from broker.store.parts import Part
from broker.store.results import (
    RESULTS,
    Consumer,
    ConsumersFullError,
    GoneError,
    NotYetError,
    Retention,
    Row,
    Settled,
    Standing,
    TooLargeError,
)
from broker.store.store import Store

__all__ = [
    "RESULTS",
    "CatalogueEntry",
    "Consumer",
    "ConsumersFullError",
    "GoneError",
    "NotYetError",
    "Outbox",
    "Part",
    "Retention",
    "Row",
    "Settled",
    "Standing",
    "Store",
    "StoreError",
    "StoredCatalogue",
    "TooLargeError",
]
