"""What happens among neighbours makes a broker sure, or unsure, that partners are not there."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.event.event import slot_of
from broker.network.frames.frames import Doubted, Offered, Reoffer
from broker.network.frames.told import Forwarded
from broker.network.neighbours import partner_certainty
from broker.network.neighbours.partner_certainty import CertaintyTools, PartnerCertainty
from broker.network.neighbours.ways import Ways
from broker.network.routing.advertisement.messages import LOCAL, Unwant, Want
from broker.network.routing.advertisement.operator import Key, Operator, Range
from broker.network.routing.matching.matching import Joined, Waiting
from broker.network.routing.matching.rows import Held

BACK = Joined(5_000, ("A", "B"))


class Scene:
    """Broker m; behind its neighbour `far` the origins o, of A, and p, of B; host h beyond `near`.

    What it says is in `said`; `doubts` counts how often something may have become uncertain.
    """

    def __init__(self, *, correlates=True):
        self.now = 0
        self.said, self.asked, self.doubts, self.let = [], [], 0, []
        self.asked_less, self.let_go_ms, self.asked_silent = [], [], []
        self.joined = {LOCAL: BACK, "near": BACK, "far": Joined(0, ()), "cell": BACK}
        self.joined["side"] = Joined(0, ())
        self.operators = {}
        self.ways = Ways("me")
        for origin, name in (("o", "A"), ("p", "B"), ("q", "C")):
            self.ways.here(origin, "far", (name,), ())
        self.ways.here("h", "near", (), ())
        self.part = PartnerCertainty(
            CertaintyTools(
                "m",
                self.ways,
                lambda: ("near", "far", "cell", "side"),
                {"cell"},
                lambda: ("C",),
                lambda name: self.joined[name],
                lambda name: [(each, ()) for each in self.operators.get(name, ())],
                lambda peer, body: self.said.append((peer, body)),
                self.asked.append,
                lambda: self,
                self.asked_silent.append,
            ),
            correlates=correlates,
        )

    def send_unsure(self):
        self.doubts += 1

    def send_wanted(self, toward, wants):
        self.let.append((toward, wants))

    def ask_less(self, toward):
        self.asked_less.append(toward)

    def let_go(self, now):
        self.let_go_ms.append(now)

    def ask(self, origin, serial=1, *, newest=10, absent=(), quiet=False):
        types = {"A": {}, "B": {}}
        self.ways.open(origin, "near", "h")
        body = Reoffer("h", origin, serial, 0, None, types, None, absent, newest, quiet)
        self.part.asked("near", body)

    def answer(self, origin, serial=1, *, newest=20, watermarks=None):
        what = Forwarded(origin, 7, 0, 0, [], b"", watermarks or {}, whole=True)
        self.part.passes("far", Offered("h", serial, what, True, False, newest), self.now)

    def settle(self):
        for origin in ("o", "p"):
            self.ask(origin)
            self.answer(origin)
        return self

    def settle_cell(self, newest=30, cell="cell"):
        """Have the origins answer the cell, which asks for A above 5 with B, and with C."""
        keys = (*correlated(joins=True).operator.keys, Key("c", "C"))
        self.operators[cell] = [Operator("w", keys, 5_000)]
        for origin in ("o", "p"):
            asked = Reoffer("c", origin, 1, 0, None, {"A": {}}, None, (), 10)
            what = Forwarded(origin, 7, 0, 0, [], b"", {}, whole=True)
            self.part.asked(cell, asked)
            self.part.answered(cell, Offered("c", 1, what, True, False, newest), 0)
        return self

    def answer_anew(self, newest=97_000):
        """Have the host ask all once more, who answer."""
        for origin in ("o", "p"):
            self.ask(origin, 2)
            self.answer(origin, 2, newest=newest)

    def wake(self):
        """Go on to when something is due, and do it; return when that was."""
        self.now = self.part.asks_at
        self.part.ask_for_questions(self.now)
        return self.now


def test_it_is_sure_once_all_who_may_send_partners_have_answered_the_host():
    scene = Scene()
    assert not scene.part.is_sure("near")
    scene.ask("o")
    scene.answer("o")
    assert not scene.part.is_sure("near")
    scene.ask("p", newest=40)
    scene.answer("p")
    assert scene.part.bound("near") == 40


def test_nothing_is_ever_kept_from_the_broker_itself_its_cells_or_where_it_is_switched_off():
    assert not Scene(correlates=False).settle().part.is_sure("near")
    scene = Scene().settle()
    for origin in ("o", "p"):  # as if hosts were beyond these
        body = Reoffer("h", origin, 2, 0, None, {"A": {}}, None, (), 10)
        what = Forwarded(origin, 7, 0, 0, [], b"", {}, whole=True)
        for peer in (LOCAL, "cell", "far"):
            scene.part.asked(peer, body)
            scene.part.answered(peer, Offered("h", 2, what, True, False, 20), 0)
    assert scene.part.is_sure("near")
    assert not any(map(scene.part.is_sure, (LOCAL, "cell", "far")))


def correlated(*, joins, covered=False):
    """An operator that joins A above 5 with B; `covered` by what was asked for before."""
    keys = (Key("a", "A", ranges=(Range("v", low=5.0),)), Key("b", "B"))
    return Want(Operator("w", keys, 5_000, correlated=joins), covered=covered)


def event(event_type, value, end=100_000):
    place = {"source": "s", "location": None, "position": None, "start": end, "end": end}
    said = SimpleNamespace(event_type=event_type, **place, **{slot_of("v"): float(value)})
    return Waiting(Held(said, "far"), 5_000, ("A", "B"))


def test_one_more_operator_leaves_it_sure_of_what_others_ask_for():
    scene = Scene().settle()
    scene.part.wants("near", correlated(joins=True))
    assert not scene.part.is_sure("near")
    assert scene.part.bound("near") == 20
    assert scene.part.bound_of("near", event("A", 9)) is None
    assert scene.part.bound_of("near", event("A", 1)) == 20
    ((toward, wanted),) = scene.let
    assert toward == "near"
    asked_for = [event("A", 9), event("A", 1), event("B", 0), event("C", 0)]
    assert list(map(wanted, asked_for)) == [True, False, True, False]


def test_what_a_sure_one_in_another_direction_asks_for_too_is_known_since_then():
    scene = Scene().settle().settle_cell()
    scene.part.wants("near", correlated(joins=True))
    assert scene.part.bound_of("near", event("A", 9)) is None  # who is away is yet to be heard
    ((_, wanted),) = scene.let
    ends = (5_029, 5_030)
    assert [wanted(event("A", 9, end)) for end in ends] == [True, False]
    assert not wanted(event("A", 1, 5_029))
    scene.answer_anew()
    assert scene.part.bound_of("near", event("A", 9, 5_029)) == 30
    assert scene.part.bound("near") == 20
    scene.part.bound_of("near", event("A", 9))  # that is one with the others by now
    assert scene.part.bound("near") == 30


def test_so_is_what_a_neighbour_asks_for_first():
    scene = Scene().settle_cell()
    scene.joined["near"] = Joined(0, ())
    scene.part.wants("near", correlated(joins=True))
    scene.joined["near"] = BACK
    scene.part.operators_changed()
    assert scene.part.bound("near") is None
    scene.answer_anew()
    assert scene.part.bound("near") == 30


def others(scene):
    """Have the neighbour ask for something besides, that nobody else does."""
    scene.part.wants("near", Want(Operator("v", (Key("a", "A"), Key("b", "B")), 5_001)))


def moved(scene):
    scene.part.here("p")


UNKNOWN = {
    "something was lost": lambda scene: scene.part.missed("p"),
    "an origin came": moved,
    "an origin went": lambda scene: (scene.part.gone("p"), scene.part.here("p")),
    "it asks for more": others,
}


@pytest.mark.parametrize("happens", UNKNOWN.values(), ids=UNKNOWN)
def test_it_is_not_known_any_more_where(happens):
    scene = Scene().settle().settle_cell()
    scene.part.wants("near", correlated(joins=True))
    happens(scene)
    scene.answer_anew()
    assert scene.part.bound_of("near", event("A", 9, 5_029)) == 97_000


@pytest.mark.parametrize("happens", UNKNOWN.values(), ids=UNKNOWN)
def test_nor_is_what_a_neighbour_asks_for_first_where(happens):
    scene = Scene().settle_cell()
    scene.joined["near"] = Joined(0, ())
    scene.part.wants("near", correlated(joins=True))
    scene.joined["near"] = BACK
    scene.part.operators_changed()
    happens(scene)
    scene.answer_anew()
    assert scene.part.bound("near") == 97_000


def test_what_another_has_just_begun_to_ask_for_is_not_known():
    scene = Scene()
    scene.joined["side"] = BACK
    scene.settle().settle_cell(cell="side")
    assert scene.part.is_sure("side")
    scene.part.wants("side", correlated(joins=True))
    scene.part.wants("near", correlated(joins=True))
    scene.answer_anew()
    assert scene.part.bound_of("near", event("A", 9, 5_029)) == 97_000


OTHERS = {
    "nobody is sure": lambda scene: scene.part.left("cell"),
    "it is the neighbour itself": lambda scene: scene.operators.update(
        near=scene.operators.pop("cell")
    ),
    "it is asked for with other distances": lambda scene: scene.operators.update(
        cell=[replace(scene.operators["cell"][0], delta_t_ms=6_000)]
    ),
    "a key may be passed over there": lambda scene: scene.operators.update(
        cell=[Operator("w", (*correlated(joins=True).operator.keys[1:], OPTIONAL), 5_000)]
    ),
}
OPTIONAL = replace(correlated(joins=True).operator.keys[0], optional=True)


@pytest.mark.parametrize("is_other", OTHERS.values(), ids=OTHERS)
def test_nothing_is_known_of_an_operator_where(is_other):
    scene = Scene().settle().settle_cell()
    is_other(scene)
    scene.part.wants("near", correlated(joins=True))
    assert scene.let[0][1](event("A", 9))
    scene.answer_anew()
    assert scene.part.bound_of("near", event("A", 9, 5_029)) == 97_000


def test_behind_the_answers_to_questions_after_it_that_operator_is_as_any_other():
    scene = Scene().settle()
    scene.ask("o", 2)  # before the operator, so that this answer does not tell
    scene.part.wants("near", correlated(joins=True))
    scene.answer("o", 2)
    scene.ask("p", 3)
    scene.answer("p", 3, newest=97_000)
    assert scene.part.bound_of("near", event("A", 9)) is None
    scene.ask("o", 3)
    assert scene.part.bound_of("near", event("A", 9)) is None
    scene.answer("o", 3, newest=96_000)
    assert scene.part.is_sure("near")
    assert scene.part.bound_of("near", event("A", 9)) == 97_000
    assert scene.part.bound_of("near", event("A", 1)) == 20
    assert scene.part.bound_of("near", event("A", 9, 102_000)) == 97_000
    assert scene.part.bound("near") == 97_000  # all have come as far


def test_what_others_asked_for_before_makes_nothing_unsure_when_it_is_asked_for_itself():
    scene = Scene().settle()
    scene.part.wants("near", correlated(joins=True, covered=True))
    assert scene.part.is_sure("near")
    assert scene.part.bound_of("near", event("A", 9)) == 20
    assert not scene.let


def test_what_an_operator_covers_that_nothing_is_certain_of_is_as_uncertain():
    scene = Scene().settle()
    scene.part.wants("near", correlated(joins=True))
    keys = (Key("c", "C"), Key("b", "B"))
    scene.part.wants("near", Want(Operator("v", keys, 5_000), covered=True))
    assert scene.part.bound_of("near", event("C", 1)) is None


def test_the_question_of_one_more_host_leaves_it_sure():
    """What that host needs of before is in the answer."""
    scene = Scene().settle()
    scene.ask("o", 2, newest=70_000)
    scene.ask("p", 2, newest=70_000, absent=("o",))
    scene.part.doubt()
    assert scene.part.bound("near") == 20
    scene.answer("o", 2, newest=80_000)
    scene.answer("p", 2, newest=80_000)
    assert scene.part.bound("near") == 20


def test_as_long_as_it_is_not_sure_a_question_that_is_open_keeps_it_so():
    scene = Scene()
    scene.ask("o", 2)
    scene.settle()
    assert scene.part.is_sure("near")
    scene = Scene().settle()
    scene.part.missed("p")
    scene.part.doubt()
    assert not scene.part.is_sure("near")
    scene.ask("o", 2)
    scene.ask("p", 2)
    scene.answer("p", 2)
    assert not scene.part.is_sure("near")
    scene.answer("o", 2)
    assert scene.part.is_sure("near")


UNSURE = {
    "a host waits for another in vain": lambda scene: scene.ask("o", 2, absent=("x",), quiet=True),
    "something was lost": lambda scene: scene.part.missed("p"),
    "a session has ended": lambda scene: scene.part.left("near"),
}


@pytest.mark.parametrize("happens", UNSURE.values(), ids=UNSURE)
def test_it_is_unsure_again_and_says_so_where(happens):
    scene = Scene().settle()
    before = scene.doubts
    assert scene.part.is_sure("near")
    happens(scene)
    scene.part.doubt()
    assert not scene.part.is_sure("near")
    assert scene.doubts > before


@pytest.mark.parametrize("message", [correlated(joins=False), Unwant("w")])
def test_what_joins_nothing_leaves_it_sure(message):
    scene = Scene().settle()
    before = scene.doubts
    scene.part.wants("near", message)
    assert scene.part.is_sure("near")
    assert scene.doubts == before


def test_who_has_gone_is_missed_until_it_is_back_and_all_are_asked_anew():
    scene = Scene().settle()
    scene.part.gone("p")
    scene.ways.gone("p")
    scene.part.doubt()
    assert not scene.part.is_sure("near")
    scene.part.here("p")
    scene.ways.here("p", "far", ("B",), ())
    scene.part.doubt()
    assert not scene.part.is_sure("near")
    for origin in ("o", "p"):
        scene.ask(origin, 2, quiet=True)
        scene.answer(origin, 2, newest=50)
    assert scene.part.bound("near") == 50


def test_whom_nobody_is_to_wait_for_is_missed_no_more():
    scene = Scene().settle()
    scene.part.gone("p")
    scene.ways.gone("p")
    scene.part.forget("p")
    assert scene.part.bound("near") == 20


def test_an_answer_that_passes_tells_how_far_its_origin_has_come_and_for_what_hosts_wait():
    """A type of which nothing is promised yet, as its sources are silent, is waited for as well."""
    scene = Scene()
    scene.ask("o")
    came = scene.ways.came["o"]
    came.watermarks |= {"Y": 5, "X": None}
    silent = dict.fromkeys("XYZ", WATERMARK_NONE)
    scene.answer("o", watermarks={"A": 99, **silent})
    assert came.life == 7
    assert came.watermarks == {"A": 99, "X": None, "Y": 5, "Z": WATERMARK_NONE}


def test_an_answer_to_a_host_where_it_came_from_is_not_heard():
    scene = Scene()
    scene.ask("o")
    what = Forwarded("o", 7, 0, 0, [], b"", {}, whole=True)
    scene.part.passes("near", Offered("h", 1, what, True, False, 20), 0)
    assert scene.ways.came["o"].life == 0


def test_hosts_are_asked_each_time_twice_as_late_until_it_is_sure():
    scene = Scene()
    for origin in ("o", "p"):
        scene.ask(origin)
    scene.part.wants("near", correlated(joins=True))  # these answers will not tell
    for origin in ("o", "p"):
        scene.answer(origin)
    times = [scene.wake() for _ in range(9)]
    waits = [later - earlier for earlier, later in pairwise([0, *times])]
    assert waits[:3] == [1_000, 1_000, 2_000]
    assert max(waits) == waits[-1] == partner_certainty.ASK_MS_MAX
    assert scene.said[:2] == [("near", Doubted("o")), ("near", Doubted("p"))]
    for origin in ("o", "p"):
        scene.ask(origin, 2, quiet=True)
        scene.answer(origin, 2)
    said = len(scene.said)
    scene.wake()
    assert scene.part.asks_at is None
    assert len(scene.said) == said


def test_nobody_is_asked_while_a_question_is_open_or_one_is_away():
    scene = Scene()
    scene.ask("o")
    scene.part.look_again(0)
    scene.wake()
    assert not scene.said
    assert scene.part.asks_at is not None


def test_a_doubt_goes_on_to_hosts_and_this_broker_asks_for_itself():
    scene = Scene()
    scene.ways.open("o", LOCAL, "m")
    scene.ways.open("o", "near", "h")
    scene.part.doubted("near", Doubted("o"))  # the origin is not there
    assert not scene.said + scene.asked
    scene.part.doubted("far", Doubted("o"))
    assert scene.said == [("near", Doubted("o"))]
    assert scene.asked == ["o"]


def test_what_waits_is_looked_at_soon_after_operators_were_taken_back():
    scene = Scene().settle()
    scene.part.wants("near", Unwant("w"))
    assert scene.asked_less == ["near"]
    scene.part.look_again(scene.now)
    scene.wake()
    assert scene.let_go_ms == [partner_certainty.ASK_MS]
