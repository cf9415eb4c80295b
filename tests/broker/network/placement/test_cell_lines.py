"""A later promise takes the place of an earlier one only where it says all of that."""

from broker.network.placement.cell_messages import Ended, Noted, Over, Stored, Taken, Which, line_of

WHICH = Which("hall/1", 5, 2)


def test_promises_of_one_life_of_a_term_are_of_one_line():
    assert line_of(Taken(WHICH, 3, 10)) == line_of(Taken(WHICH, 3, 20))
    assert line_of(Stored(WHICH, 3, 10)) == line_of(Stored(WHICH, 3, 20))


def test_no_others_are():
    said = [
        Taken(WHICH, 3, 10),
        Taken(WHICH, 4, 10),
        Taken(Which("hall/1", 6, 2), 3, 10),
        Taken(Which("hall/1", 5, 1), 3, 10),
        Stored(WHICH, 3, 10),
    ]
    assert len({line_of(each) for each in said}) == len(said)
    others = [Noted(WHICH, 3, {"b": ("T",)}), Ended(WHICH), Over(("hall/1#2",))]
    assert {line_of(each) for each in others} == {""}
