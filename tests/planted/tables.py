"""All planted faults, by name."""

from __future__ import annotations

from tests.planted import (
    table_absence,
    table_bounds,
    table_cells,
    table_door,
    table_ended,
    table_incarnations,
    table_journal,
    table_language,
    table_links,
    table_mqtt,
    table_patterns,
    table_planner,
    table_rights,
    table_rounds,
    table_seen,
    table_server,
    table_stages,
    table_store,
    table_times,
    table_windows,
)

FAULTS = [
    *table_patterns.TABLE,
    *table_stages.TABLE,
    *table_door.TABLE,
    *table_windows.TABLE,
    *table_language.TABLE,
    *table_mqtt.TABLE,
    *table_store.TABLE,
    *table_journal.TABLE,
    *table_bounds.TABLE,
    *table_planner.TABLE,
    *table_rights.TABLE,
    *table_rounds.TABLE,
    *table_seen.TABLE,
    *table_links.TABLE,
    *table_times.TABLE,
    *table_ended.TABLE,
    *table_absence.TABLE,
    *table_cells.TABLE,
    *table_incarnations.TABLE,
    *table_server.TABLE,
]
