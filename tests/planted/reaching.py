"""Which tests reach the places where faults are planted, and how long they take.

Owns the tracing. Must not know how a search uses it. Invariant: only lines that hold a fault are
traced, each until a test has reached it and not for ever, so that a recording takes not much longer
than the tests do.

A plugin of pytest that writes what it saw to the file that REACHED names. What runs once for many
tests (an import, a fixture of a module) none of them or the first alone seems to reach: so whoever
finds nothing among those that reach a fault asks the others as well.
"""

from __future__ import annotations

import ast
import gc
import json
import os
import sys
import threading
from functools import _lru_cache_wrapper
from inspect import signature
from itertools import chain
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from tests.planted.copies import REACHED
from tests.planted.fault import PRODUCT, ROOT, Fault
from tests.planted.tables import FAULTS

CALLS_MAX = 500  # of one function in one test: what they have not reached is taken for unreached
Place = tuple[str, int]  # a file and a line in it


def lines_of(fault: Fault, text: str) -> set[int]:
    """The lines of the statements that a fault changes; of a compound one those of its head."""
    before = text[: text.index(fault.old)]
    first = before.count("\n") + 1
    changed = set(range(first, first + fault.old.rstrip("\n").count("\n") + 1))
    heads = [_head(node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    return set(chain(changed, *[head for head in heads if not changed.isdisjoint(head)]))


def _head(node: ast.stmt) -> range:
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if not body:
        return range(node.lineno, (node.end_lineno or node.lineno) + 1)
    inner = getattr(body[0], "lineno", None) or body[0].pattern.lineno
    return range(node.lineno, max(inner, node.lineno + 1))


class Tracer:
    """Sees which of the faults' lines are run between `begin` and `end`."""

    def __init__(self, faults: list[Fault]) -> None:
        self._lines: dict[str, set[int]] = {}
        self._places: dict[str, set[Place]] = {}
        for fault in faults:
            path = ROOT / fault.module
            lines = lines_of(fault, path.read_text(encoding="utf-8"))
            self._lines.setdefault(str(path), set()).update(lines)
            self._places[fault.name] = {(str(path), line) for line in lines}
        self._of_code: dict[int, tuple[CodeType, frozenset[int]]] = {}  # by the code's id
        self._calls: dict[int, int] = {}
        self._left: dict[str, set[int]] = {}
        self._seen: set[Place] = set()

    def begin(self) -> None:
        """Nothing has been reached."""
        self._left = {path: set(lines) for path, lines in self._lines.items()}
        self._calls = {}
        self._seen = set()
        threading.settrace(self._called)
        sys.settrace(self._called)

    def end(self) -> list[str]:
        """The names of the faults that were reached."""
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        return [name for name, places in self._places.items() if not places.isdisjoint(self._seen)]

    def _called(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if code.co_filename not in self._lines:
            return None
        number = id(code)
        calls = self._calls.get(number, 0)
        if calls >= CALLS_MAX:
            return None
        known = self._of_code.get(number)
        if known is None:
            lines = self._lines[code.co_filename]
            found = frozenset(line for _, _, line in code.co_lines() if line in lines)
            known = self._of_code[number] = (code, found)  # while it is kept its id is its own
        if self._left[code.co_filename].isdisjoint(known[1]):
            self._calls[number] = CALLS_MAX
            return None
        self._calls[number] = calls + 1
        return self._line

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        path, line = frame.f_code.co_filename, frame.f_lineno
        left = self._left[path]
        if event == "line" and line in left:
            left.remove(line)
            self._seen.add((path, line))
        return self._line


class Recorder:
    """Runs every test under the tracer and writes (seconds, faults) by the tests that pass."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._tracer = Tracer(FAULTS)
        self._caches: list[Any] = []
        self._seconds: dict[str, float] = {}
        self._reached: dict[str, list[str]] = {}
        self._failed: set[str] = set()

    def pytest_collection_finish(self) -> None:
        """What is kept from one test to the next would not be reached by the next.

        What takes no argument stays: the parser alone takes longer than most tests.
        """
        wrapped = [one for one in gc.get_objects() if isinstance(one, _lru_cache_wrapper)]
        self._caches = [
            one
            for one in wrapped
            if one.__module__.split(".")[0] in PRODUCT and signature(one).parameters
        ]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Any:
        """From here on."""
        for cache in self._caches:
            cache.cache_clear()
        self._tracer.begin()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Any:
        """To here; the report of a test's end takes it to whoever writes."""
        try:
            return (yield)
        finally:
            item.user_properties.append(("reached", self._tracer.end()))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add what a test has told."""
        name = report.nodeid
        self._seconds[name] = self._seconds.get(name, 0.0) + report.duration
        if not report.passed:
            self._failed.add(name)
        self._reached[name] = dict(report.user_properties).get("reached", [])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write, unless this is one of several that run tests for another that writes."""
        if hasattr(session.config, "workerinput"):
            return
        passed = [name for name in self._reached if name not in self._failed]
        told = {name: [round(self._seconds[name], 3), self._reached[name]] for name in passed}
        self._file.write_text(json.dumps(told, indent=0), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Record from here on."""
    config.pluginmanager.register(Recorder(Path(os.environ[REACHED])))
