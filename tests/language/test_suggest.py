"""The nearest of the known names: one that a person would have meant, or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from language.suggest import CANDIDATES_MAX, LENGTH_MAX, nearest

words = st.text("abcde", min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("Temprature", ["Humidity", "Temperature"], "Temperature"),
        ("temperature", ["Temperature"], "Temperature"),
        ("vlaue", ["value", "valid"], "value"),
        ("valeu", ["value"], "value"),
        ("values", ["value"], "value"),
        ("valu", ["value"], "value"),
        ("X", ["x", "y"], "x"),
        ("y", ["x"], None),
        ("ab", ["cd"], None),
        ("humid", ["Temperature"], None),
        ("value", ["value"], None),
        ("anything", [], None),
        ("cat", ["bat", "hat"], "bat"),
        ("x" * (LENGTH_MAX + 1), ["x" * LENGTH_MAX], None),
    ],
)
def test_the_nearest_name(name, known, meant):
    assert nearest(name, known) == meant


def edits(left, right):
    """Insertions, deletions, replacements and swaps of neighbours, by the recurrence itself."""
    if not left or not right:
        return len(left) + len(right)
    found = [
        edits(left[1:], right) + 1,
        edits(left, right[1:]) + 1,
        edits(left[1:], right[1:]) + (left[0] != right[0]),
    ]
    if left[:2] == right[1::-1] and len(left) > 1 and len(right) > 1:
        found.append(edits(left[2:], right[2:]) + 1)
    return min(found)


@given(words.filter(lambda word: len(word) > 1), st.lists(words, max_size=4, unique=True))
def test_it_is_the_first_of_those_with_the_fewest_edits(name, known):
    counts = {word: edits(name, word) for word in known if word != name}
    allowed = [word for word, count in counts.items() if count <= max(1, len(name) // 3)]
    fewest = min((counts[word] for word in allowed), default=None)
    first = next((word for word in allowed if counts[word] == fewest), None)
    assert nearest(name, known) == first


def test_only_so_many_names_are_looked_at():
    assert nearest("abcd", (f"zzzzzzzz{n}" for n in range(10 * CANDIDATES_MAX))) is None
