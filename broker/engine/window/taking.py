"""How windows set events aside: generated functions, and the compiled pass where there is one.

Owns the code that finds what takes an event. Must not know what is kept of it nor when windows
close. Invariant: by whichever way they come, events wait in the `pending` of their group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from broker.engine import native
from broker.engine.event.source import Constants, build
from broker.engine.window.code import key_lines, key_slots
from broker.engine.window.days import DayGrid
from broker.engine.window.grid import Grid
from broker.engine.window.merge import Groups
from broker.engine.window.plan import OperandNames

if TYPE_CHECKING:
    from broker.engine.window.panes import PaneWindows


def compile_take(names: OperandNames, grid: Grid | DayGrid, leaf: int) -> Callable[..., None]:
    """A function of (events, windows) that sets a leaf's events aside in their partials.

    They wait in `pending`; partials in which none was waiting are put among those touched.
    """
    constants = Constants()
    body = [
        *key_lines(names),
        *grid.pane_lines(constants),
        "if pane != last:",
        "    groups = windows.groups_of(pane)",
        "    last = pane",
        "if groups is None:",
        "    windows.pass_over(pane)",
        "    continue",
        "partial = groups.get(key)",
        "if partial is None:",
        "    partial = windows.open_group(groups, key)",
        "    if partial is None: continue",
        f"pending = partial.pending[{leaf}]",
        "if not pending: touched.append(partial)",
        "pending.append(e)",
    ]
    head = [
        "def take(events, windows):",
        "    last = groups = None",
        "    low = high = 0",
        "    touched = windows.touched",
    ]
    lines = [*head, "    for e in events:", *(f"        {line}" for line in body)]
    return build("\n".join(lines) + "\n", "take", constants)


def compile_put(names: OperandNames, leaf: int) -> Callable[..., None]:
    """As `compile_take`, of (events, groups, windows), for events that all lie in one open pane.

    What takes the events of a key is found once and remembered in `slots` until they are folded.
    """
    found = [
        "partial = groups.get(key)",
        "if partial is None: partial = windows.open_group(groups, key)",
        "if partial is None: {skip}",
        f"pending = partial.pending[{leaf}]",
        "if not pending: windows.touched.append(partial)",
    ]
    head = ["def put_all(events, groups, windows):"]
    if not names.keys:
        refuse = "return windows.refuse(len(events) - 1)"
        body = ["key = ()", *(line.format(skip=refuse) for line in found), "pending += events"]
        lines = [*head, *(f"    {line}" for line in body)]
        return build("\n".join(lines) + "\n", "put_all", Constants())
    head += [
        f"    slots = windows.slots[{leaf}]",
        "    slot_of = slots.get",
        "    for e in events:",
    ]
    body = [
        *key_lines(names),
        "put = slot_of(key)",
        "if put is None:",
        *(f"    {line.format(skip='continue')}" for line in found),
        "    put = slots[key] = pending.append",
        "put(e)",
    ]
    passing = key_slots(names) if native.passes is not None else None
    if passing is not None:  # which needs the lists themselves
        body[-2:] = ["    put = slots[key] = pending", "put.append(e)"]
    lines = [*head, *(f"        {line}" for line in body)]
    put_all = build("\n".join(lines) + "\n", "put_all", Constants())
    return put_all if passing is None else _putting(put_all, passing, leaf)


def _putting(
    put_all: Callable[..., None], names: tuple[str, ...], leaf: int
) -> Callable[..., None]:
    """The compiled pass, which asks for what no list takes yet."""
    assert native.passes is not None
    put = native.passes.put

    def put_known(events: Sequence[Any], groups: Groups, windows: PaneWindows) -> None:
        put(events, names, windows.slots[leaf], lambda some: put_all(some, groups, windows))

    return put_known
