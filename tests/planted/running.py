"""A plugin of pytest for the runs in a copy: to fail is all that is asked of a test.

Owns which tests run, and in which order. Must not know faults. Invariant: no case that hypothesis
finds is made smaller, and where a file lists tests no other runs.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import Phase, settings

SAID = "failed by the fault: "  # begins the line that names a test; its id may hold anything
CHOSEN = "HEADWATER_PLANTED_CHOSEN"  # names the file: an id on each line


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """After the tests' own configuration: what is generated stays the same."""
    kept = (Phase.explicit, Phase.generate)
    settings.register_profile("planted", settings.get_profile("fast"), phases=kept)
    settings.load_profile("planted")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what is not listed, whatever order others have made."""
    if CHOSEN not in os.environ:
        return
    chosen = Path(os.environ[CHOSEN]).read_text(encoding="utf-8").splitlines()
    order = {name: number for number, name in enumerate(chosen)}
    items[:] = sorted(
        [item for item in items if item.nodeid in order], key=lambda item: order[item.nodeid]
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what failed, on a line that has nothing else."""
    for report in terminalreporter.getreports("failed"):
        terminalreporter.write_line(f"{SAID}{report.nodeid}")
