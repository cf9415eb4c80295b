"""The actions that make declarations, definitions and subscriptions.

Owns the order and number of clauses. Must not know what names stand for. Invariant: an item that
lacks its essence (no `detect`, say) is given up as None after its error was noted.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from language import tree
from language.lexicon import ATTRIBUTE_TYPES, RESERVED_KEYS
from language.limits import LIST_LENGTH_MAX, NAME_LENGTH_MAX
from language.reading.options import NONE, Options
from language.reading.patterns import Patterns
from language.reading.values import (
    COLLECTOR,
    Marks,
    attribute_name,
    between,
    bounded,
    duration_ms,
    integer,
    marks_of,
    name_of,
    note,
    owner_name,
    span_of,
    text,
    unique_names,
)
from language.reading.windows import DAY_MS, WindowActions
from language.relations import UNRESTRICTED

if TYPE_CHECKING:
    from lark import Token


class Clause(NamedTuple):
    """A clause of a case: its kind, the word it begins with, and what it says."""

    kind: str
    word: Token
    value: Any
    marks: Marks = ()


class Header(NamedTuple):
    """The attributes in a definition's header, and where they stand."""

    names: tuple[str, ...]
    marks: Marks


class SubscriptionEnd(NamedTuple):
    """The end of a subscription: the field, its value, and the word that says so."""

    key: str
    value: int
    word: Token


class CaseParts(NamedTuple):
    """`case n:` and its clauses."""

    word: Token
    number: Token
    clauses: list[Clause]


ORDER = ("detect", "assign", "consuming", "group by", "at most", "wait")
OF_SUBSCRIPTIONS = ("at most", "wait")


def _kinds_of(
    attributes: list[tuple[Token, Token]],
) -> tuple[tuple[str, tree.AttributeType], ...]:
    """Return the attributes of an event, each once, with their types."""
    unique_names([token for token, _ in attributes], "the event")
    kinds: dict[str, tree.AttributeType] = {}
    for token, kind in attributes[:LIST_LENGTH_MAX]:
        attribute = attribute_name(token)
        if attribute in RESERVED_KEYS:
            note("HW211", span_of(token), name=name_of(token))
        if str(kind) not in ATTRIBUTE_TYPES:
            COLLECTOR.get().misspelt("HW216", span_of(kind), str(kind), ATTRIBUTE_TYPES)
            # So that what uses it has no errors of its own.
            kinds.setdefault(attribute, cast("tree.AttributeType", "any"))
            continue
        kinds.setdefault(attribute, cast("tree.AttributeType", str(kind)))
    return tuple(kinds.items())


class Items(Patterns, WindowActions):
    """Actions of the sections `declarations` and `definitions and subscriptions`."""

    def attribute(self, children: list[Any]) -> tuple[Token, Token]:
        return children[0], children[1]

    def event_declaration(self, children: list[Any]) -> tree.EventDeclaration:
        word, name, *parts = children
        attributes = [part for part in parts if isinstance(part, tuple)]
        close, lasts_ms = parts[-1], None
        if isinstance(close, tree.Constant):
            lasts_ms = duration_ms(close, zero=True)
        marks = (
            ("name", span_of(name)),
            *marks_of([token for token, _ in attributes], "attribute"),
        )
        kinds, span = _kinds_of(attributes), between(word, close)
        return tree.EventDeclaration(owner_name(name), kinds, lasts_ms, span=span, marks=marks)

    def set_declaration(self, children: list[Any]) -> tree.SetDeclaration:
        word, name, _, members = children
        span, marks = between(word, members), (("name", span_of(name)),)
        return tree.SetDeclaration(name_of(name), members, span=span, marks=marks)

    def region_declaration(self, children: list[Any]) -> tree.RegionDeclaration:
        word, name, _, region = children
        span, marks = between(word, region), (("name", span_of(name)),)
        return tree.RegionDeclaration(name_of(name), region, span=span, marks=marks)

    def table_declaration(self, children: list[Any]) -> tree.TableDeclaration:
        word, name, _, file, _, key = children
        span = between(word, key)
        marks = (("name", span_of(name)), ("file", span_of(file)))
        return tree.TableDeclaration(
            name_of(name), text(file), name_of(key), span=span, marks=marks
        )

    # --- clauses ---

    def detect(self, children: list[Any]) -> Clause:
        word, *others = children
        options: Options = others[0] if len(others) == 2 else NONE
        pattern: tree.Pattern = others[-1]
        _check_detect_options(options)
        report: str = "all"
        if "one" in options.words and "collect" in options.words:
            note("HW424", options.words["collect"], first="one", second="collect")
        elif "one" in options.words or "collect" in options.words:
            report = "one" if "one" in options.words else "collect"
        detect = tree.Detect(
            pattern,
            options.context or UNRESTRICTED.name,
            "maybe drop" in options.words,
            cast("Any", report),
            span=between(word, pattern),
            marks=tuple(options.places.items()),
        )
        return Clause("detect", word, detect)

    def assignment(self, children: list[Any]) -> tree.Assignment:
        token, _, value = children
        return tree.Assignment(attribute_name(token), value, span=between(token, value))

    def assignments(self, children: list[Any]) -> tuple[tree.Assignment, ...]:
        return _assigned(children)

    def assign(self, children: list[Any]) -> Clause:
        return Clause("assign", children[0], _assigned(children[1:]))

    def consuming(self, children: list[Any]) -> Clause:
        word, *tokens = children
        names = unique_names(tokens, "consuming")
        return Clause("consuming", word, names, marks_of(tokens, "consuming"))

    def group_by(self, children: list[Any]) -> Clause:
        word, _, *tokens = children
        names = unique_names(tokens, "group by", attributes=True)
        return Clause("group by", word, names, marks_of(tokens, "group by"))

    def at_most(self, children: list[Any]) -> Clause:
        word, _, token, _, duration = children
        count = integer(token)
        if count < 1:
            note("HW411", span_of(token))
            count = 1
        span = between(word, duration)
        return Clause("at most", word, tree.Thinning(count, duration_ms(duration), span=span))

    def wait(self, children: list[Any]) -> Clause:
        return Clause("wait", children[0], duration_ms(children[1]))

    def case(self, children: list[Any]) -> CaseParts:
        return CaseParts(children[0], children[1], children[2:])

    # --- definitions ---

    def header(self, children: list[Any]) -> Header:
        tokens = children[:-1]
        return Header(
            unique_names(tokens, "the header", attributes=True), marks_of(tokens, "header")
        )

    def post(self, children: list[Any]) -> tree.Post:
        word, where, assigned, *others = children
        grouping: Clause | None = others[0] if others else None
        group_by = grouping.value if grouping else ()
        marks = (("group by", span_of(grouping.word)), *grouping.marks) if grouping else ()
        words = (("post", span_of(word)), ("where", span_of(where)))
        return tree.Post(assigned, group_by, span=between(word, assigned[-1]), marks=words + marks)

    def definition(self, children: list[Any]) -> tree.Definition | None:
        word, token, header, *others = children
        window = next((part for part in others if isinstance(part, tree.Window)), None)
        post = next((part for part in others if isinstance(part, tree.Post)), None)
        clauses = [part for part in others if isinstance(part, Clause)]
        numbered = [part for part in others if isinstance(part, CaseParts)]
        pre = next((part for part in others if getattr(part, "type", None) == "PRE"), None)
        name = owner_name(token)
        if numbered and clauses:
            note("HW123", span_of(clauses[0].word), clause=clauses[0].kind)
        cases = _cases(numbered) if numbered else [_case(0, clauses, token)]
        if any(case is None for case in cases):
            return None
        marks = (("name", span_of(token)), *header.marks)
        marks += () if pre is None else (("pre", span_of(pre)),)
        return tree.Definition(
            name,
            header.names,
            cast("Any", tuple(cases)),
            window,
            pre is not None,
            post,
            span=between(word, token),
            marks=marks,
        )

    def actor(self, children: list[Any]) -> tree.Actor:
        nearest = children[0].type == "NEAREST"
        token, *others = children[1:] if nearest else children
        key = attribute_name(others[-1]) if others else None
        span = between(children[0], others[-1] if others else token)
        marks = (("group", span_of(others[-1])),) if others else ()
        return tree.Actor(_place_name(token), key, nearest, span=span, marks=marks)

    def ending(self, children: list[Any]) -> SubscriptionEnd:
        word, time = children
        if word.type == "FOR":
            return SubscriptionEnd("for_ms", duration_ms(time), word)
        return SubscriptionEnd("until_ms", _instant_ms(time), word)

    def subscription(self, children: list[Any]) -> tree.Subscription | None:
        word, name, *others = children
        seq = integer(others[1]) if others[0].type == "SEQ" else 1
        _, subscriber, _, actor, *others = others[2:] if others[0].type == "SEQ" else others
        endings = [part for part in others if isinstance(part, SubscriptionEnd)]
        clauses = [part for part in others if isinstance(part, Clause)]
        case = _case(0, clauses, name, subscription=True)
        if case is None:
            return None
        marks: Marks = (("name", span_of(name)), ("subscriber", span_of(subscriber)))
        marks += tuple(("ending", span_of(ending.word)) for ending in endings)
        own = {clause.kind: clause.value for clause in reversed(clauses)}
        return tree.Subscription(
            _place_name(name),
            seq,
            _place_name(subscriber),
            actor,
            case,
            at_most=own.get("at most"),
            wait_ms=own.get("wait"),
            span=between(word, name),
            marks=marks,
            **cast("Any", {ending.key: ending.value for ending in endings}),
        )


def _assigned(found: list[tree.Assignment]) -> tuple[tree.Assignment, ...]:
    kept: dict[str, tree.Assignment] = {}
    for assignment in bounded(found):
        if assignment.name in kept:
            note("HW215", assignment.span, name=assignment.name, what="assign")
        else:
            kept[assignment.name] = assignment
    return tuple(kept.values())


def _place_name(token: Token) -> str:
    """The name of a subscription, subscriber or actor."""
    if token[0] == "`":
        return name_of(token)
    if len(token) > NAME_LENGTH_MAX:
        note("HW107", span_of(token), name=str(token), limit=NAME_LENGTH_MAX)
    return str(token)


def _instant_ms(token: Token) -> int:
    """Milliseconds since the epoch of an ISO 8601 instant that names its offset from UTC."""
    try:
        instant = datetime.fromisoformat(text(token))
    except ValueError:
        note("HW124", span_of(token))
        return 0
    if instant.tzinfo is None:
        note("HW124", span_of(token))
        return 0
    since = instant - datetime(1970, 1, 1, tzinfo=UTC)
    return since.days * DAY_MS + since.seconds * 1_000 + since.microseconds // 1_000


def _check_detect_options(options: Options) -> None:
    if "next" in options.words:
        note("HW425", options.words["next"], option="`next`")
    if "bound" in options.places:
        note("HW425", options.place("bound"), option="bound")


def _cases(numbered: list[CaseParts]) -> list[tree.Case | None]:
    numbers: set[int] = set()
    cases = []
    bounded([part.word for part in numbered])
    for part in numbered[:LIST_LENGTH_MAX]:
        number = integer(part.number)
        if number in numbers:
            note("HW215", span_of(part.number), name=number, what="the cases")
        numbers.add(number)
        cases.append(_case(number, part.clauses, part.word))
    return cases


def _case(
    number: int, clauses: list[Clause], owner: Token, *, subscription: bool = False
) -> tree.Case | None:
    by_kind: dict[str, Clause] = {}
    reached = 0
    for clause in clauses:
        rank = ORDER.index(clause.kind)
        if clause.kind in OF_SUBSCRIPTIONS and not subscription:
            note("HW125", span_of(clause.word), clause=clause.kind)
        elif clause.kind in by_kind:
            note("HW109", span_of(clause.word), clause=clause.kind)
            continue
        elif rank < reached:
            note("HW110", span_of(clause.word), clause=clause.kind, order=", ".join(ORDER))
        reached = max(reached, rank)
        by_kind[clause.kind] = clause
    if "detect" not in by_kind:
        note("HW108", span_of(owner), name=str(owner))
        return None

    def value(kind: str) -> Any:
        return by_kind[kind].value if kind in by_kind else ()

    detect: tree.Detect = value("detect")
    marks: Marks = (("owner", span_of(owner)),)
    for clause in by_kind.values():
        marks += ((clause.kind, span_of(clause.word)), *clause.marks)
    return tree.Case(
        number,
        detect,
        value("assign"),
        value("consuming"),
        value("group by"),
        span=detect.span,
        marks=marks,
    )
