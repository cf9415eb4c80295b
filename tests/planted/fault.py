"""What a planted fault is, and which fast tests are asked to find it.

Owns the form of the tables. Must not know how a copy is made or run. Invariant: a fault changes one
place of one module, and the changed module is still Python that imports.

Each fault is a mistake that somebody could make: an end that is left out, the wrong side of a pair,
a null that is not thought of, a tie decided the other way, state that stays or goes too early. The
text that it changes is short, so that it outlives changes around it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("language", "planner", "broker", "simulation", "server", "headwater", "experiments")

ENGINE = (
    "tests/test_engine_edges.py",
    "tests/test_engine_streams.py",
    "tests/test_engine.py",
)
SCENARIOS = ("tests/simulation/test_scenario.py",)
CORE = tuple(
    f"tests/broker/core/{path.name}"  # without the rooms beneath, which have faults of their own
    for path in sorted((ROOT / "tests/broker/core").glob("test_*.py"))
)
LANGUAGE = ("tests/language",)
_SOCKETS = ("test_server.py", "test_application.py", "test_library_clients.py", "test_page.py")
MQTT = tuple(
    f"tests/broker/mqtt/{path.name}"  # those without sockets and foreign programs
    for path in sorted((ROOT / "tests/broker/mqtt").glob("test_*.py"))
    if path.name not in _SOCKETS and not path.name.startswith("test_mosquitto")
)

MATCHING = (*ENGINE, *SCENARIOS)
EVERYTHING = (*CORE, *MATCHING)


@dataclass(frozen=True)
class Fault:
    """One mistake: `old` stands once in the module, `new` takes its place.

    `breaks` says what would go wrong, `tests` which of the fast tests are run to find it; of these
    `only` those whose names fit (pytest's -k), where that spares time.
    """

    name: str
    module: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]
    only: str = ""

    def planted(self, text: str) -> str:
        """The module's text with the fault in it. Raises ValueError where it has no one place."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(
                f"{self.name}: `{self.old}` stands {found} times in {self.module}, not once;"
                " the fault needs another place where the same mistake can be made"
            )
        return text.replace(self.old, self.new)


def part(module: str, table: str, *, tests: tuple[str, ...], only: str = "") -> list[Fault]:
    """The faults of one module.

    They stand apart by empty lines. The first line of each is `name: what breaks`; lines after `- `
    are the text as it is, those after `+ ` the text in its place.
    """
    blocks = table.strip().split("\n\n")
    return [replace(_read(module, block.splitlines(), tests), only=only) for block in blocks]


def _read(module: str, lines: list[str], tests: tuple[str, ...]) -> Fault:
    name, _, breaks = lines[0].partition(": ")
    old = [line[2:] for line in lines[1:] if line[:2] in {"-", "- "}]
    new = [line[2:] for line in lines[1:] if line[:2] in {"+", "+ "}]
    if not old or len(old) + len(new) != len(lines) - 1:
        raise ValueError(f"{module}, {name}: a line begins with neither `- ` nor `+ `")
    return Fault(name, module, "\n".join(old), "\n".join(new), breaks, tests)
