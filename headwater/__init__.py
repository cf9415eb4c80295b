"""The public face of Headwater: what a program imports and what a person types.

Owns the names that users rely on and the command line. Must not know how anything beneath it
works. Invariant: importing this package is cheap; every part is loaded when it is first used.

    a program ─▶ engine (in this process); client, publisher, driver (a running broker)
    a person ──▶ cli ─▶ specifications, replays, simulations, placement, explaining, testing, demo
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from broker.engine.event.own import Aggregate, Function
    from headwater.client import Client
    from headwater.driver import Driver
    from headwater.engine import Engine, EventError, WorkError
    from headwater.events import Event
    from headwater.remote import ClientError
    from language.errors import HeadwaterError, LanguageError

__all__ = [
    "Aggregate",
    "Client",
    "ClientError",
    "Driver",
    "Engine",
    "Event",
    "EventError",
    "Function",
    "HeadwaterError",
    "LanguageError",
    "WorkError",
]

_PLACES = {
    "Aggregate": "broker.engine.event.own",
    "Client": "headwater.client",
    "ClientError": "headwater.remote",
    "Driver": "headwater.driver",
    "Engine": "headwater.engine",
    "Event": "headwater.events",
    "EventError": "headwater.engine",
    "Function": "broker.engine.event.own",
    "HeadwaterError": "language.errors",
    "LanguageError": "language.errors",
    "WorkError": "headwater.engine",
}


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    if name == "client":  # the module, which is loaded as late as what is in it
        return importlib.import_module("headwater.client")
    raise AttributeError(f"module 'headwater' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "client"})
