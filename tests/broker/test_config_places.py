"""Places are found in every form that TOML has for a key."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from broker.config.places import nearest_place, places

TEXT = '''\
# a comment with [brackets] and "quotes
top = 1
  [a]  # another
x = "] # not a comment"
  "quoted key" = 2
long = """
y = 3
[not.a.table] \\""" still
"""
raw = \'\'\'
z = 'q'
\'\'\'
list = [ # [
  "]",
  { inner = 1 },
]
dotted . deep = {one = 1, two = "}"}
last = \'\'
[ b . "c.d" ]
x = 1
[[many]]
x = 1
'''


def test_every_form_of_a_key_is_found():
    assert tomllib.loads(TEXT)["a"]["dotted"]["deep"]["one"] == 1
    found = places(TEXT)
    assert found == {
        ("top",): (2, 1),
        ("a",): (3, 3),
        ("a", "x"): (4, 1),
        ("a", "quoted key"): (5, 3),
        ("a", "long"): (6, 1),
        ("a", "raw"): (10, 1),
        ("a", "list"): (13, 1),
        ("a", "dotted"): (17, 1),
        ("a", "dotted", "deep"): (17, 1),
        ("a", "last"): (18, 1),
        ("b", "c.d"): (19, 1),
        ("b", "c.d", "x"): (20, 1),
        ("many",): (21, 1),
        ("many", "x"): (22, 1),
    }
    assert nearest_place(found, ("a", "dotted", "deep", "two")) == (17, 1)
    assert nearest_place(found, ("nowhere",)) == (1, 1)


def test_lines_that_end_as_on_windows_are_lines():
    assert places(TEXT.replace("\n", "\r\n")) == places(TEXT)


KEYS = st.sampled_from(["k", "k-1", '"a b"', "'#'", '"\\""', "1"])
VALUES = st.sampled_from(
    [
        "1",
        '"#"',
        "'['",
        '"""\n[x]\n"""',
        "'''\nk = 1\n'''",
        "[1, # ]\n 2]",
        "{k = ']'}",
        '""',
        '"\\\\"',
    ]
)


@given(st.lists(st.tuples(KEYS, VALUES, st.sampled_from(["", "\n", "  # [c]"])), max_size=8))
def test_a_place_is_where_the_key_was_written(rows):
    """Keys are written with a number of their own, so that TOML takes them and each is unique."""
    text, expected = "", {}
    for number, (key, value, tail) in enumerate(rows):
        expected[number] = text.count("\n") + 1
        text += f"t{number}.{key} = {value}{tail}\n"
    assert len(tomllib.loads(text)) == len(rows)
    found = places(text)
    assert {n: found[(f"t{n}",)][0] for n in expected} == expected
