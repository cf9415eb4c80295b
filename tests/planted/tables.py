"""All planted faults."""

from __future__ import annotations

from tests.planted import table_patterns

FAULTS = [*table_patterns.TABLE]
