"""What is wrong with a configuration, all of it at once.

Owns the error and its form. Must not know where settings come from. Invariant: each problem names
its place first, so that an editor can jump there.
"""

from collections.abc import Iterable

from language.suggest import nearest


class ConfigError(ValueError):
    """A configuration that is refused; `problems` are whole lines, `place: what and what to do`."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class SettingRefusedError(ValueError):
    """One value that will not do; the reader adds its place."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` with the nearest known name, or nothing where none is near."""
    near = nearest(name, known)
    return f"; did you mean `{near}`?" if near else ""
