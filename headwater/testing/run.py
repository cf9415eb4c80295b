"""`headwater test`: files of tests, one after the other, and what differs.

Owns the exit status and the form of the output. Must not read, play or compare: the other modules
do. Invariant: each file gets its turn, whatever the others hold.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from headwater.cli.output import CommandError, complain, print_json, read_text
from headwater.testing.judge import DIFFERENCES_MAX, Difference, judge
from headwater.testing.play import play
from headwater.testing.reading import FaultyFileError, read_script
from headwater.testing.script import Test

GOOD, DIFFERS, FAULTY = 0, 1, 2


def run(names: Sequence[str], *, as_json: bool = False) -> int:
    """Run the tests of each file; 1 where something differs, 2 where a file is faulty."""
    status = GOOD
    told: list[dict[str, Any]] = []
    passed = failed = 0
    for name in names:
        outcome = _file(name, as_json=as_json)
        told.append(outcome)
        passed += sum(one["ok"] for one in outcome["tests"])
        failed += sum(not one["ok"] for one in outcome["tests"])
        if outcome["errors"]:
            status = FAULTY
        elif not outcome["ok"]:
            status = max(status, DIFFERS)
    if as_json:
        print_json(told)
    else:
        _say(_summary(passed, failed, sum(bool(one["errors"]) for one in told)))
    return status


def _file(name: str, *, as_json: bool) -> dict[str, Any]:
    try:
        script = read_script(read_text(name).removeprefix("\ufeff"), name, _read)
    except CommandError as error:
        if not as_json:
            for text in error.messages:
                complain(f"headwater: {text}")
        errors: list[Any] = [{"file": name, "message": text} for text in error.messages]
        return {"file": name, "ok": False, "errors": errors, "tests": []}
    except FaultyFileError as error:
        if not as_json:
            complain(error.report)
        return {"file": name, "ok": False, "errors": error.errors, "tests": []}
    tests = []
    for test in script.tests:
        found = judge(test, play(script, test))
        if found and not as_json:
            _tell(name, test, found)
        tests.append(
            {
                "name": test.name,
                "line": test.line,
                "ok": not found,
                "differences": [one.to_dict() for one in found],
            }
        )
    return {"file": name, "ok": all(one["ok"] for one in tests), "errors": [], "tests": tests}


def _read(name: str) -> str:
    """A specification; ValueError where it cannot be read."""
    try:
        return read_text(name)
    except CommandError as error:
        raise ValueError(error.messages[0]) from None


def _tell(name: str, test: Test, found: list[Difference]) -> None:
    _say(f"{name}:{test.line}: {test.name}")
    for one in found[:DIFFERENCES_MAX]:
        _say(f"  {name}:{one.line}: {one.message}")
        for detail in one.details:
            _say(f"      {detail}")
    if len(found) > DIFFERENCES_MAX:
        _say(f"  and {len(found) - DIFFERENCES_MAX} differences more")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def _summary(passed: int, failed: int, faulty: int) -> str:
    parts = [f"{passed} passed"]
    if failed:
        parts.append(f"{failed} failed")
    if faulty:
        parts.append(f"{faulty} file{'s' if faulty > 1 else ''} faulty")
    return ", ".join(parts)
