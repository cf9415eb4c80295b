"""The formatter: a text laid out canonically, its comments kept.

Owns where comments and blank lines go. Must not know what items mean. Invariant: formatting what
was formatted changes nothing, and the tree stays the same.

A comment on a line of its own stands before the part of the text that followed it; one behind code
stays behind that part. A line is broken into its parts where it is too long or a comment asks it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from language import tree
from language.printing.items import PrintedLine, item_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 100
_TOKEN = re.compile(
    r'(?P<code>"(?:[^"\\\n]|\\.)*"|`[^`\n]*`|[^\s#"`\ufeff]+)|(?P<comment>\#[^\n]*)'
)
_BLANK_LINE = re.compile(r"\n[^\S\n]*\r?\n")


@dataclass(slots=True)
class Comment:
    """A comment; `own` tells that nothing but blanks stands before it on its line."""

    text: str
    start: int
    end: int
    column: int
    own: bool


@dataclass(slots=True)
class Block:
    """An item or a comment between items, with its extent in the source and its output."""

    start: int
    end: int
    item: tree.Item | None = None
    lines: list[str] = field(default_factory=list)


def format_items(text: str, items: Sequence[tree.Item]) -> str:
    """The text of `items`, which were read from `text`, with its comments."""
    comments, ends = _scan(text, [item.span.start for item in items])
    blocks: list[Block] = []
    limits = [item.span.start for item in items[1:]]
    limits.append(len(text) + 1)
    for item, end, limit in zip(items, ends, limits, strict=False):
        while comments and comments[0].start < item.span.start:
            blocks.append(_between(comments.pop(0)))
        inner = [c for c in comments if c.start < limit and _inside(c, end, text)]
        del comments[: len(inner)]
        block = Block(item.span.start, max(end, inner[-1].end) if inner else end, item)
        block.lines = _laid_out(item, inner)
        blocks.append(block)
        while comments and comments[0].start < limit and _is_tail(comments[0], block, text):
            tail = comments.pop(0)
            block.lines.append(f"  {tail.text}")
            block.end = tail.end
    blocks.extend(map(_between, comments))
    return _joined(text, [block for block in blocks if block.lines])


def _scan(text: str, starts: list[int]) -> tuple[list[Comment], list[int]]:
    """All comments, and where the code of each item ends."""
    comments: list[Comment] = []
    ends = list(starts)
    index = -1
    for match in _TOKEN.finditer(text):
        if match["comment"] is None:
            while index + 1 < len(starts) and match.start() >= starts[index + 1]:
                index += 1
            if index >= 0:
                ends[index] = match.end()
            continue
        line_start = text.rfind("\n", 0, match.start()) + 1
        own = not text[line_start : match.start()].strip("\ufeff \t\r\f\v")
        column = match.start() - line_start + 1
        shown = "".join(c for c in match[0].rstrip() if c.isprintable() or c == "\t")
        comments.append(Comment(shown, match.start(), match.end(), column, own))
    return comments, ends


def _inside(comment: Comment, end: int, text: str) -> bool:
    """Tell whether the comment stands before the item's end, or behind it on its last line."""
    return comment.start < end or (not comment.own and "\n" not in text[end : comment.start])


def _is_tail(comment: Comment, block: Block, text: str) -> bool:
    """Tell whether a comment behind an item belongs to it: indented, with no blank line between."""
    assert block.item is not None
    gap = text[block.end : comment.start]
    return comment.column > block.item.span.column and _BLANK_LINE.search(gap) is None


def _between(comment: Comment) -> Block:
    """A block of one comment."""
    return Block(comment.start, comment.end, None, [comment.text])


def _joined(text: str, blocks: list[Block]) -> str:
    output: list[str] = []
    for index, block in enumerate(blocks):
        if index and _apart(blocks[index - 1], block, text):
            output.append("")
        output.extend(block.lines)
    return "".join(line + "\n" for line in output)


def _apart(before: Block, after: Block, text: str) -> bool:
    """Tell whether a blank line stands between two blocks."""
    if _BLANK_LINE.search(text[before.end : after.start]):
        return True
    long_items = tree.Definition | tree.Subscription
    if before.item is None:
        return False
    return isinstance(before.item, long_items) or isinstance(after.item, long_items)


# --- one item ---------------------------------------------------------------------------------


def _laid_out(item: tree.Item, comments: list[Comment]) -> list[str]:
    """The lines of an item with the comments that stand in it."""
    lines = item_lines(item)
    parts = [part for line in lines for part in line.parts]
    before: dict[int, list[str]] = {}
    behind: dict[int, list[str]] = {}
    tail: list[str] = []
    for comment in comments:
        following = next((n for n, part in enumerate(parts) if part.offset > comment.start), None)
        if not comment.own:
            index = len(parts) if following is None else following
            behind.setdefault(max(0, index - 1), []).append(comment.text)
        elif following is None:
            tail.append(f"  {comment.text}")
        else:
            before.setdefault(following, []).append(comment.text)
    output: list[str] = []
    first = 0
    for line in lines:
        output.extend(_line(line, first, before, behind))
        first += len(line.parts)
    return output + tail


def _line(
    line: PrintedLine, first: int, before: dict[int, list[str]], behind: dict[int, list[str]]
) -> list[str]:
    """A line, broken into its parts if it is too long or a comment stands in it."""
    numbers = range(first, first + len(line.parts))
    last = numbers[-1]
    asked = any(n in before for n in numbers[1:]) or any(n in behind for n in numbers[:-1])
    margin = " " * line.indent
    output = [margin + comment for comment in before.get(first, [])]
    if not asked and (len(line.text) <= WIDTH or len(line.parts) == 1):
        return [*output, _commented(line.text, behind.get(last, []))]
    current = margin + line.parts[0].text
    hang = margin + " " * line.hang
    for number, part in zip(numbers[1:], line.parts[1:], strict=True):
        joins = line.fill and number - 1 not in behind and number not in before
        if joins and len(current) + 1 + len(part.text) <= WIDTH:
            current += f" {part.text}"
            continue
        output.append(_commented(current, behind.get(number - 1, [])))
        output.extend(hang + comment for comment in before.get(number, []))
        current = hang + part.text
    output.append(_commented(current, behind.get(last, [])))
    return output


def _commented(text: str, comments: list[str]) -> str:
    return "  ".join([text, " ".join(comments)]) if comments else text
