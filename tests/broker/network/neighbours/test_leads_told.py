"""What is said of leads to who lets others wait for them, and what that is good for there."""

from math import inf
from types import SimpleNamespace

import msgspec
import pytest

from broker.engine.event.agent import WATERMARK_NONE
from broker.engine.ingest.event_bytes import packed, unpacked
from broker.network.frames.frames import Led
from broker.network.neighbours.leads import LeadTools, LeadWords
from broker.network.neighbours.ways import Ways
from broker.network.overlay.kinds import kind_of
from broker.network.routing.advertisement.messages import LOCAL, LeadEvents, Send, Want
from broker.network.routing.advertisement.operator import Key, Operator
from broker.network.routing.matching.matching import Waiting
from broker.network.routing.matching.rows import Held

PAUSE_MS = 1_000
SILENT = Want(Operator("o", (Key("r", "R"), Key("f", "F")), 5_000, silent=("r",)))
PLAIN = Want(Operator("o", (Key("r", "R"), Key("f", "F")), 5_000))


def rare(end):
    row = {"type": "R", "id": str(end), "source": "s", "timestamp": end, "start": end}
    (event,) = unpacked(msgspec.msgpack.encode([row]))
    return event


class Scene:
    """Broker m: host h is beyond near, origin o of the rare R beyond side; far sends what waits."""

    def __init__(self):
        self.ways = Ways("m")
        for origin, via, types in (("h", "near", ()), ("o", "side", ("R",)), ("p", "far", ("F",))):
            self.ways.here(origin, via, types, ())
        self.promised = {"o": {"R": 700}, "p": {"F": 900}, "h": {}, "m": {}}
        self.led = {"far": {"R": {"near": False}}}
        self.sure = {"near": 100}
        self.absent, self.newest, self.standing = [], 300, {"far", "near"}
        self.said, self.released, self.heard, self.let, self.gone = [], [], [], [], 0
        self.partners = SimpleNamespace(changes=0, sure_since=lambda name: self.sure[name])
        router = SimpleNamespace(
            led=lambda peer: self.led.get(peer, {}),
            neighbours=["near", "far", "side"],
            probes=lambda peer, events: self.heard.append((peer, events)) or ["let go"],
        )
        self.part = LeadWords(
            LeadTools(
                "m",
                self.ways,
                router,
                self.partners,
                lambda: (),
                lambda origin: self.promised[origin],
                lambda: self.absent,
                lambda: self.newest,
                lambda peer: peer in self.standing,
                self.released.extend,
                lambda: self,
                lambda peer, led, events: self.said.append((peer, led, events)),
                PAUSE_MS,
            )
        )

    def send_wanted(self, toward, wanted):
        self.let.append((toward, wanted))

    def let_go(self, _now):
        self.gone += 1

    def ask(self, message=SILENT):
        self.part.sent([Send("far", message)])
        return self

    def words(self, now=0):
        """Return what is said by now: (to, ends of events, since, times)."""
        self.part.look(now)
        said, self.said = self.said, []
        return [
            (peer, [each.end for each in unpacked(led.events)], led.since, led.times)
            for peer, led, _ in said
        ]

    def change(self):
        self.partners.changes += 1
        return self

    def hear(self, since, times, wants=1, events=()):
        self.part.hear("near", Led(packed(events), wants, since, times), 0)
        return self


def waiting(end, silent=("R",)):
    return Waiting(Held(rare(end), ""), 50, ("R", "F"), silent)


# --- what is told -----------------------------------------------------------------------------


def test_who_is_asked_with_silent_keys_hears_how_far_all_of_them_have_come():
    scene = Scene()
    assert scene.ask(PLAIN).words() == []
    assert scene.ask().words() == [("far", [], 100, {"R": 700})]
    assert scene.words() == []


def test_it_is_told_of_nothing_that_passed_before_it_was_asked():
    scene = Scene()
    scene.part.passed([rare(400), rare(350)])
    assert scene.ask().words() == [("far", [], 400, {"R": 700})]


def test_events_are_told_at_once_with_the_word_and_count_as_events():
    scene = Scene().ask()
    scene.words()
    scene.promised["o"]["R"] = 800
    scene.part.sent([Send("far", LeadEvents([rare(750)], 1))])
    scene.part.look(1)
    ((peer, led, events),) = scene.said
    assert (peer, events, led.times, led.wants) == ("far", 1, {"R": 800}, 1)
    assert unpacked(led.what.events)[0].end == 750
    assert kind_of(led) == "leads"


def test_how_far_it_has_come_is_said_after_a_pause_where_nobody_waits():
    scene = Scene().ask()
    scene.part.passed([])
    scene.words(0)
    scene.promised["o"]["R"] = 800
    scene.part.passed([])
    assert scene.words(PAUSE_MS - 1) == []
    assert scene.part.look(PAUSE_MS - 1) == 1
    assert scene.words(PAUSE_MS) == [("far", [], 100, {"R": 800})]
    assert scene.part.look(PAUSE_MS) > 10**12, "nothing is owed until something comes"


def test_a_word_is_taken_back_as_soon_as_it_is_not_sure_any_more():
    scene = Scene().ask()
    scene.words()
    scene.sure["near"] = None
    assert scene.words() == [], "it is looked at when something has changed"
    assert scene.change().words() == [("far", [], None, {})]
    scene.sure["near"] = 600
    assert scene.change().words() == [("far", [], 600, {"R": 700})]


def test_what_an_origin_beyond_both_promises_does_not_matter():
    scene = Scene().ask()
    scene.ways.here("q", "far", ("R",), ())
    scene.ways.here("r", "near", ("R",), ())
    scene.promised |= {"q": {"R": 10}, "r": {"R": 20}}
    assert scene.words() == [("far", [], 100, {"R": 700})]
    scene.ways.here("s", "side", ("R",), ())
    scene.promised["s"] = {}
    scene.part.passed([])
    assert scene.words(PAUSE_MS) == [("far", [], 100, {"R": WATERMARK_NONE})]


def test_where_no_origin_sends_it_nothing_is_said_of_its_time():
    scene = Scene().ask()
    scene.promised["o"]["R"] = None
    assert scene.words() == [("far", [], 100, {})]


def test_for_its_own_tasks_it_is_sure_while_it_waits_for_nobody():
    scene = Scene()
    scene.led = {"far": {"R": {LOCAL: False}}}
    assert scene.ask().words() == [("far", [], 300, {"R": 700})]
    scene.absent, scene.newest = ["o"], 650
    assert scene.words() == [("far", [], None, {})]
    scene.absent = []
    assert scene.words() == [("far", [], 650, {"R": 700})]
    scene.newest = 690
    assert scene.words() == [], "nothing was missed meanwhile"


def test_what_is_told_here_goes_on_no_further_than_it_was_told():
    scene = Scene()
    scene.led = {"far": {"R": {"near": True}}}
    scene.ways.gone("o")
    assert scene.ask().words() == [("far", [], None, {})]
    scene.part.asked("near")
    scene.hear(200, {"R": 500})
    assert scene.change().words(PAUSE_MS) == [("far", [], 200, {"R": 500})]
    scene.part.asked("near")
    assert scene.change().words(PAUSE_MS) == [("far", [], None, {})]


def test_a_session_that_ends_takes_all_with_it():
    scene = Scene().ask()
    scene.words()
    scene.part.asked("near")
    scene.hear(200, {"R": 500})
    for peer in ("far", "near"):
        scene.part.leave(peer)
    assert scene.change().words() == []
    assert scene.part.since("near", ("R",)) is None
    scene.standing.clear()
    assert scene.ask().words() == [], "what is not said is not counted"


# --- what is heard ----------------------------------------------------------------------------


def test_what_a_neighbour_tells_lets_go_what_waits_for_it():
    scene = Scene()
    scene.hear(None, {}, events=[rare(5)])
    ((peer, events),) = scene.heard
    assert (peer, [each.end for each in events]) == ("near", [5])
    assert scene.released == ["let go"]
    assert scene.gone == 1


def test_a_word_counts_for_the_operators_that_it_was_said_behind():
    scene = Scene()
    for _ in range(2):
        scene.part.asked("near")
    scene.hear(200, {"R": 500}, wants=1)
    assert scene.part.since("near", ("R",)) is None
    assert scene.part.reached("near", ("R",)) == WATERMARK_NONE
    scene.hear(200, {"R": 500}, wants=2)
    assert scene.part.since("near", ("R",)) == 200
    scene.part.asked("near")
    assert scene.part.since("near", ("R",)) is None
    assert scene.part.reached("near", ("R",)) == 500, "of what waits already it is still true"


def test_a_word_says_nothing_of_types_that_it_does_not_name():
    scene = Scene()
    scene.part.asked("near")
    scene.hear(200, {"R": 500})
    assert scene.part.since("near", ("R", "S")) is None
    assert scene.part.reached("near", ("R", "S")) == WATERMARK_NONE
    assert scene.part.reached("near", ()) == inf


@pytest.mark.parametrize(
    ("since", "times", "goes"),
    [
        (200, {"R": 500}, [False, False, False]),
        (201, {"R": 500}, [True, False, False]),
        (None, {}, [True, True, False]),
        (200, {"S": 500}, [True, True, False]),
    ],
)
def test_what_may_have_missed_a_partner_travels(since, times, goes):
    scene = Scene()
    scene.part.asked("near")
    scene.hear(since, times)
    ((toward, wanted),) = scene.let
    assert toward == "near"
    held = [waiting(250), waiting(300), waiting(0, silent=())]
    assert [wanted(each) for each in held] == goes


def test_what_has_to_match_before_it_is_told_is_kept_until_all_were_told():
    scene = Scene()
    assert scene.part.comes("far", ("R",)) == WATERMARK_NONE
    scene.ask().words()
    assert scene.part.comes("far", ("R",)) == 700
