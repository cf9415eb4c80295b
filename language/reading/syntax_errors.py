"""Syntax errors in words: what was found, what could have stood there, what was likely meant.

Owns the naming of terminals for people and the recognising of common slips. Must not know how
reading goes on. Invariant: the place is that of the first token that no good text could have there.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from language.diagnostics import quote
from language.lexicon import KEYWORDS, RESERVED, UNITS_M, UNITS_MS
from language.limits import NESTING_MAX
from language.relations import LINKS
from language.suggest import nearest
from language.tree import Span

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lark import UnexpectedInput

SKIP = re.compile(r"(?:[\s\ufeff]|#[^\n]*)*")
_BRACKET = re.compile(r'"(?:[^"\\\n]|\\.)*"?|\#[^\n]*|`[^`\n]*`?|[(\[{]|[)\]}]')
_WORD = re.compile(r"[^\W\d]\w*")
_GLUED = re.compile(r"\.?\d[\w.]*")  # what begins as a number does
_CLAUSE_WORD = re.compile(r"\bdetect\b")
_LATE_SUFFIX = re.compile(r"\b(within|spread|in)$")
_SHOWN_MAX = 4
_END_ALONE = frozenset(("$END", "<END-OF-FILE>"))
ITEM_WORDS = ("define", "event", "region", "set", "subscription", "table")

_TERMINALS = {
    "NAME": "a name",
    "PLACE": "a name",
    "STRING": "a text in double quotes",
    "INT": "a whole number",
    "FLOAT": "a number",
    "DURATION": "a duration such as 5 mins",
    "DISTANCE": "a distance such as 10 km",
    "EQUALS": "=",
    "COMPARATOR": "a comparison",
    "FOLLOWS": "then",
    "PLUS": "+",
    "MINUS": "-",
    "STAR": "*",
    "SLASH": "/",
    "DOTS": "..",
    "LBRACE": "{",
    "RBRACE": "}",
    "LSQB": "[",
    "_RSQB": "]",
    "_LPAR": "(",
    "RPAR": ")",
    "_COMMA": ",",
    "_COLON": ":",
    "_DOT": ".",
}
_ALIAS = "an alias stands right behind an event type or a repetition, as in `A+ as many`"
_CONSTANTS = frozenset(("INT", "FLOAT", "STRING", "DURATION", "DISTANCE", "TRUE", "FALSE"))
_PREFIXES = frozenset(("NTH", "ABSENT", "LAST", "FIRST", "OUTER", "DISTINCT"))
_CLAUSES = frozenset(("ASSIGN", "CONSUMING", "GROUP", "AT", "WAIT", "DETECT", "CASE", "POST"))
_SIGNS = frozenset(("PLUS", "MINUS", "STAR", "SLASH", "EQUALS", "COMPARATOR", "IN"))
_GROUPS: tuple[tuple[frozenset[str], frozenset[str], str], ...] = (
    (frozenset(("DEFINE", "EVENT")), frozenset(("DEFINE", "EVENT", "REGION", "SET", "SUBSCRIPTION",
     "TABLE")), "an item that begins with `define`, `event`, `subscription` or the like"),
    (frozenset(("NTH", "ABSENT")), _PREFIXES | {"NAME", "_LPAR"}, "a pattern"),
    (frozenset(("NAME", "NOT", "_LPAR")), _CONSTANTS | {"NAME", "NOT", "_LPAR", "MINUS"},
     "a value"),
    (frozenset(("NAME", "_LPAR", "MINUS")), _CONSTANTS | {"NAME", "_LPAR", "MINUS"}, "a value"),
    (frozenset(("INT", "DURATION")), _CONSTANTS | {"MINUS"}, "a value"),
    (frozenset(("FOLLOWS", "AND")), frozenset(("FOLLOWS", "AND", "OR", "WITHIN", "SPREAD", "IN",
     "WHERE", "PLUS", "STAR", "LBRACE")), "an operator such as `then` or `within`"),
    (frozenset(("PLUS", "SLASH")), _SIGNS | {"AND", "OR"}, "an operator such as `+`"),
    (frozenset(("AND", "OR")), frozenset(("AND", "OR")), "`and`, `or`"),
    (frozenset(("ASSIGN", "GROUP")), _CLAUSES, "another clause"),
)  # fmt: skip
"""Terminals that stand for one thing: those that tell it, those that it covers, its words."""


class Failure(NamedTuple):
    """An error that ended a parse; `complete` tells that what stands before it is an item."""

    code: str
    span: Span
    hint: str | None
    words: dict[str, Any]
    complete: bool = False


class Parsed(NamedTuple):
    """The object of a parse: a text, the offsets of a part of it, and as what it was parsed."""

    text: str
    piece: tuple[int, int]
    start: str

    @property
    def follows(self) -> str:
        """Return in words what can stand behind it."""
        return f"another {self.start}"


class Places:
    """Offsets of a text to lines and columns."""

    def __init__(self, text: str) -> None:
        self.starts = [0, *(m.end() for m in re.finditer("\n", text))]

    def span(self, start: int, end: int) -> Span:
        """The span between two offsets."""
        line = bisect_right(self.starts, start)
        return Span(start, end, line, start - self.starts[line - 1] + 1)


def too_deep(text: str, piece: tuple[int, int]) -> int | None:
    """The offset of the first bracket nested beyond the limit."""
    depth = 0
    for match in _BRACKET.finditer(text, *piece):
        mark = match[0]
        if mark in "([{":
            depth += 1
            if depth > NESTING_MAX:
                return match.start()
        elif mark in ")]}":
            depth -= 1
    return None


def classify(error: UnexpectedInput, parsed: Parsed, places: Places) -> Failure:
    """The failure that lark's error stands for."""
    from lark import UnexpectedToken

    text, piece, _ = parsed
    if isinstance(error, UnexpectedToken):
        expected = frozenset(error.accepts)
        if error.token.type == "$END":
            return _end(text, piece, expected, places)
        start = cast("int", error.token.start_pos)
        end = cast("int", error.token.end_pos)
    else:
        start = cast("int", error.pos_in_stream)
        expected = frozenset(getattr(error, "allowed", ()) or ())
        match = _WORD.match(text, start) or _GLUED.match(text, start)
        end = match.end() if match else start + 1
    span = places.span(start, end)
    failure = _slip(text, span, expected) or Failure(
        "HW101",
        span,
        _order(text[piece[0] : end]) or _hint(text[start:end], expected) or _misread(error),
        {"found": quote(text[start:end]), "expected": in_words(expected) or parsed.follows},
    )
    return failure._replace(complete=expected <= _END_ALONE)


def _end(text: str, piece: tuple[int, int], expected: frozenset[str], places: Places) -> Failure:
    last = piece[0]
    for match in re.finditer(
        r'"(?:[^"\\\n]|\\.)*"?|`[^`\n]*`?|\#[^\n]*|[^\s#"`]+', text[slice(*piece)]
    ):
        if not match[0].startswith("#"):
            last = piece[0] + match.end()
    return Failure("HW102", places.span(last, last), None, {"expected": in_words(expected)})


def _slip(text: str, span: Span, expected: frozenset[str]) -> Failure | None:
    """A slip with an error of its own."""
    word = text[span.start : span.end]
    if word.startswith('"'):
        if "\n" in word or word.count('"') < 2:
            return Failure("HW104", span, None, {})
    elif word.startswith("`") and word.count("`") < 2:
        return Failure("HW105", span, None, {})
    pair = text[span.start - 1 : span.start + 1] if span.start else ""
    if pair in _PAIRS:
        wider = Span(span.start - 1, span.end, span.line, span.column - 1)
        return Failure("HW103", wider, _PAIRS[pair], {"found": quote(pair)})
    if _could_be_a_unit(text, span):
        units = (*UNITS_MS, *UNITS_M)
        near = nearest(word, units)
        if near is not None or not expected & {"NAME", "AND"}:
            hint = f"did you mean {quote(near)}?" if near else None
            return Failure("HW115", span, hint, {"unit": word})
    if word == "." and (half := _half_number(text, span)):
        written = text[half.start : half.end]
        whole = f"{written.partition('.')[0] or '0'}.{written.partition('.')[2] or '0'}"
        return Failure("HW103", half, f"write {quote(whole)}", {"found": quote(written)})
    if _GLUED.fullmatch(word) and not word.isdigit():
        return Failure("HW103", span, _number_hint(word), {"found": quote(word)})
    if not _WORD.match(word) and not word.startswith(('"', "`")) and _strange(word):
        return Failure("HW103", span, _STRANGE.get(word[:2]) or _STRANGE.get(word[:1]),
                       {"found": quote(word)})  # fmt: skip
    return None


def _could_be_a_unit(text: str, span: Span) -> bool:
    """Tell whether a word behind a number, no keyword and no correct unit, may be meant as one."""
    word = text[span.start : span.end]
    if _WORD.fullmatch(word) is None or word.isupper() or word in KEYWORDS | RESERVED:
        return False
    before = text[max(0, span.start - 60) : span.start]
    number = re.search(r"(?<!\w)\d[\d.]*\s*$", before)
    line = before[: number.start()].rpartition("\n")[2] if number else "#"
    return "#" not in line and word not in UNITS_MS and word not in UNITS_M


def _half_number(text: str, span: Span) -> Span | None:
    """The number around a point that has digits on one side alone."""
    before = re.search(r"(?<![\w.])\d{1,20}$", text[max(0, span.start - 21) : span.start])
    after = re.compile(r"\d{1,20}").match(text, span.end)
    left = len(before[0]) if before else 0
    if not before and not (after and not text[max(0, span.start - 1) : span.start].isalnum()):
        return None
    end = after.end() if after else span.end
    return Span(span.start - left, end, span.line, span.column - left)


def _number_hint(found: str) -> str:
    """Return advice on what begins as a number and is none."""
    if found.startswith("."):
        return f"write {quote('0' + found)}"
    if re.fullmatch(r"0[xXbBoO]\w+|[\d_]+", found):
        return "write numbers in decimal digits, with nothing between them"
    if re.fullmatch(r"(\d+(\.\d+)?[a-z]+){2,}", found):
        return "one number and one unit: for example 90 s, not 1min30s"
    return "behind a number stand a blank, a sign or its unit"


_PAIRS = {
    "==": "write = for equality",
    "<>": "write != for inequality",
    "=<": "write <= for at most",
    "=>": "write >= for at least",
}
_STRANGE = {
    "&&": "write `and`",
    "||": "write `or`",
    "&": "write `and`",
    "|": "write `or`",
    "'": 'texts stand in double quotes: "…"',
    ";": "nothing ends a line here: leave it out",
}


def _strange(found: str) -> bool:
    return found[0] in "&|';!@$%^~?\\" or not (
        found[0].isalnum() or found[0] in "=<>+-*/.,:()[]{}_"
    )


def _order(text: str) -> str | None:
    """Return advice on a suffix that follows a `where`: `where` comes last."""
    clause = _CLAUSE_WORD.split(text)[-1]
    late = _LATE_SUFFIX.search(clause)
    if late is None or "where" not in clause[: late.start()].split():
        return None
    return f"`where` comes last: set `{late[1]} …` before it"


def _hint(found: str, expected: frozenset[str]) -> str | None:
    """A keyword that is near to the word found, or how to write what was meant."""
    if not _WORD.fullmatch(found):
        return None
    if found in KEYWORDS:
        return _ALIAS if found == "as" else None
    words = [terminal.lower() for terminal in sorted(expected) if terminal not in _TERMINALS]
    if "$END" in expected:
        words.extend(ITEM_WORDS)
    if "FOLLOWS" in expected:
        words.extend(LINKS)
    near = found.lower() if found.lower() in words else nearest(found, words)
    return f"did you mean {quote(near)}?" if near is not None and near != found else None


def _misread(error: UnexpectedInput) -> str | None:
    """Return advice on a keyword before, which was taken for a name here."""
    history = getattr(error, "token_history", None)
    before = history[-1] if history else None
    if before is not None and before.type == "NAME" and str(before) in KEYWORDS:
        return f"{quote(str(before))} before it is read as a name here"
    return None


def in_words(expected: Iterable[str]) -> str:
    """The terminals that could have stood there, a few of them, in words; "" for the end."""
    terminals = set(expected) - {"$END"}
    parts: list[str] = []
    for needed, taken, words in _GROUPS:
        if needed <= terminals:
            parts.append(words)
            terminals -= taken
    named = {_TERMINALS.get(name, name.lower()) for name in terminals}
    order = sorted(named, key=lambda word: (not word.startswith("a "), word))
    parts.extend(word if word.startswith("a ") else quote(word) for word in order)
    if not parts:
        return ""
    if len(parts) > _SHOWN_MAX:
        return ", ".join([*parts[:_SHOWN_MAX], "…"])
    return " or ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
