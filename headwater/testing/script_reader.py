"""From the text of a file of tests to what it says, with every fault and its place.

Owns the order of a file: its specification, its tests, their lines. Must not know how a test is
played. Invariant: each line is a part of the specification, of a test, or a fault; a test that
could not fail is a fault.

    specification … end, or use "FILE.hw"
    0s is 2026-03-01T06:00Z, lateness 2s       for all tests, or for one where they stand in it
    test NAME
      3s Temp t1 val=21.5 @source t7
      expect Frost: Temp=t1 at 3s
      then no more
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headwater.replays.reference_tables import tables_beside
from headwater.testing.events import EventReader
from headwater.testing.expectations import ExpectationReader
from headwater.testing.notation import (
    ScriptFault,
    ScriptFaultError,
    Word,
    duration_ms,
    interval_text,
    text_of,
    time_ms,
    words_of,
)
from headwater.testing.script import Expect, Script, SendStep, Test
from language import Checked, Specification, check_text
from language.diagnostics import shorten
from language.suggest import nearest

FAULTS_MAX = 100  # of one file; nobody reads more
_FORMS = (
    "expected `use`, `specification`, `test`, `0s is`, `lateness`, an event that begins with its"
    " time, `expect` or `then no more`"
)
_FIRST_WORDS = ("use", "specification", "test", "lateness", "expect", "then")


class FaultyFileError(Exception):
    """A file of tests with faults; `report` tells them all, `errors` are they as data."""

    def __init__(self, report: str, errors: list[dict[str, object]]) -> None:
        super().__init__(report)
        self.report = report
        self.errors = errors


def read_script(text: str, file: str, read_file: Callable[[str], str]) -> Script:
    """Read a file's script; `read_file` reads the specification that it names.

    Raises FaultyFileError with every fault of the file and of its specification.
    """
    reading = _Reading(text, file, read_file)
    return reading.script()


class _Reading:
    """One file on its way."""

    def __init__(self, text: str, file: str, read_file: Callable[[str], str]) -> None:
        self._lines = [line.removesuffix("\r") for line in text.split("\n")]
        self._file = file
        self._read_file = read_file
        self._faults: list[ScriptFault] = []
        self._reports: list[str] = []  # of the specification
        self._errors: list[dict[str, object]] = []
        self._specified_at = 0
        self._specification: Specification | None = None
        self._tests: list[Test] = []
        self._broken = False  # a line of the last test is faulty
        self._zero_ms = 0
        self._lateness_ms = 0

    def script(self) -> Script:
        numbered = self._numbered()
        if not self._specified_at:
            self._fault(1, Word(" ", 1), "it names no specification", 'write `use "FILE.hw"`')
        self._events = EventReader(self._specification)
        self._expectations = ExpectationReader(self._specification)
        for number, line in numbered:
            try:
                words = words_of(line)
                if words:
                    self._line(number, words)
            except ScriptFaultError as error:
                self._faults.append(error.at(number))
                self._broken = self._tests[-1:] == [] or self._tests[-1].line != number
        self._end_test()
        if not self._tests and not self._faults:
            self._fault(len(self._lines), Word(" ", 1), "it holds no test", "write `test NAME`")
        self._refuse()
        assert self._specification is not None
        return Script(self._file, self._specification, self._tests)

    # --- the specification ---------------------------------------------------------------

    def _numbered(self) -> list[tuple[int, str]]:
        """The lines without those of the specification, which is checked in passing."""
        numbered: list[tuple[int, str]] = []
        block: list[int] | None = None
        for number, line in enumerate(self._lines, 1):
            words = line.split("#")[0].split()
            if block is not None:
                if words == ["end"]:
                    self._check_block(block)
                    block = None
                else:
                    block.append(number)
            elif words == ["specification"]:
                self._specified(number, line)
                block = [number]
            elif words[:1] == ["use"]:
                self._specified(number, line)
                self._use(number, line)
            else:
                numbered.append((number, line))
        if block is not None:
            word = Word("specification", self._lines[block[0] - 1].index("s") + 1)
            self._fault(block[0], word, "the specification has no `end`")
        return numbered

    def _specified(self, number: int, line: str) -> None:
        if self._specified_at:
            sentence = f"the specification stands in line {self._specified_at} already"
            self._fault(number, words_of(line)[0], sentence, "a file of tests has one")
        self._specified_at = self._specified_at or number

    def _check_block(self, block: list[int]) -> None:
        """Its lines at their own place, so that what is wrong is told where it stands."""
        lines = [""] * block[0] + [self._lines[number - 1] for number in block[1:]]
        self._take(check_text("\n".join(lines), file=self._file, tables=tables_beside(self._file)))

    def _use(self, number: int, line: str) -> None:
        try:
            words = words_of(line)
            if len(words) != 2:
                raise ScriptFaultError(
                    words[0], "found `use`, expected a file after it", 'use "FILE.hw"'
                )
            path = Path(self._file).parent / text_of(words[1])
            try:
                text = self._read_file(str(path))
            except ValueError as error:
                raise ScriptFaultError(words[1], str(error)) from None
        except ScriptFaultError as error:
            self._faults.append(error.at(number))
            return
        self._take(check_text(text, file=str(path), tables=tables_beside(str(path))))

    def _take(self, checked: Checked) -> None:
        if checked.specification is None:
            self._reports.append(checked.report().rstrip("\n"))
            self._errors += [
                {"file": checked.file, **diagnostic.to_dict()} for diagnostic in checked.diagnostics
            ]
            return
        self._specification = checked.specification
        if not checked.specification.subscriptions:
            self._fault(self._specified_at, Word(" ", 1), "the specification has no subscription")

    # --- tests ---------------------------------------------------------------------------

    def _line(self, number: int, words: list[Word]) -> None:
        first = words[0].text
        if first == "test":
            self._begin_test(number, words)
        elif first == "lateness":
            self._of_test(words, 2)
            self._set(lateness_ms=duration_ms(words[1]))
        elif first in {"0", "0s"} and [word.text for word in words[1:2]] == ["is"]:
            self._of_test(words, 3)
            self._set(zero_ms=time_ms(words[2], 0))
        elif first[0].isdigit() or first[0] in "-{":
            self._send(number, words)
        elif first in {"expect", "then"}:
            test = self._test(words[0])
            sent = {step.event_id: None for step in test.steps if isinstance(step, SendStep)}
            ids = None if self._broken else sent
            steps = self._expectations.read(number, words, test.zero_ms, ids)
            self._nothing_means_nothing(test, words)
            test.steps += steps
        else:
            near = nearest(first, _FIRST_WORDS)
            hint = f"did you mean `{near}`?" if near else _FORMS
            raise ScriptFaultError(words[0], f"found `{shorten(first)}`", hint)

    def _begin_test(self, number: int, words: list[Word]) -> None:
        self._end_test()
        name = " ".join(text_of(word) for word in words[1:])
        self._tests.append(Test(name, number, self._zero_ms, self._lateness_ms))
        self._events.begin()
        if not name:
            raise ScriptFaultError(words[0], "the test has no name", "write `test NAME`")
        if any(test.name == name for test in self._tests[:-1]):
            raise ScriptFaultError(words[1], f"a test is called `{shorten(name)}` already")

    def _end_test(self) -> None:
        """A test without an expectation would pass whatever happened."""
        broken, self._broken = self._broken, False
        if not self._tests or broken:
            return
        test = self._tests[-1]
        if all(isinstance(step, SendStep) for step in test.steps):
            word = Word("test", self._lines[test.line - 1].index("test") + 1)
            self._fault(test.line, word, "the test expects nothing", "say `expect nothing` if so")

    def _of_test(self, words: list[Word], size: int) -> None:
        if len(words) != size:
            raise ScriptFaultError(words[0], "expected `lateness 2s`, `0s is 2026-03-01T06:00Z`")
        if self._tests and self._tests[-1].steps:
            raise ScriptFaultError(words[0], "this stands before the first event of a test")

    def _set(self, *, zero_ms: int | None = None, lateness_ms: int | None = None) -> None:
        whole = self._tests[-1] if self._tests else None
        if zero_ms is not None:
            self._zero_ms = self._zero_ms if whole else zero_ms
            if whole:
                whole.zero_ms = zero_ms
        if lateness_ms is not None:
            self._lateness_ms = self._lateness_ms if whole else lateness_ms
            if whole:
                whole.lateness_ms = lateness_ms

    def _test(self, word: Word) -> Test:
        if not self._tests:
            raise ScriptFaultError(word, "this stands in no test", "begin one with `test NAME`")
        return self._tests[-1]

    def _send(self, number: int, words: list[Word]) -> None:
        test = self._test(words[0])
        sent = self._events.read(number, words, test.zero_ms)
        if not test.lateness_ms:
            self._in_order(test, sent, words[0])
        test.steps.append(sent)

    def _in_order(self, test: Test, sent: SendStep, word: Word) -> None:
        before = [step for step in test.steps if isinstance(step, SendStep)]
        if before and _end(before[-1]) > _end(sent):
            moment = interval_text(_end(before[-1]), _end(before[-1]), test.zero_ms)
            raise ScriptFaultError(
                word,
                f"line {before[-1].line} has come as far as {moment} already",
                "put it in order, or say with `lateness 10s` that events may come late",
            )

    def _nothing_means_nothing(self, test: Test, words: list[Word]) -> None:
        expected = any(isinstance(step, Expect) for step in test.steps)
        if words[0].text == "expect" and words[1].text == "nothing" and len(words) == 2:
            if expected:
                hint = "say `then no more`"
                raise ScriptFaultError(words[0], "something is expected above", hint)
        elif words[0].text == "then" and not expected:
            raise ScriptFaultError(words[0], "nothing is expected above", "say `expect nothing`")

    # --- faults --------------------------------------------------------------------------

    def _fault(self, line: int, word: Word, message: str, hint: str = "") -> None:
        self._faults.append(ScriptFaultError(word, message, hint).at(line))

    def _refuse(self) -> None:
        if not self._faults and not self._errors:
            return
        faults = sorted(self._faults, key=lambda fault: (fault.line, fault.column))
        texts = self._reports + [
            fault.told(self._file, self._lines) for fault in faults[:FAULTS_MAX]
        ]
        if len(faults) > FAULTS_MAX:
            texts.append(f"{self._file}: and {len(faults) - FAULTS_MAX} faults more")
        errors = [{"file": self._file, **fault.to_dict()} for fault in faults[:FAULTS_MAX]]
        raise FaultyFileError("\n".join(texts), self._errors + errors)


def _end(sent: SendStep) -> int:
    return int(sent.fields.get("end", sent.fields.get("timestamp", 0)))
