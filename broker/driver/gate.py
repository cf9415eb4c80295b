"""Why intake is held, and for how long.

Owns the reasons. Must not know what holding means: the runner does. Invariant: intake is held
exactly while there is a reason; what is told of it is told once when it begins, when it becomes
another, and when it ends.
"""

from collections.abc import Callable

from broker import logs


class IntakeGate:
    """`hold` and `release` are called in turns, `hold` first."""

    def __init__(self, hold: Callable[[], None], release: Callable[[], None]) -> None:
        self._hold = hold
        self._release = release
        self._shut: dict[str, str] = {}

    def shut(self, name: str, why: str = "") -> None:
        """Hold intake for a reason of this name; without a sentence, as happens under load."""
        before = self._shut.get(name)
        first = not self._shut
        self._shut[name] = why
        if why and why != before:
            logs.tell("error", "held", by=name, reason=why)
        if first:
            self._hold()

    def open(self, name: str) -> None:
        """The reason is gone, if it was there."""
        why = self._shut.pop(name, None)
        if why:
            logs.tell("info", "held_no_more", by=name)
        if why is not None and not self._shut:
            self._release()

    def put(self, name: str, why: str) -> None:
        """Shut with a sentence, open with an empty text."""
        if why:
            self.shut(name, why)
        else:
            self.open(name)

    @property
    def is_shut(self) -> bool:
        """Tell whether there is any reason."""
        return bool(self._shut)

    def reasons(self) -> list[str]:
        """The sentences, in the order in which they came."""
        return [why for why in self._shut.values() if why]
