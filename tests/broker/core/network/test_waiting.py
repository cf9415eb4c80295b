"""What is claimed, promised and taken while events wait for partners, and when they may wait."""

from random import Random

import pytest

from broker.engine.event.event import event_class
from broker.engine.ingest.event_bytes import packed, said_again
from broker.network.frames.frames import Offered, Reoffer
from broker.network.frames.told import Forwarded
from broker.network.host.needs import Needs
from broker.network.host.upstream import Upstream
from broker.network.neighbours.certainty import Certainty
from broker.network.neighbours.ways import Came, Claim
from broker.network.operators.times import Times
from broker.network.routing.matching.matching import Waiting
from broker.network.routing.matching.rows import Held
from language import check_text

A = event_class("A", {})


def event(end):
    return A(
        id=str(end),
        source="s",
        location=None,
        position=None,
        timestamp=None,
        start=end,
        end=end,
        uncertainty=0,
    )


def waiting(end):
    return Waiting(Held(event(end), ""), 1_000, ("B",))


def test_neither_a_claim_nor_a_promise_passes_what_waits():
    claim = Claim()
    claim.extend(0, 5, {"A": 100, "B": 100})
    claim.back[3] = waiting(50)
    assert claim.complete(5) == 2
    assert claim.take() == (0, 5, {"A": 49, "B": 100})
    assert claim.sayable() == {}
    claim.extend(5, 6, {"A": 120})
    claim.back[6] = waiting(110)
    assert claim.take() == (5, 6, {})
    del claim.back[3]
    assert claim.complete(6) == 5
    assert claim.take() == (6, 6, {"A": 109})
    del claim.back[6]
    assert claim.take() == (6, 6, {"A": 120})
    assert claim.sayable() == {}


def test_that_a_type_has_ended_is_not_said_before_what_waits():
    claim = Claim()
    claim.extend(0, 2, {"A": None})
    claim.back[2] = waiting(50)
    assert claim.take() == (0, 2, {"A": 49})
    claim.back.clear()
    assert claim.take() == (2, 2, {"A": None})


def test_a_frame_that_is_missing_is_seen_though_it_moved_no_claim():
    came = Came(upto=7, serial=3)
    assert came.goes_on(7, 4)
    assert not came.goes_on(7, 6)
    assert came.goes_on(7, 7)
    assert not came.goes_on(8, 8)


@pytest.mark.parametrize("seed", range(30))
def test_each_position_is_taken_once_in_whatever_order_they_come(seed):
    draw = Random(seed)
    host = Upstream()
    host.begin(1, 0)
    taken = []
    back, upto = [], 0
    for _ in range(40):
        before, upto = upto, upto + draw.randint(0, 4)
        sent = []
        for position in range(before + 1, upto + 1):
            (back if draw.random() < 0.5 else sent).append(position)
        for position in [one for one in back if draw.random() < 0.3]:
            back.remove(position)
            sent.append(position)
        take(host, taken, (before, upto), sent, min(back, default=upto + 1) - 1)
        assert host.position == min(back, default=upto + 1) - 1
        if draw.random() < 0.1:  # all behind what is complete is offered again
            again = list(range(host.position + 1, upto + 1))
            take(host, taken, (host.position, upto), again, upto)
            back.clear()
            assert host.position == upto
            assert not host.beyond
    take(host, taken, (upto, upto), back, upto)
    assert sorted(taken) == list(range(1, upto + 1))


def take(host, taken, claim, positions, complete):
    positions = sorted(positions)
    events = packed([event(one) for one in positions])
    one = Forwarded("o", 1, *claim, positions, events, {}, held_after=complete)
    new, _ = host.new_of(one, said_again(one.events), lambda *_: False)
    taken += [int(said["id"]) for said in new]


def test_an_answer_to_a_quiet_question_is_known_however_many_were_asked_since():
    needs = Needs(Times(uncertainty_ms_max=0), first=7)
    quiet = [needs.quietly() for _ in range(2_000)]
    others = [0, *[needs.ask("o", 0) for _ in range(3)]]
    assert len({*quiet, *others}) == len(quiet) + len(others)
    assert all(map(needs.is_quiet, quiet))
    assert not any(map(needs.is_quiet, others))


# --- what is certain ------------------------------------------------------------------------------

JOINED = ("A", "B")
ORIGINS = {"o": ("A",), "p": ("B",), "q": ("C",)}


def question(origin, serial=1, absent=(), newest=10, quiet=False):
    types = {"A": {}, "B": {}}
    return Reoffer("h", origin, serial, 0, None, types, None, absent, newest, quiet)


def nothing(origin, absent=(), host="h"):
    return Reoffer(host, origin, 0, 0, None, {}, None, absent, 10)


def answer(origin, serial=1, newest=20):
    what = Forwarded(origin, 1, 0, 0, [], b"", {}, whole=True)
    return Offered("h", serial, what, True, False, newest)


def answered():
    known = Certainty()
    for origin, newest in (("o", 20), ("p", 30)):
        known.asked("n", question(origin), reachable=True)
        known.answers("n", answer(origin, newest=newest))
    return known


def bound(known):
    return known.certain_after("n", JOINED, ORIGINS, ORIGINS)


def test_nothing_is_certain_before_all_who_may_send_partners_have_answered():
    known = Certainty()
    assert bound(known) is None
    known.asked("n", question("o"), reachable=True)
    known.answers("n", answer("o"))
    assert bound(known) is None
    known.asked("n", question("p", newest=40), reachable=True)
    assert bound(known) is None
    known.answers("n", answer("p", newest=30))
    assert bound(known) == 40


@pytest.mark.parametrize(
    "happens",
    [
        lambda known: known.asked("n", question("o", 2, absent=("x",)), reachable=True),
        lambda known: known.asked("n", question("o", 2), reachable=False),
        lambda known: known.asked("n", nothing("q", absent=("x",)), reachable=True),
        lambda known: known.gone("p", ("B",), [("n", ["h"])]),
        lambda known: known.gone("x", ("B",), []),
        lambda known: known.changed("n"),
        lambda known: known.missed("p"),
        lambda known: known.left("n"),
    ],
)
def test_what_makes_it_uncertain(happens):
    known = answered()
    assert bound(known) == 30
    happens(known)
    assert bound(known) is None


def test_a_question_more_leaves_certain_what_was():
    """All that its host needs of before is in the answer; nor does that one make less certain."""
    known = answered()
    assert bound(known) == 30
    known.asked("n", question("o", 2), reachable=True)
    known.asked("n", question("p", 3, absent=("o",)), reachable=True)  # which takes its time
    assert bound(known) == 30
    known.answers("n", answer("o", 2, newest=90))
    assert bound(known) == 30


def test_for_whom_nothing_passes_here_makes_nothing_uncertain():
    """Nor would it say here that those have answered for whom it waits."""
    known = answered()
    known.asked("n", nothing("o", absent=("x",), host="other"), reachable=True)
    assert bound(known) == 30


def test_who_needs_nothing_more_that_passes_here_waits_for_nobody_here():
    known = answered()
    known.asked("n", nothing("o", absent=("x",)), reachable=True)
    assert bound(known) is None  # it still needs something of another
    known.asked("n", nothing("p", absent=("x",)), reachable=True)
    assert bound(known) == 30


def test_who_is_forgotten_is_needed_by_nobody():
    known = answered()
    known.asked("n", nothing("o"), reachable=True)
    known.forget("p")
    known.asked("n", nothing("q", absent=("x",)), reachable=True)
    assert bound(known) == 30


def test_who_was_away_and_is_back_makes_nothing_certain_before_all_are_asked_anew():
    known = answered()
    known.gone("x", ("B",), [])
    known.here("x")
    assert bound(known) is None
    for origin in ("o", "p"):
        known.asked("n", question(origin, 2, quiet=True), reachable=True)
        known.answers("n", answer(origin, 2, newest=50))
    assert bound(known) == 50


def test_an_answer_to_what_was_asked_before_an_operator_came_makes_nothing_certain():
    known = answered()
    for origin in ("o", "p"):
        known.asked("n", question(origin, 2), reachable=True)
    known.changed("n")
    for origin in ("o", "p"):
        known.answers("n", answer(origin, 2))
    assert bound(known) is None


# --- what cannot wait ---------------------------------------------------------------------------

FAR = """event A(n: int)
event B(n: int)
event C(n: int)
subscription Near from user to user
  detect A and B within 5 s
subscription Far from user to user
  detect B and C within 1 h
subscription Unbound from user to user
  detect A and C
"""


@pytest.mark.parametrize(
    ("joins_ms", "far"), [(600_000, {"B": 3_600_001, "C": 3_600_001}), (7_200_000, {}), (None, {})]
)
def test_types_whose_partners_are_too_far_to_wait_for_are_told(joins_ms, far):
    tasks = check_text(FAR).demand().graph.tasks
    needs = Needs(Times(uncertainty_ms_max=0), first=1, joins_ms=joins_ms)
    needs.changed(tasks)
    assert needs.far() == far
    needs.changed({})
    assert needs.far() == {}
