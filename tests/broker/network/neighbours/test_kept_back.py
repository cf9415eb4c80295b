"""What waits for partners is found as by looking through all of it, without looking through it."""

from collections import Counter
from math import inf
from random import Random
from types import SimpleNamespace

import pytest

from broker.engine.event.event import event_class
from broker.engine.ingest.event_bytes import packed
from broker.engine.limits import Limits
from broker.network.frames.told import Forwarded
from broker.network.host.upstream import Upstream
from broker.network.neighbours.kept_back import SPARE, KeptBack, Withholding, WithholdingTools
from broker.network.neighbours.ways import Claim, Ways
from broker.network.replication.progress import ProgressLedger
from broker.network.routing.advertisement.messages import LOCAL, Unwant, Want
from broker.network.routing.advertisement.operator import Key, Operator
from broker.network.routing.growing import GrowingRouter
from broker.network.routing.matching.matching import Waiting
from broker.network.routing.matching.rows import Held

TYPES = {name: event_class(name, {}) for name in "AB"}


def waiting(start, name="A", delta_t_ms=1_000, partners=("B",), lasts=0):
    event = TYPES[name](
        id=str(start),
        source="s",
        location=None,
        position=None,
        timestamp=None,
        start=start,
        end=start + lasts,
        uncertainty=0,
    )
    return Waiting(Held(event, ""), delta_t_ms, partners)


def drawn(draw):
    partners = draw.choice([("B",), ("A", "B")])
    return waiting(
        draw.randint(0, 99), draw.choice("AB"), draw.randint(1, 9), partners, draw.randint(0, 9)
    )


@pytest.mark.parametrize("seed", range(20))
def test_it_answers_as_who_looks_through_all(seed):
    draw = Random(seed)
    kept, model, position = KeptBack(), {}, 0
    for _ in range(400):
        match draw.choice((*["keep"] * 3, "drop", "take", "first", "over", "anew", "clear")):
            case "keep":
                for _ in range(draw.randint(1, 20)):
                    position += draw.randint(1, 3)
                    kept[position] = model[position] = drawn(draw)
            case "drop" if model:
                one = draw.choice(list(model))
                assert kept.pop(one) is model.pop(one)
            case "take":
                some = draw.sample(list(model), len(model) // 3)
                assert kept.take([*some, position + 1]) == [(at, model.pop(at)) for at in some]
            case "first":
                most, before = draw.randint(0, 60), position - draw.randint(0, 60)
                surplus = sorted(model)[: max(0, len(model) - most)]
                gone = [at for at in sorted(model) if at in surplus or at < before]
                assert kept.take_first(most, before) == [(at, model.pop(at)) for at in gone]
            case "over":
                limits = {name: draw.randint(-1, 60) for name in "AB"}
                found = kept.take_over(lambda name, types, _: limits[name] - len(types))  # noqa: B023
                assert all(model.pop(at) is one for at, one in found)
                assert all(one.over_ms <= limits[name_of(one)] - len(one.types) for _, one in found)
                left = model.values()
                assert all(one.over_ms > limits[name_of(one)] - len(one.types) for one in left)
            case "anew":
                still = {}
                for each in model.values():
                    if draw.random() < 0.7:
                        looks_for = draw.choice([("B",), ("C",)])
                        still[id(each.held)] = each._replace(types=looks_for)
                gone = [(at, each) for at, each in model.items() if id(each.held) not in still]
                assert kept.judge_anew(still) == gone
                model = {
                    at: still[id(each.held)] for at, each in model.items() if id(each.held) in still
                }
            case "clear" if draw.random() < 0.1:
                kept.clear()
                model.clear()
        assert kept == model
        assert kept.first() == min(model, default=None)
        ends = [(name_of(one), one.held.end) for one in model.values()]
        assert kept.ends() == {name: min(end for of, end in ends if of == name) for name, _ in ends}


def name_of(one):
    return one.held.event.event_type


class Unseen(KeptBack):
    """Nobody looks through all of it."""

    def __iter__(self):
        raise AssertionError

    keys = values = __iter__

    def items(self):
        assert not self
        return super().items()


def test_a_frame_costs_no_more_where_more_waits():
    claim = Claim(back=Unseen())
    for position in range(1, 1_000):
        claim.extend(position - 1, position, {"A": position, "B": position})
        claim.back[position] = waiting(position)
        assert claim.complete(position) == 0
        promised = {"A": 0, "B": 1} if position == 1 else {"B": position}
        assert claim.take() == (position - 1, position, promised)
    assert claim.back.take_over(lambda *_: 1_000) == []
    assert [at for at, _ in claim.back.take_over(lambda *_: 1_002)] == [1, 2]
    assert [at for at, _ in claim.back.take_first(996, 0)] == [3]


def test_what_has_gone_is_forgotten_though_the_first_one_stays():
    kept = KeptBack()
    kept[0] = waiting(0)
    for position in range(1, 5_000):
        kept[position] = waiting(position)
        del kept[position]
    heaps = [kept._positions, *kept._ends.values(), *kept._overs.values()]
    assert all(len(heap) <= 2 * len(kept) + SPARE for heap in heaps)


class Untouched(dict):
    """What is ahead of a position is not looked through, either."""

    def __iter__(self):
        raise AssertionError

    items = keys = values = __iter__


def test_what_is_ahead_costs_nothing_while_the_position_stands_or_goes_on():
    host = Upstream()
    host.begin(1, 0)
    host.beyond = Untouched()
    for at in range(2, 1_000):
        assert host.passes(passed(at - 1, at, held_after=0)) == [0]
    for at in range(1_000, 1_100):
        assert host.passes(passed(at - 1, at, held_after=at - 999)) == [0]
        assert host.position == at - 999
        assert len(host.beyond) == 999


def test_a_position_that_is_said_twice_in_one_frame_harms_nobody():
    host = Upstream()
    host.begin(1, 0)
    one = Forwarded("o", 1, 0, 3, [2, 2, 3], packed([]), {}, held_after=0)
    host.passes(one)
    host.passes(passed(3, 4, held_after=None))
    assert (host.position, list(host.beyond), host.order) == (4, [], [])


def passed(after, upto, held_after):
    return Forwarded("o", 1, after, upto, [upto], packed([]), {}, held_after=held_after)


# --- operators that are taken back ----------------------------------------------------------------


class Leads:
    """What n has told of partners that do not come here: all behind `since`, to `upto`."""

    def __init__(self, since=None, upto=-inf):
        self.told, self.upto = since, upto

    def since(self, _toward, _types):
        return self.told

    def reached(self, _toward, types):
        return self.upto if types else inf

    def comes(self, *_):
        return -inf


class Neighbour:
    """Neighbour n asks broker m for events of A that find partners, and m keeps these back.

    Those of B and C come from elsewhere, where nobody promises anything.
    """

    def __init__(self, leads=None):
        self.router = GrowingRouter(("n",))
        self.ways = Ways("me")
        self.ways.here("m", "", ("A",))
        self.ways.open("m", "n", "h")
        self.ledger = ProgressLedger(60_000)
        self.counts, self.sent = Counter(), []
        partners = SimpleNamespace(
            bound=lambda _: 0,
            bound_of=lambda *_: 0,
            origins=lambda _: {"o": ("B", "C")},
            joined=lambda name: self.router.matcher(name).joined(),
        )
        progress = SimpleNamespace(ledger=self.ledger, speaks=lambda _: True)
        promised = {"o": {"B": 0, "C": 0}}
        self.part = Withholding(
            WithholdingTools(
                self.ways,
                self.router,
                self.counts,
                Limits(),
                progress,
                partners,
                leads or Leads(),
                lambda origin: promised.get(origin, {}),
                lambda origin, toward, claim, rows, anyhow: self.sent.extend(rows),
            )
        )

    @property
    def claim(self):
        return dict(self.ways.toward("n"))["m"]

    def want(self, name, *types, silent=()):
        keys = tuple([Key(each, each) for each in types])
        self.router.receive("n", Want(Operator(name, keys, 5_000, silent=silent)))
        self.part.ask_less("n")

    def come(self, start):
        assert self.comes(start)

    def comes(self, start):
        """Have an event come; return if it is kept back."""
        event = waiting(start).held.event
        self.router.events(LOCAL, [event])
        (one,) = self.router.releases.waiting()["n"]
        self.claim.extend(start - 1, start, {"A": start})
        is_kept = self.part.keep("n", self.claim, ("m", start, one), {"A": start - 1})
        self.part.let_go(start)
        return is_kept

    def take_back(self, name):
        self.router.receive("n", Unwant(name))
        self.part.ask_less("n")
        self.part.let_go(30_000)


def test_what_an_operator_asked_for_that_is_gone_is_kept_for_nobody():
    scene = Neighbour()
    scene.want("with B", "A", "B")
    for start in (10_000, 20_000):
        scene.come(start)
    assert (list(scene.claim.back), scene.claim.complete(30_000)) == ([10_000, 20_000], 9_999)
    scene.take_back("with B")
    assert (list(scene.claim.back), scene.claim.complete(30_000)) == ([], 20_000)
    assert scene.counts["kept_back_let_go"] == 2
    assert not scene.sent
    assert not scene.part.keeping()
    assert scene.ledger.due(lambda *_: (0, True), 90_000) == ["n"], "hosts are told of that"


def test_what_another_operator_asks_for_waits_for_its_partners_alone():
    scene = Neighbour()
    scene.want("with B", "A", "B")
    scene.come(10_000)
    scene.want("with C", "A", "C")
    scene.come(20_000)
    assert [set(one.types) for one in scene.claim.back.values()] == [{"A", "B", "C"}] * 2
    scene.take_back("with B")
    assert {at: set(one.types) for at, one in scene.claim.back.items()} == {
        10_000: {"A", "C"},
        20_000: {"A", "C"},
    }
    assert not scene.counts["kept_back_let_go"]


# --- partners that the neighbour tells of -----------------------------------------------------


@pytest.mark.parametrize(("since", "waits"), [(None, False), (5_001, False), (5_000, True)])
def test_an_event_waits_for_what_is_told_where_all_of_it_is_told(since, waits):
    scene = Neighbour(Leads(since))
    scene.want("with D", "A", "D", silent=("D",))
    assert scene.comes(10_000) == waits
    assert list(scene.claim.back) == [10_000] * waits


def test_it_is_let_go_when_all_was_told_that_could_be_its_partner():
    scene = Neighbour(leads := Leads(0))
    scene.want("with D", "A", "D", silent=("D",))
    scene.come(10_000)
    for upto, left in ((14_999, [10_000]), (15_000, [])):
        leads.upto = upto
        scene.part.let_go(20_000)
        assert list(scene.claim.back) == left
    assert (scene.counts["kept_back_let_go"], scene.sent) == (1, [])


def test_it_goes_when_a_partner_is_told():
    scene = Neighbour(Leads(0))
    scene.want("with D", "A", "D", silent=("D",))
    scene.come(10_000)
    (one,) = scene.claim.back.values()
    lead = event_class("D", {})(
        id="d",
        source="r",
        location=None,
        position=None,
        timestamp=None,
        start=12_000,
        end=12_000,
        uncertainty=0,
    )
    (send,) = scene.router.probes("n", [lead])
    assert send.message.events == [one.held.event]
    scene.part.find_partners("n", send.message.events)
    assert scene.sent == [(10_000, one.held.event)]
    assert not scene.claim.back
