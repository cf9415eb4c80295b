"""The sources at this broker, with the types that they send.

Owns which source sends what, and which of the types others have not answered yet. Must not know
advertisements or clocks. Invariant: `senders` counts, for each type, the sources in `by_name` that
send it; `unanswered` are types of these alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class LocalSources:
    """Keep the sources and their types. At most `sources_max` are known."""

    def __init__(self, sources_max: int) -> None:
        self.by_name: dict[str, dict[str, None]] = {}
        self.senders: dict[str, int] = {}  # how many sources send a type
        self.changed: dict[str, None] = {}  # sources, since somebody asked
        self.unanswered: dict[str, None] = {}  # types
        self._sources_max = sources_max

    def sends(self, source: str, type_name: str) -> bool:
        """Take up that a source sends a type; False where there are too many sources."""
        types = self.by_name.get(source)
        if types is None:
            if len(self.by_name) >= self._sources_max:
                return False
            types = self.by_name[source] = {}
        if type_name not in types:
            types[type_name] = None
            # New is what nobody else here sends, also if somebody once did.
            if type_name not in self.senders:
                self.unanswered[type_name] = None
            self.senders[type_name] = self.senders.get(type_name, 0) + 1
            self.changed[source] = None
        return True

    def gone(self, source: str) -> None:
        """Forget a source."""
        for name in self.by_name.pop(source, {}):
            self.senders[name] -= 1
            if not self.senders[name]:
                del self.senders[name]
                self.unanswered.pop(name, None)
        self.changed[source] = None

    def answered(self, types: Iterable[str]) -> None:
        """Take up that all who can be reached have said whether they want these types."""
        for name in types:
            self.unanswered.pop(name, None)

    def types(self) -> tuple[str, ...]:
        """Return the types that are sent here, by name."""
        return tuple(sorted(self.senders))

    # --- snapshots -------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return plain data."""
        sources = [[name, list(types)] for name, types in self.by_name.items()]
        return {"sources": sources, "unanswered": list(self.unanswered)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up such a state in the place of all that is here."""
        self.by_name, self.senders = {}, {}
        for source, types in state["sources"]:
            self.by_name[source] = {}
            for name in types:
                self.sends(source, name)
        # Before types were answered they were told for a while; that is long over.
        self.unanswered = dict.fromkeys(state.get("unanswered", ()))
