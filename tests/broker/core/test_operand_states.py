"""What goes on of a pattern that was changed: held to a definition of it on the tree of operands.

Patterns are trees of atoms under `and` and `then`, every one unrestricted. The oracle tries all
choices of events for the new tree. An operand that is not the same as before, or of which nothing
was held in that place, counts only where one of its events came behind the change.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tests.broker.core.machine import NOW, Machine

TYPES = "".join(f"event {name}(n: int)\n" for name in "ABCD")
LINKS = ("and", "then", "then[..3 s]", "and[..2 s]")


@dataclass(frozen=True)
class Atom:
    """An atom: its type, its alias, and the least `n` that it takes."""

    kind: str
    alias: str
    least: int

    @property
    def text(self):
        return f"{self.kind}(n >= {self.least}) as {self.alias}"

    @property
    def atoms(self):
        return (self,)


@dataclass(frozen=True)
class Link:
    """Two operands under an operator; `least` is asked of the sum of all of their `n`."""

    operator: str
    left: Atom | Link
    right: Atom | Link
    least: int

    @property
    def text(self):
        summed = " + ".join(f"{atom.alias}.n" for atom in self.atoms)
        return (
            f"({self.left.text} {self.operator} {self.right.text} where {summed} >= {self.least})"
        )

    @property
    def atoms(self):
        return (*self.left.atoms, *self.right.atoms)


@st.composite
def trees(draw, aliases=("p", "q", "r")):
    """Draw a tree over these aliases, in this order."""
    if len(aliases) == 1:
        return Atom(draw(st.sampled_from("ABCD")), aliases[0], draw(st.integers(0, 1)))
    at = draw(st.integers(1, len(aliases) - 1))
    left, right = draw(trees(aliases[:at])), draw(trees(aliases[at:]))
    return Link(draw(st.sampled_from(LINKS)), left, right, draw(st.integers(0, 3)))


@st.composite
def changed(draw, tree, fresh=("x", "y")):
    """Draw another tree: one operand is another, or there is one more, or one less."""
    what = draw(st.sampled_from(["same", "deeper", "deeper", "asks", "other", "more", "less"]))
    if what == "same":
        return tree
    if what == "more":
        other = draw(trees(fresh))
        sides = (tree, other) if draw(st.booleans()) else (other, tree)
        return Link(draw(st.sampled_from(LINKS)), *sides, draw(st.integers(0, 3)))
    if what == "other" or isinstance(tree, Atom):
        return draw(trees(fresh))
    if what == "less":
        return draw(st.sampled_from([tree.left, tree.right]))
    if what == "asks":
        return Link(tree.operator, tree.left, tree.right, draw(st.integers(0, 3)))
    if draw(st.booleans()):
        return Link(tree.operator, draw(changed(tree.left, fresh)), tree.right, tree.least)
    return Link(tree.operator, tree.left, draw(changed(tree.right, fresh)), tree.least)


def parts(tree):
    yield tree
    if isinstance(tree, Link):
        yield from parts(tree.left)
        yield from parts(tree.right)


def holds(tree, bound):
    """Whether the events bound to the atoms are a match of the tree; (start, end) or None."""
    if isinstance(tree, Atom):
        kind, at, n = bound[tree.alias]
        return (at, at) if kind == tree.kind and n >= tree.least else None
    left, right = holds(tree.left, bound), holds(tree.right, bound)
    if left is None or right is None:
        return None
    if sum(bound[atom.alias][2] for atom in tree.atoms) < tree.least:
        return None
    if len(
        {bound[atom.alias] for atom in tree.left.atoms} & {bound[a.alias] for a in tree.right.atoms}
    ):
        return None
    gap = right[0] - left[1]
    if "then" in tree.operator and gap <= 0:
        return None
    if tree.operator == "then[..3 s]" and gap > 3_000:
        return None
    if tree.operator == "and[..2 s]" and max(gap, left[0] - right[1]) > 2_000:
        return None
    return min(left[0], right[0]), max(left[1], right[1])


def counts(tree, before, bound, split, known):
    """Whether a match counts of which some events came before the change."""
    if tree in known:  # it goes on; what it passed on before the change is not held here
        return completes(tree, bound, split)
    if not completes(tree, bound, split):
        return False
    if isinstance(tree, Atom):
        return True
    alike = isinstance(before, Link) and before.operator == tree.operator
    for side in ("left", "right"):
        beneath, beside = getattr(tree, side), getattr(before, side) if alike else None
        if beside == beneath:
            continue  # held for the operator, which relates the same
        if not counts(beneath, beside, bound, split, known):
            return False
    return True


def completes(tree, bound, split):
    return any(bound[atom.alias][1] >= split for atom in tree.atoms)


def text_of(tree, seq):
    return f"{TYPES}subscription S seq {seq} from me to x\ndetect {tree.text}\n"


@given(
    st.data(),
    trees(),
    st.lists(st.tuples(st.sampled_from("ABCD"), st.integers(0, 2)), min_size=4, max_size=9),
)
def test_an_operand_that_is_the_same_goes_on(data, before, rows):
    after = data.draw(changed(before))
    split = data.draw(st.integers(1, len(rows)))
    machine = Machine(lateness_ms=0)
    assert machine.submit(text_of(before, 1))["ok"]
    found = []
    events = []
    for number, (kind, n) in enumerate(rows):
        at = 1_000 * number
        if number == split:
            reply = machine.submit(text_of(after, 2))
            assert reply["ok"], reply
        machine.wait(NOW + at - machine.now)
        row = {"timestamp": NOW + at, "id": str(number), "n": n}
        results = machine.send(row, type_name=kind, source=kind)
        events.append((kind, at, n))
        found += [one["events"] for one in results if number >= split]
    if split == len(rows):
        return
    aliases = [atom.alias for atom in after.atoms]
    known = set(parts(before))
    expected = []
    for chosen in itertools.product(range(len(events)), repeat=len(aliases)):
        bound = dict(zip(aliases, [events[number] for number in chosen], strict=True))
        if holds(after, bound) is None:
            continue
        since = split * 1_000
        if after == before:
            if not completes(after, bound, since):
                continue
        elif not counts(after, before, bound, since, known):
            continue
        expected.append({name: [str(number)] for name, number in zip(aliases, chosen, strict=True)})
    assert sorted(map(repr, found)) == sorted(map(repr, expected))


def test_what_goes_on_of_another_pattern_is_told():
    machine = Machine(lateness_ms=0)
    first = "detect (A as a then B as b) and C as c"
    assert machine.submit(f"{TYPES}subscription S from me to x\n{first}\n")["ok"]
    other = first.replace("C as c", "D as c")
    reply = machine.submit(f"{TYPES}subscription S seq 2 from me to x\n{other}\n")
    (row,) = reply["changes"]
    assert not row["goes_on"]
    assert row["parts"] == [{"task": "S", "lines": ["a, b"]}]


PAIR_AND = "(A as a then B as b{}) and C as c{}"


def after_change(first, second, before, behind):
    """Send types a second apart, a change between them; what is bound by the results behind it."""
    machine = Machine(lateness_ms=0)
    found = []
    for number, kind in enumerate([*before, None, *behind]):
        if kind is None:
            assert machine.submit(f"{TYPES}subscription S seq 2 from me to x\ndetect {second}\n")[
                "ok"
            ]
            found.clear()
            continue
        if not number:
            assert machine.submit(f"{TYPES}subscription S from me to x\ndetect {first}\n")["ok"]
        machine.wait(1_000)
        row = {"timestamp": machine.now, "id": f"{kind}{number}", "n": 1}
        found += [one["events"] for one in machine.send(row, type_name=kind, source=kind)]
    return [sorted(itertools.chain(*bound.values())) for bound in found]


def test_what_an_operand_has_found_is_held_for_another_partner():
    first, second = PAIR_AND.format("", ""), PAIR_AND.replace("C as c", "D as c").format("", "")
    assert after_change(first, second, "AB", "D") == [["A0", "B1", "D3"]]


def test_another_condition_between_operands_is_asked_of_what_is_held_of_each():
    first = PAIR_AND.format("", " where a.n + c.n > 5")
    second = PAIR_AND.format("", " where a.n + c.n > 1")
    assert after_change(first, second, "AB", "C") == [["A0", "B1", "C3"]]


def test_an_operand_with_another_condition_has_found_nothing_yet():
    first = PAIR_AND.format(" where a.n + b.n > 1", "")
    second = PAIR_AND.format(" where a.n + b.n > 0", "")
    assert after_change(first, second, "AB", "C") == []
    assert after_change(first, second, "A", "BC") == [["A0", "B2", "C3"]]


def test_a_side_that_is_needed_for_longer_begins_anew():
    """What has gone cannot be had again, and what has not is not to decide by chance."""
    first, second = "A as a then[..3 s] B as b", "A as a then[..5 s] B as b"
    assert after_change(first, second, "A", "B") == []
    assert after_change(second, first, "A", "B") == [["A0", "B2"]]
