"""What the command line does with specifications: check, explain, format.

Owns the outcome's form and the exit status. Must not judge or print a text itself: `language` does.
Invariant: status 0 exactly where there is nothing to complain of.
"""

from __future__ import annotations

from pathlib import Path

from headwater.cli.output import complain, print_json
from headwater.errors import explain as explained
from headwater.errors import for_programs, titles
from language import check_text
from language.errors import LanguageError

GOOD, PROBLEMS, MISUSED = 0, 1, 2
Texts = list[tuple[str, str]]


def check(texts: Texts, *, as_json: bool = False) -> int:
    """Every error of each text; 1 where there is one."""
    checked = [check_text(text, file=name) for name, text in texts]
    if as_json:
        print_json(
            [
                {"file": one.file, "ok": one.ok, "errors": [d.to_dict() for d in one.diagnostics]}
                for one in checked
            ]
        )
    else:
        for one in checked:
            if not one.ok:
                complain(one.report().rstrip("\n"))
    count = sum(len(one.diagnostics) for one in checked)
    if count and not as_json:
        complain(f"{count} error{'s' if count > 1 else ''}")
    return PROBLEMS if count else GOOD


def explain(code: str | None, *, as_json: bool = False) -> int:
    """What a code means, with examples; of all codes the titles."""
    if code is None:
        known = titles()
        if as_json:
            print_json(known)
        else:
            print("\n".join(f"{one}  {title}" for one, title in known.items()))
        return GOOD
    try:
        told = explained(code)
    except LanguageError as error:
        complain(str(error))
        return MISUSED
    if as_json:
        print_json(for_programs(code))
    else:
        print(told, end="")
    return GOOD


def fmt(texts: Texts, *, check: bool = False, as_json: bool = False) -> int:
    """Each text in its canonical form, in its file; with `check` only whether it is."""
    from language import format_text

    changed = []
    for name, text in texts:
        try:
            formatted = format_text(text)
        except LanguageError as error:
            complain(str(error).rstrip("\n").replace("<text>", name))
            return PROBLEMS
        if name == "-" and not check:
            print(formatted, end="")
        elif formatted != text:
            changed.append(name)
            if not check:
                Path(name).write_text(formatted, encoding="utf-8")
    if as_json:
        print_json({"changed": changed})
    else:
        for name in changed:
            complain(f"{name}: {'would change' if check else 'formatted'}")
    return PROBLEMS if changed and check else GOOD
