"""Events for tests of routing: whatever attributes are named, of any type."""

from types import SimpleNamespace


def event(name, kind, start, end=None, **said):
    """An event as a router sees it; what is said beside source, location, position: attributes."""
    fields = {key: said.pop(key, None) for key in ("source", "location", "position")}
    values = {f"a_{key}": value for key, value in said.items()}
    return SimpleNamespace(
        id=name, event_type=kind, start=start, end=start if end is None else end, **fields, **values
    )
