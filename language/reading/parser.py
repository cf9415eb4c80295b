"""The parser: a text cut into items, each read on its own, errors collected.

Owns the parser's making, the cutting, and going on after an error. Must not know what items mean.
Invariant: no text raises; every item that can be read is read, whatever stands beside it.

A file is cut where an item begins beyond doubt (`define Name (`, `subscription Name from`, …), so
that one parse never sees two items of a good file. Where a parse fails, weaker marks are tried
(such a word at the beginning of a line), and the clauses of the broken item are read one by one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache, cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from language import tree
from language.diagnostics import Collector
from language.limits import ITEMS_MAX, NESTING_MAX, TEXT_LENGTH_MAX
from language.reading import syntax_errors
from language.reading.values import COLLECTOR
from language.relations import LINKS
from language.suggest import nearest
from language.tree import Span
from language.walk import beyond

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lark import Lark

_GAP = r"(?:\s|#[^\n]*(?:\n|$))+"
_NAME = r"(?:[^\W\d][\w./-]*|`[^`\n]*`)"
# What has no end on its line reaches to the end of it, so that passing over it takes linear time.
_PASSED_OVER = r'"(?:[^"\\\n]|\\.)*"?|\#[^\n]*|`[^`\n]*`?'
_OPERATOR = rf"(?:detect|within|spread|in|where|as|{'|'.join(LINKS)})\b"
_ITEM = re.compile(
    rf"(?:{_PASSED_OVER})|(?P<item>(?<![\w.\-/])(?:"
    # A type or actor may be called `event`: in `event then (` no item begins.
    rf"(?:define|event){_GAP}(?!{_OPERATOR}){_NAME}(?:{_GAP})?\("
    rf"|(?:set|region){_GAP}{_NAME}(?:{_GAP})?="
    rf"|table{_GAP}{_NAME}{_GAP}from\b"
    rf"|subscription{_GAP}{_NAME}{_GAP}(?:seq|from)\b))"
)
_WEAK_ITEM = re.compile(
    rf"(?:{_PASSED_OVER})"
    r"|(?P<item>^[ \t]*(?:define|event|set|region|table|subscription)\b(?![ \t]*[=.,)<>!+*/]))",
    re.MULTILINE,
)
_CLAUSE = re.compile(
    rf"(?:{_PASSED_OVER})"
    r"|(?P<clause>^[ \t]*(?:detect|assign|consuming|group(?=[ \t]+\w)|case|post|pre)\b)",
    re.MULTILINE,
)
TOO_DEEP = {"limit": NESTING_MAX}
_READ_ALONE = ("detect", "assign", "consuming", "group")
_NAMED = re.compile(rf"\s*(define|event|set|region|table|subscription){_GAP}({_NAME})")

_BEGUN = re.compile(rf"(\w+){_GAP}({_NAME})")


class ParsedText(NamedTuple):
    """The items of a text, as far as they could be read.

    `broken` are the names of items that could not: nobody should be told that they are unknown.
    """

    file: tree.File
    broken: frozenset[str]


class TextPiece(NamedTuple):
    """A part of the text, by offsets."""

    start: int
    end: int


@cache
def parser() -> Lark:
    """The parser, made at first need."""
    from lark import Lark

    from language.reading.items import Items

    grammar = resources.files("language").joinpath("headwater.lark").read_text("utf-8")
    # `or` and `and` bind less than all others, which are one terminal.
    closer = [each for each in LINKS if each not in ("or", "and")]
    grammar = grammar.replace("$CLOSER_LINKS", "|".join(closer))
    return Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        start=["item", "clause"],
        maybe_placeholders=False,
        transformer=cast("Any", Items()),
    )


def read(text: str, collector: Collector) -> ParsedText:
    """Read all items of `text`; errors go to `collector`."""
    if len(text) > TEXT_LENGTH_MAX:
        collector.note("HW126", Span(0, 0, 1, 1), length=len(text), limit=TEXT_LENGTH_MAX)
        return ParsedText(tree.File(()), frozenset())
    token = COLLECTOR.set(collector)
    try:
        return _Reader(text, collector).read()
    finally:
        COLLECTOR.reset(token)


class _Reader:
    def __init__(self, text: str, collector: Collector) -> None:
        self.text = text
        self.collector = collector
        self.places = syntax_errors.Places(text)
        self.items: list[tree.Item] = []
        self.broken: set[str] = set()

    def read(self) -> ParsedText:
        pieces = list(self.pieces())
        if len(pieces) > ITEMS_MAX:
            where = self.places.span(pieces[ITEMS_MAX].start, pieces[ITEMS_MAX].start)
            self.collector.note("HW127", where, limit=ITEMS_MAX)
            pieces = []  # that many cannot be read in a reasonable time: none is
        for piece in pieces:
            self.read_piece(piece)
            if self.collector.full:
                break
        span = Span(0, len(self.text), 1, 1)
        return ParsedText(tree.File(tuple(self.items), span=span), frozenset(self.broken))

    def pieces(self) -> Iterator[TextPiece]:
        """The parts of the text between the beginnings of items."""
        starts = [m.start() for m in _ITEM.finditer(self.text) if m["item"] is not None]
        if not starts or self.text[: starts[0]].strip():
            starts.insert(0, 0)
        yield from map(TextPiece, starts, [*starts[1:], len(self.text)])

    def read_piece(self, piece: TextPiece) -> None:
        """Read one item, or what there is of several where one is broken."""
        while not self.is_blank(piece) and not self.collector.full:
            failure = self.parse(piece, "item")
            if failure is None:
                return
            low = bisect_right(self.marks, piece.start)
            middle = bisect_right(self.marks, failure.span.start)
            if middle > low:
                # The error is in a later item: the part before it may well be good.
                first = TextPiece(piece.start, self.marks[middle - 1])
                if not self.is_blank(first) and (earlier := self.parse(first, "item")):
                    self.give_up(first, earlier)
                piece = TextPiece(first.end, piece.end)
                continue
            if failure.complete:
                self.parse(TextPiece(piece.start, failure.span.start), "item")
            next_start = self.marks[middle] if middle < len(self.marks) else piece.end
            next_start = min(next_start, piece.end)
            self.give_up(TextPiece(piece.start, next_start), failure)
            piece = TextPiece(next_start, piece.end)

    @cached_property
    def marks(self) -> list[int]:
        """List the offsets at which items may begin, for texts in which one is broken."""
        return [m.start("item") for m in _WEAK_ITEM.finditer(self.text) if m["item"] is not None]

    def is_blank(self, piece: TextPiece) -> bool:
        return syntax_errors.SKIP.fullmatch(self.text, piece.start, piece.end) is not None

    def parse(self, piece: TextPiece, start: str) -> syntax_errors.Failure | None:
        """Parse a piece; a good item is kept. The first error, if there is one."""
        from lark import TextSlice, UnexpectedInput

        if self.text.count("(", piece.start, piece.end) + self.text.count(
            "[", piece.start, piece.end
        ) > NESTING_MAX and (deep := syntax_errors.too_deep(self.text, piece)):
            return syntax_errors.Failure("HW128", self.places.span(deep, deep + 1), None, TOO_DEEP)
        try:
            item = parser().parse(cast("Any", TextSlice(self.text, *piece)), start=start)
        except UnexpectedInput as error:
            what = syntax_errors.Parsed(self.text, piece, start)
            return syntax_errors.classify(error, what, self.places)
        if isinstance(item, tree.Node):
            deepest = beyond(item, NESTING_MAX)
            if deepest is not None:
                return syntax_errors.Failure("HW128", deepest.span, None, TOO_DEEP)
            if start == "item":
                self.items.append(cast("tree.Item", item))
        elif start == "item":
            self.name_broken(piece)
        return None

    def name_broken(self, piece: TextPiece) -> None:
        match = _NAMED.match(self.text, piece.start, piece.end)
        if match is not None:
            self.broken.add(match[2].strip("`"))

    def name_misspelt(self, start: int) -> None:
        """Note as broken a name behind a word that is nearly that of an item."""
        match = _BEGUN.match(self.text, start)
        if match is not None and nearest(match[1].lower(), syntax_errors.ITEM_WORDS):
            self.broken.add(match[2].strip("`"))

    def give_up(self, piece: TextPiece, failure: syntax_errors.Failure) -> None:
        """Note the error of a piece, and those of its other clauses."""
        self.collector.note(failure.code, failure.span, failure.hint, **failure.words)
        if not failure.complete:
            self.name_broken(piece)
        self.name_misspelt(failure.span.start)
        marks = [
            m.start("clause")
            for m in _CLAUSE.finditer(self.text, piece.start, piece.end)
            if m["clause"] is not None
        ]
        for clause in map(TextPiece, marks, [*marks[1:], piece.end]):
            word = self.text[clause.start : clause.end].lstrip().split(maxsplit=1)[0]
            if self.collector.full:
                break
            if clause.start > failure.span.start and word in _READ_ALONE:
                inner = self.parse(clause, "clause")
                if inner is not None:
                    self.collector.note(inner.code, inner.span, inner.hint, **inner.words)
