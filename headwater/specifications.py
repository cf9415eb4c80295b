"""What the command line does with specifications: check, explain, format.

Owns the outcome's form, the exit status and the replacing of files. Must not judge or print a text
itself: `language` does. Invariant: each file named gets its turn, whatever the others hold, and a
file is either as it was or wholly its canonical text.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headwater.cli.output import CommandError, complain, print_json, read_text
from headwater.errors import explain as explained
from headwater.errors import for_programs, titles
from headwater.given import functions_of
from headwater.replays.reference_tables import tables_beside
from language import Specification, check_text, format_text
from language.errors import LanguageError

GOOD, PROBLEMS, FAULTY = 0, 1, 2
STANDARD_INPUT = "-"


def check(names: Sequence[str], *, as_json: bool = False, functions: str = "") -> int:
    """Every error of each file; 1 where there is one, 2 where a file cannot be read."""
    status, count = GOOD, 0
    documents: list[dict[str, Any]] = []
    own = functions_of(functions)
    for name in names:
        try:
            checked = check_text(
                read_text(name), file=name, functions=own, tables=tables_beside(name)
            )
        except CommandError as error:
            status = FAULTY
            _complain_of(error, as_json=as_json)
            documents.append({"file": name, "ok": False, "errors": _messages(error)})
            continue
        errors = [diagnostic.to_dict() for diagnostic in checked.diagnostics]
        documents.append({"file": name, "ok": checked.ok, "errors": errors})
        count += len(errors)
        if errors and not as_json:
            complain(checked.report().rstrip("\n"))
        elif checked.specification is not None:
            warnings = _warnings(name, checked.specification)
            if as_json and warnings:
                documents[-1]["warnings"] = warnings
            elif warnings:
                complain("\n".join(warnings))
    if as_json:
        print_json(documents)
    elif count:
        complain(f"{count} error{'s' if count > 1 else ''}")
    return status or (PROBLEMS if count else GOOD)


def _warnings(name: str, specification: Specification) -> list[str]:
    from broker.engine.pattern.bounds.bounds import unbounded

    return [
        f"{name}: warning: what `{task.name}` holds has no limit by its text: {why}"
        for task, why in unbounded(specification.graph)
    ]


def explain(code: str | None, *, as_json: bool = False) -> int:
    """Print what a code means, with examples; of all codes the titles."""
    if code is None:
        all_titles = titles()
        if as_json:
            print_json(all_titles)
        else:
            sys.stdout.write(
                "".join(f"{error_code}  {title}\n" for error_code, title in all_titles.items())
            )
        return GOOD
    try:
        text = explained(code)
    except LanguageError as error:
        raise CommandError(FAULTY, str(error)) from None
    if as_json:
        print_json(for_programs(code))
    else:
        sys.stdout.write(text)
    return GOOD


def fmt(names: Sequence[str], *, check: bool = False, as_json: bool = False) -> int:
    """Each file in its canonical form; with `check` only whether it is, 1 where it is not.

    2 where a file cannot be read or written, or holds what cannot be read as a specification.
    """
    documents = []
    for name in names:
        try:
            document = _formatted(name, check=check, as_json=as_json)
        except CommandError as error:
            _complain_of(error, as_json=as_json)
            document = {"file": name, "ok": False, "errors": _messages(error)}
        except LanguageError as error:
            if not as_json:
                complain(str(error).rstrip("\n").replace("<text>", name))
            document = {
                "file": name,
                "ok": False,
                "errors": [d.to_dict() for d in error.diagnostics],
            }
        documents.append(document)
    if as_json:
        print_json(documents)
    if not all(document["ok"] for document in documents):
        return FAULTY
    return PROBLEMS if check and any(document["changed"] for document in documents) else GOOD


def _formatted(name: str, *, check: bool, as_json: bool) -> dict[str, Any]:
    text = read_text(name)
    formatted = format_text(text)
    document = {"file": name, "ok": True, "changed": formatted != text}
    if name == STANDARD_INPUT and not check:
        if as_json:
            document["text"] = formatted
        else:
            sys.stdout.write(formatted)
        return document
    if document["changed"]:
        if not check:
            _replace(name, formatted)
        if not as_json:
            complain(f"{name}: {'would change' if check else 'formatted'}")
    return document


def _replace(name: str, text: str) -> None:
    """Put a new file in the old one's place. Raises CommandError; then the old one stands."""
    path = os.path.realpath(name)  # where the name is a link, it goes on being one
    folder, base = os.path.split(path)
    made = ""
    try:
        Path(path).open("ab").close()  # replacing asks the folder alone; the file has its word too
        number, made = tempfile.mkstemp(prefix=f".{base[:100]}.", dir=folder)
        with os.fdopen(number, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        shutil.copymode(path, made)
        Path(made).replace(path)
    except OSError as error:
        if made:
            with contextlib.suppress(OSError):
                Path(made).unlink()
        reason = (error.strerror or str(error)).lower()
        raise CommandError(FAULTY, f"{name}: cannot be written: {reason}") from None


def _complain_of(error: CommandError, *, as_json: bool) -> None:
    if not as_json:
        for text in error.messages:
            complain(f"headwater: {text}")


def _messages(error: CommandError) -> list[dict[str, str]]:
    return [{"message": text} for text in error.messages]
