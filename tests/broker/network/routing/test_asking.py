"""What one neighbour is asked for, however its askers change."""

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from broker.network.routing.advertisement.messages import Unwant, Want
from broker.network.routing.advertisement.operator import Key, Operator, Range
from broker.network.routing.asking import Asking
from broker.network.routing.covering.covering import Check

OWNERS = (("left", "x"), ("right", "x"), ("below", "x"), ("left", "y"))


def key(name: str, least: float | None = None) -> Key:
    ranges = () if least is None else (Range("v", least, None),)
    return Key(name, name, ranges=ranges)


KEYS = st.lists(
    st.builds(key, st.sampled_from("ABC"), st.sampled_from([None, 1.0, 2.0])),
    min_size=1,
    max_size=3,
    unique_by=lambda each: each.name,
)
CHANGES = st.lists(st.tuples(st.sampled_from(OWNERS), st.none() | KEYS), max_size=24)


def told(asked: dict[str, Operator], messages: list[Want | Unwant]) -> None:
    """Have the neighbour hear it: of one id the last word holds."""
    for one in messages:
        if isinstance(one, Want):
            asked[one.operator.id] = one.operator
        else:
            del asked[one.id]


def content(operator: Operator) -> Operator:
    return msgspec.structs.replace(operator, id="")


@given(CHANGES)
def test_a_neighbour_is_asked_for_what_each_wants_and_for_nothing_else(changes) -> None:
    """Several directions may want one operator, each as much of it as its way leaves."""
    asking, asked, wanted = Asking(Check.NONE), {}, {}
    for owner, keys in changes:
        if keys is None:
            if wanted.pop(owner, None) is not None:
                told(asked, asking.release(owner, owner[1]))
        else:
            some = Operator(owner[1], tuple(sorted(keys, key=lambda each: each.name)), 1_000)
            wanted[owner] = some
            told(asked, asking.want(owner, some))
        assert sorted(asked) == sorted(one.id for one, by in asking.wanted() if not by)
        contents = [content(one) for one in asked.values()]
        assert all(content(one) in contents for one in wanted.values())
        assert all(one in [content(each) for each in wanted.values()] for one in contents)


@pytest.mark.parametrize("check", [Check.PAIRWISE, Check.EXACT])
def test_less_for_one_direction_takes_nothing_from_another(check: Check) -> None:
    """Two homes ask for the same; then behind one of them there is no source of B any more."""
    both = Operator("x", (key("A"), key("B")), correlated=False)
    asking, asked = Asking(check), {}
    told(asked, asking.want(("left", "x"), both))
    told(asked, asking.want(("right", "x"), both))
    assert list(asked) == ["x"]
    told(asked, asking.want(("right", "x"), Operator("x", (key("A"),), correlated=False)))
    assert both in asked.values()
    told(asked, asking.release(("left", "x"), "x"))
    assert {each.type_name for one in asked.values() for each in one.keys} == {"A"}
    told(asked, asking.release(("right", "x"), "x"))
    assert not asked
