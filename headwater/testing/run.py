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
from headwater.testing.script import Test
from headwater.testing.script_reader import FaultyFileError, read_script

GOOD, DIFFERS, FAULTY = 0, 1, 2


def run(names: Sequence[str], *, as_json: bool = False) -> int:
    """Run the tests of each file; 1 where something differs, 2 where a file is faulty."""
    status = GOOD
    documents: list[dict[str, Any]] = []
    passed = failed = 0
    for name in names:
        outcome = _file(name, as_json=as_json)
        documents.append(outcome)
        passed += sum(test["ok"] for test in outcome["tests"])
        failed += sum(not test["ok"] for test in outcome["tests"])
        if outcome["errors"]:
            status = FAULTY
        elif not outcome["ok"]:
            status = max(status, DIFFERS)
    if as_json:
        print_json(documents)
    else:
        _say(_summary(passed, failed, sum(bool(document["errors"]) for document in documents)))
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
        differences = judge(test, play(script, test))
        if differences and not as_json:
            _tell(name, test, differences)
        tests.append(
            {
                "name": test.name,
                "line": test.line,
                "ok": not differences,
                "differences": [difference.to_dict() for difference in differences],
            }
        )
    return {"file": name, "ok": all(test["ok"] for test in tests), "errors": [], "tests": tests}


def _read(name: str) -> str:
    """A specification; ValueError where it cannot be read."""
    try:
        return read_text(name)
    except CommandError as error:
        raise ValueError(error.messages[0]) from None


def _tell(name: str, test: Test, found: list[Difference]) -> None:
    _say(f"{name}:{test.line}: {test.name}")
    for difference in found[:DIFFERENCES_MAX]:
        _say(f"  {name}:{difference.line}: {difference.message}")
        for detail in difference.details:
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
