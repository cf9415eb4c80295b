"""The tables that a run prints about itself."""

from types import SimpleNamespace

from tests.printed import generated_tables, planted_table, told


def report(when, **properties):
    return SimpleNamespace(when=when, user_properties=list(properties.items()))


def test_what_was_told_is_counted_once_in_whatever_order_it_came():
    reports = [
        report("call", generated=["w", "or", "recent", 4, 2]),
        report("teardown", generated=["w", "or", "recent", 4, 2]),
        report("call", generated=["w", "and", "recent", 10, 3], other=1),
        SimpleNamespace(),  # warnings stand among the reports
    ]
    wanted = [["w", "and", "recent", 10, 3], ["w", "or", "recent", 4, 2]]
    assert told(reports, "generated") == told(reports[::-1], "generated") == wanted


def test_cases_are_added_up_by_construct_and_context():
    said = [
        ("w", "and", "recent", 10, 3),
        ("w", "and", "recent", 10, 5),
        ("w", "and", "unrestricted", 1, 1),
        ("w", "or", "unrestricted", 0, 0),
    ]
    ((what, lines),) = generated_tables(said)
    assert what == "w"
    assert [" ".join(line.split()) for line in lines] == [
        "recent unrestricted",
        "and 20 40 % 1 100 %",
        "or",
        "21 cases, 42 % with results, the least 40 % (and, recent)",
    ]


def test_faults_that_survived_are_named():
    said = [("a.py", "one", "t.py::x"), ("a.py", "two", None), ("b.py", "three", "t.py::y")]
    lines = planted_table(said)
    assert [" ".join(line.split()) for line in lines] == [
        "a.py 1 of 2",
        "b.py 1 of 1",
        "2 of 3 found; by the first test that failed:",
        "t.py 2",
        "survived: two in a.py",
    ]
