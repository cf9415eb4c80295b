"""What a broker is told about itself.

Owns these settings alone. Must not know where they are configured. Invariant: plain data, as a
snapshot holds them.
"""

from __future__ import annotations

from msgspec import Struct


class BrokerOptions(Struct, frozen=True, kw_only=True):
    """Hold what a broker is told about itself; see `intake.IntakeOptions` for most."""

    name: str = "broker"
    lateness_ms: int = 1_000
    drift_ppm: int = 0
    idle_timeout_ms: int = 60_000
    require_timestamp: bool = False
    networked: bool = False  # one of several brokers: see `broker.core.network`
    cells: bool = False  # and what is submitted may run at any of them: see docs/network.md
    split_windows: bool = False  # windows of such are folded where events enter: likewise
    correlate: bool = True  # events wait on their way for partners: likewise
    tables: dict[str, str] = {}  # reference data that specifications may name: file → its text
