"""Items as lines of text: declarations, definitions and subscriptions.

A line knows where in the source its parts stood, so that the formatter can put comments back.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from language import tree
from language.printing.expressions import (
    constant_text,
    duration_text,
    expression_text,
    name_text,
    place_text,
    region_text,
    string_text,
)
from language.printing.patterns import detect_text, pattern_parts

if TYPE_CHECKING:
    from collections.abc import Iterable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LinePart:
    """A piece of a line that may stand on its own line; `offset` is its place in the source."""

    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """A line: its parts are joined by blanks, or broken with the later ones indented by `hang`.

    A broken line with `fill` takes as many parts as it can hold, else each part has its own.
    """

    indent: int
    parts: tuple[LinePart, ...]
    hang: int = 2
    fill: bool = False

    @property
    def text(self) -> str:
        """The whole line, unbroken."""
        return " " * self.indent + " ".join(part.text for part in self.parts)


def item_text(item: tree.Item) -> str:
    """An item in canonical form, its lines unbroken."""
    return "\n".join(line.text for line in item_lines(item))


def item_lines(item: tree.Item) -> list[PrintedLine]:
    """The lines of an item."""
    if isinstance(item, tree.Definition):
        return list(_definition(item))
    if isinstance(item, tree.Subscription):
        return list(_subscription(item))
    start = item.span.start
    if isinstance(item, tree.EventDeclaration):
        return [_event(item)]
    if isinstance(item, tree.RegionDeclaration):
        text = f"region {name_text(item.name)} = {region_text(item.region)}"
        return [_simple(0, text, start)]
    if isinstance(item, tree.TableDeclaration):
        file = string_text(item.file)
        text = f"table {name_text(item.name)} from {file} key {name_text(item.key)}"
        return [_simple(0, text, start)]
    return [_set(item)]


def _simple(indent: int, text: str, offset: int) -> PrintedLine:
    return PrintedLine(indent, (LinePart(text, offset),))


def _event(item: tree.EventDeclaration) -> PrintedLine:
    texts = [f"{name_text(name)}: {kind}" for name, kind in item.attributes]
    places = [item.place(f"attribute {name}").start for name, _ in item.attributes]
    close = ")" if item.lasts_ms is None else f") lasts at most {duration_text(item.lasts_ms)}"
    return _bracketed(
        f"event {name_text(item.name)}(", texts, close, [item.span.start, *places[1:]]
    )


def _bracketed(head: str, texts: list[str], close: str, places: list[int]) -> PrintedLine:
    """A line of texts between brackets, a part each."""
    if not texts:
        return _simple(0, head + close, places[0])
    ended = [text + "," for text in texts[:-1]] + [texts[-1] + close]
    parts = map(LinePart, [head + ended[0], *ended[1:]], places)
    return PrintedLine(0, tuple(parts), hang=len(head), fill=True)


def _set(item: tree.SetDeclaration) -> PrintedLine:
    members = item.members.members
    places = [item.span.start, *(member.span.start for member in members[1:])]
    head = f"set {name_text(item.name)} = {{"
    return _bracketed(head, list(map(constant_text, members)), "}", places)


def _assigned(
    word: str, assigned: tuple[tree.Assignment, ...], indent: int, offset: int
) -> PrintedLine:
    texts = [f"{name_text(a.name)} = {expression_text(a.value)}," for a in assigned]
    texts[-1] = texts[-1].removesuffix(",")
    parts = [LinePart(f"{word} {texts[0]}", offset)]
    parts += [LinePart(t, a.span.start) for t, a in zip(texts[1:], assigned[1:], strict=True)]
    return PrintedLine(indent, tuple(parts), hang=len(word) + 1)


def _listed(word: str, names: tuple[str, ...], indent: int, offset: int) -> PrintedLine:
    return _simple(indent, f"{word} {', '.join(map(name_text, names))}", offset)


def _case(case: tree.Case, indent: int) -> Iterable[PrintedLine]:
    word = detect_text(case.detect)
    (first, _), *others = pattern_parts(case.detect.pattern)
    start = case.detect.span.start
    parts = (
        LinePart(f"{word} {first}", start),
        *(LinePart(text, offset) for text, offset in others),
    )
    yield PrintedLine(indent, parts, hang=3)
    if case.assign:
        yield _assigned("assign", case.assign, indent, case.place("assign").start)
    if case.consuming:
        yield _listed("consuming", case.consuming, indent, case.place("consuming").start)
    if case.group_by:
        yield _listed("group by", case.group_by, indent, case.place("group by").start)


def _header(definition: tree.Definition) -> str:
    names = ", ".join(map(name_text, definition.attributes))
    text = f"define {name_text(definition.name)}({names})"
    window = definition.window
    if window is None:
        return text
    if window.aggregated:
        text += " aggr"
    if window.every_days is not None:
        days = duration_text(window.every_days * 86_400_000)
        text += f" every {days} in {string_text(window.zone or '')}"
    return " ".join((text, *window_lengths(window)))


def window_lengths(window: tree.Window) -> list[str]:
    """The lengths of a window, each with its word; those in days of a zone are not among them."""
    lengths = {word: getattr(window, part.field) for word, part in tree.WINDOW_PARTS.items()}
    return [f"{word} {duration_text(ms)}" for word, ms in lengths.items() if ms is not None]


def _definition(item: tree.Definition) -> Iterable[PrintedLine]:
    yield _simple(0, _header(item), item.span.start)
    if item.pre:
        yield _simple(0, "pre", item.place("pre").start)
    numbered = len(item.cases) > 1 or item.cases[0].number != 0
    for case in item.cases:
        if numbered:
            yield _simple(0, f"case {case.number}:", case.place("owner").start)
        yield from _case(case, 2)
    if item.post is not None:
        post = item.post
        yield _simple(0, "post", post.span.start)
        yield _assigned("where", post.assign, 2, post.place("where").start)
        if post.group_by:
            yield _listed("group by", post.group_by, 2, post.place("group by").start)


def _subscription(item: tree.Subscription) -> Iterable[PrintedLine]:
    actor = place_text(item.actor.name)
    if item.actor.nearest:
        actor = f"nearest {actor}"
    if item.actor.group_key is not None:
        actor += f" of group.{name_text(item.actor.group_key)}"
    head = f"subscription {place_text(item.name)} seq {item.seq}"
    text = f"{head} from {place_text(item.subscriber)} to {actor}"
    if item.for_ms is not None:
        text += f" for {duration_text(item.for_ms)}"
    if item.until_ms is not None:
        text += f" until {string_text(instant_text(item.until_ms))}"
    yield _simple(0, text, item.span.start)
    yield from _case(item.case, 2)
    if item.at_most is not None:
        thinned = f"at most {item.at_most.count} per {duration_text(item.at_most.per_ms)}"
        yield _simple(2, thinned, item.at_most.span.start)
    if item.wait_ms is not None:
        yield _simple(2, f"wait {duration_text(item.wait_ms)}", item.case.place("wait").start)


def instant_text(instant_ms: int) -> str:
    """An instant as ISO 8601 text in UTC."""
    whole, milliseconds = divmod(instant_ms, 1_000)
    text = (EPOCH + timedelta(seconds=whole)).strftime("%m-%dT%H:%M:%S")
    year = (EPOCH + timedelta(seconds=whole)).year
    return f"{year:04}-{text}.{milliseconds:03}Z" if milliseconds else f"{year:04}-{text}Z"
