"""Random trees of everything that can be written, for the property tests."""

from hypothesis import strategies as st

from language import tree
from language.lexicon import RESERVED
from language.limits import WINDOWS_AT_ONCE_MAX
from language.relations import CONTEXTS, LINKS, RELATIONS, WITH_GAP

DAY_MS = 86_400_000

plain_names = st.sampled_from(
    ["A", "B", "Temp", "x", "val", "set", "event", "region", "and", "then", "detect", "s", "m",
     "max", "key", "within", "naïve", "_1"]
)  # fmt: skip
quoted_names = st.sampled_from(["soil-moisture", "two words", "9lives", *sorted(RESERVED)])
attributes = plain_names | quoted_names
owners = plain_names | quoted_names.filter(lambda name: name != "group")
places = st.sampled_from(["User1", "station-team", "a.b/c-d", "nearest", "to", "for", "7 up"])
milliseconds = st.integers(1, 100 * DAY_MS) | st.sampled_from(
    [1, 250, 1_000, 60_000, 300_000, 3_600_000, DAY_MS, 7 * DAY_MS]
)
zones = st.sampled_from(["Europe/Zurich", "UTC", "America/Port-au-Prince", "Etc/GMT+5"])
metres = st.floats(1e-3, 1e6) | st.sampled_from([50.0, 1_000.0, 10_000.0])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def constants():
    """Any constant."""
    return st.one_of(
        st.integers(1 - 2**63, 2**63 - 1).map(tree.Constant),
        st.floats(allow_nan=False, allow_infinity=False).map(tree.Constant),
        texts.map(tree.Constant),
        st.booleans().map(tree.Constant),
        st.integers(-10 * DAY_MS, 10 * DAY_MS).map(lambda ms: tree.Constant(ms, "ms")),
        metres.map(lambda m: tree.Constant(m, "m")),
    )


set_literals = st.lists(constants(), max_size=4).map(lambda m: tree.SetLiteral(tuple(m)))


@st.composite
def regions(draw):
    """Any region."""
    shape = draw(st.sampled_from(["circle", "box", "polygon", "path"]))
    if shape == "path":
        return tree.RegionLiteral("path", path=draw(st.sampled_from(["a", "building-a/floor 1"])))
    metric = draw(st.booleans())
    low, high = (-1e6, 1e6) if metric else (-90.0, 90.0)
    number = st.floats(low, high)
    if shape == "circle":
        centre = (draw(number), draw(number))
        return tree.RegionLiteral("circle", (*centre, draw(metres)), metric=metric)
    if shape == "box":
        x = sorted([draw(number), draw(number)])
        y = sorted([draw(number), draw(number)])
        return tree.RegionLiteral("box", (x[0], y[0], x[1], y[1]), metric=metric)
    count = draw(st.integers(3, 5))
    numbers = tuple(draw(number) for _ in range(2 * count))
    return tree.RegionLiteral("polygon", numbers, metric=metric)


containers = set_literals | regions() | owners.map(tree.Name)
leaves = st.one_of(
    constants(),
    attributes.map(tree.Name),
    st.builds(tree.Attribute, owners | st.just("group"), attributes),
)


def _expressions(inner):
    sign = inner.filter(
        lambda e: not isinstance(e, tree.Constant) or isinstance(e.value, str | bool)
    )
    operators = st.lists(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), min_size=1, max_size=3)
    return st.one_of(
        st.builds(tree.Arithmetic, st.sampled_from("+-*/"), inner, inner),
        sign.map(lambda e: tree.Unary("-", e)),
        inner.map(lambda e: tree.Unary("not", e)),
        st.builds(tree.Membership, inner, containers),
        operators.flatmap(
            lambda signs: st.tuples(*[inner] * (len(signs) + 1)).map(
                lambda operands: tree.Comparison(operands, tuple(signs))
            )
        ),
        st.builds(logical, st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)),
        st.builds(tree.Call, owners, st.lists(inner, max_size=3).map(tuple)),
        st.builds(tree.Lookup, owners, inner, attributes),
    )


def logical(operator, operands):
    """`and` or `or`, flattened as the parser does."""
    flat = []
    for operand in operands:
        if isinstance(operand, tree.Logical) and operand.operator == operator:
            flat.extend(operand.operands)
        else:
            flat.append(operand)
    return tree.Logical(operator, tuple(flat))


expressions = st.recursive(leaves, _expressions, max_leaves=8)


@st.composite
def bounds(draw, open_ends=True):
    """A bound with at least one end."""
    low = draw(st.integers(0, 10_000) | st.none()) if open_ends else draw(st.integers(0, 10_000))
    high = None if low is not None and draw(st.booleans()) else draw(st.integers(low or 0, 20_000))
    return tree.Bound(low, high)


@st.composite
def links(draw, inner):
    """An operator with the options that it may have."""
    operator = draw(st.sampled_from(LINKS))
    bound = None
    if operator in WITH_GAP:
        bound = draw(st.none() | bounds())
    elif operator == "without":
        bound = draw(st.none() | milliseconds.map(lambda ms: tree.Bound(None, ms)))
    context = None
    if operator in RELATIONS:
        allowed = [name for name, each in CONTEXTS.items() if operator in each.relations]
        context = draw(st.none() | st.sampled_from(allowed))
    contiguous = operator in WITH_GAP and draw(st.booleans())
    return tree.Link(operator, draw(inner), draw(inner), bound, context, contiguous)


@st.composite
def repeats(draw, inner):
    """A list."""
    kind = draw(st.sampled_from(["+", "*", "count", "run"]))
    return tree.Repeat(
        kind,
        draw(inner),
        count=draw(st.integers(1, 9)) if kind == "count" else None,
        gap=draw(bounds()) if kind == "run" else None,
        alias=draw(st.none() | owners),
    )


atoms = st.builds(
    tree.Atom, owners, st.lists(expressions, max_size=2).map(tuple), st.none() | owners
)
kept = st.sampled_from(["last", "first", "outer", "distinct"])


def _patterns(inner):
    return st.one_of(
        links(inner),
        links(inner),
        repeats(inner),
        st.builds(tree.Absent, inner, milliseconds),
        st.builds(tree.Select, kept, inner),
        st.builds(tree.Select, st.just("nth"), inner, k=st.integers(1, 9)),
        st.builds(
            tree.Select,
            st.just("distinct"),
            inner,
            keys=st.lists(attributes, min_size=1, max_size=2, unique=True).map(tuple),
        ),
        st.builds(tree.Within, inner, milliseconds, st.none() | owners),
        st.builds(tree.Spread, inner, metres),
        st.builds(tree.InRegion, inner, regions() | owners.map(tree.Name)),
        st.builds(tree.Where, inner, expressions),
    )


patterns = st.recursive(atoms, _patterns, max_leaves=6)
detects = st.builds(
    tree.Detect,
    patterns,
    st.sampled_from(list(CONTEXTS)),
    st.booleans(),
    st.sampled_from(["all", "one", "collect"]),
)


def names(strategy, low=0):
    """Different names."""
    return st.lists(strategy, min_size=low, max_size=3, unique=True).map(tuple)


def assignments(low=0):
    """Assignments to different names."""
    return st.lists(
        st.builds(tree.Assignment, attributes, expressions),
        min_size=low,
        max_size=3,
        unique_by=lambda one: one.name,
    ).map(tuple)


def cases(numbers):
    """A case."""
    return st.builds(tree.Case, numbers, detects, assignments(), names(owners), names(attributes))


windows = st.one_of(
    st.builds(tree.Window, st.booleans(), every_ms=milliseconds),
    st.tuples(milliseconds, milliseconds)
    .filter(lambda lengths: lengths[1] <= lengths[0] * WINDOWS_AT_ONCE_MAX)
    .map(lambda lengths: tree.Window(True, every_ms=lengths[0], range_ms=lengths[1])),
    st.builds(tree.Window, st.just(True), range_ms=milliseconds),
    st.builds(
        tree.Window,
        st.just(True),
        session_ms=milliseconds,
        session_max_ms=st.none() | milliseconds,
    ),
    st.builds(tree.Window, st.booleans(), every_days=st.integers(1, 9), zone=zones),
)


@st.composite
def definitions(draw):
    """A definition."""
    window = draw(st.none() | windows)
    aggregated = window is not None and window.aggregated
    post = draw(st.builds(tree.Post, assignments(1), names(attributes))) if aggregated else None
    numbers = draw(st.lists(st.integers(0, 99), min_size=1, max_size=3, unique=True))
    return tree.Definition(
        draw(owners),
        draw(names(attributes)),
        tuple(draw(cases(st.just(number))) for number in numbers),
        window,
        draw(st.booleans()),
        post,
    )


actors = st.builds(tree.Actor, places, st.none() | attributes, st.booleans())


@st.composite
def subscriptions(draw):
    """A subscription."""
    ending = draw(st.sampled_from(["none", "for", "until"]))
    return tree.Subscription(
        draw(places),
        draw(st.integers(0, 99)),
        draw(places),
        draw(actors),
        draw(cases(st.just(0))),
        for_ms=draw(milliseconds) if ending == "for" else None,
        until_ms=draw(st.integers(0, 4 * 10**12)) if ending == "until" else None,
        at_most=draw(st.none() | st.builds(tree.Thinning, st.integers(1, 99), milliseconds)),
        wait_ms=draw(st.none() | milliseconds),
    )


event_declarations = st.builds(
    tree.EventDeclaration,
    owners,
    st.lists(
        st.tuples(attributes, st.sampled_from(tree.AttributeType.__args__)),
        max_size=3,
        unique_by=lambda pair: pair[0],
    ).map(tuple),
    st.none() | st.integers(0, 10**9),
)
items = st.one_of(
    event_declarations,
    st.builds(tree.SetDeclaration, owners, set_literals),
    st.builds(tree.RegionDeclaration, owners, regions()),
    st.builds(tree.TableDeclaration, owners, texts, attributes),
    definitions(),
    subscriptions(),
)
files = st.lists(items, max_size=3).map(lambda found: tree.File(tuple(found)))
