"""A page fits into one message and pages make a list; a question means one subscription alone."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.core.catalogue import Installed
from broker.core.messages import CancelRequested, ResumeRequested
from broker.remote import question
from broker.remote.question import EndQuestion, key_of, page_of, read_page

ASKED = EndQuestion("cancelled", "me", True, "anna", "Warm", 1, 1_000)


def installed(seq=1, since=1_000, name="Warm"):
    return Installed("anna", name, seq, "x", "task", "me", (), "d", since)


def test_a_question_becomes_the_request_of_who_was_judged():
    assert ASKED.request([installed()], "to") == CancelRequested(
        "me", "network", "Warm", reply_to="to", proven=True
    )
    resumed = msgspec.structs.replace(ASKED, done="resumed").request([installed()], "to")
    assert isinstance(resumed, ResumeRequested)


@pytest.mark.parametrize("other", [installed(seq=2), installed(since=1_001), installed(name="Hot")])
def test_a_later_subscription_of_the_same_name_is_not_ended(other):
    """The question may have been under way while the first was ended and submitted once more."""
    assert ASKED.request([other], "to") is None
    assert ASKED.request([], "to") is None


def row(subscriber, name, size=0):
    keys = {"subscriber": subscriber, "subscription": name, "client": "c", "seq": 1, "since": 2}
    return keys | {"actor": "x" * size}


NAMES = st.sets(st.tuples(st.text("ab/", min_size=1, max_size=3), st.text("ab", max_size=3)))


@given(NAMES, st.integers(1, 4), st.integers(1, 400))
def test_pages_bring_each_row_once(names, rows_max, bytes_max):
    rows = [row(*key) for key in names]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(question, "PAGE_ROWS", rows_max)
        patch.setattr(question, "PAGE_BYTES", bytes_max)
        brought, after = [], None
        while True:
            page = read_page(msgspec.to_builtins(page_of(rows, after)))
            assert len(page.rows) <= rows_max
            assert len(page.rows) == 1 or len(msgspec.json.encode(page.rows)) <= bytes_max + 10
            brought += page.rows
            if not page.more:
                break
            after = key_of(page.rows[-1])
    assert [key_of(one) for one in brought] == sorted(names)


@pytest.mark.parametrize("reply", [{}, {"rows": 1}, {"rows": [{"subscriber": "a"}]}, {"ok": False}])
def test_what_is_no_page_is_refused(reply):
    with pytest.raises(msgspec.ValidationError):
        read_page(reply)
