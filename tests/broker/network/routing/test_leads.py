"""What leads, who waits for it, and who is told: one network of three brokers, seen by hand."""

from dataclasses import dataclass

from msgspec.structs import replace

from broker.network.operators.heard import heard
from broker.network.routing.advertisement.messages import (
    LOCAL,
    Advertise,
    Events,
    LeadEvents,
    Send,
    Unwant,
    Want,
)
from broker.network.routing.advertisement.operator import Advertisement, Key, Operator
from broker.network.routing.advertisement.sources import Directory, asked_of, without_silent
from broker.network.routing.growing import GrowingRouter
from broker.network.routing.leads.rates import RARER, STILL, SourceRates, leads_of
from broker.network.routing.matching.strategies import FILTER_SPLIT_FORWARD, HOLD_AND_PROBE
from broker.network.routing.router import Router

DAY_MS, HOUR_MS, MINUTE_MS = 86_400_000, 3_600_000, 60_000


@dataclass(eq=False)
class Seen:
    id: str
    event_type: str
    start: int
    source: str | None = None
    location: str | None = None
    position: object = None

    @property
    def end(self):
        return self.start


def advertised(source, type_name, power=None):
    rates = () if power is None else ((type_name, power),)
    return Advertisement(source, (type_name,), rates=rates)


def pair(*names, silent=()):
    keys = tuple(Key(name, name) for name in names)
    return Operator("o", keys, delta_t_ms=1_000, strict=True, silent=silent)


def directory_of(**where):
    found = Directory([LOCAL, "x", "y"])
    for name, directions in where.items():
        for direction in directions:
            found.put(direction, advertised(f"{name}@{direction}", name))
    return found


def asked(operator, direction, directory, leads):
    found = asked_of(operator, direction, directory, leads)
    return {
        tuple(f"{k.name}?" if k.optional else k.name for k in one.keys): one.silent
        for one in found.values()
    }


# --- what is asked --------------------------------------------------------------------------


def test_what_waits_is_asked_with_silent_leads_and_leads_are_not():
    there = directory_of(A="x", B="y")
    assert asked(pair("A", "B"), "y", there, ("A",)) == {("A", "B"): ("A",)}
    assert asked(pair("A", "B"), "x", there, ("A",)) == {("A",): ()}


def test_leads_that_are_there_as_well_travel_by_themselves():
    there = directory_of(A="xy", B="y")
    assert asked(pair("A", "B"), "y", there, ("A",)) == {("A", "B"): ("A",), ("A",): ()}
    assert asked(pair("A", "B"), "x", there, ("A",)) == {("A",): ()}


def test_where_all_is_in_one_direction_nothing_is_told():
    there = directory_of(A="y", B="y")
    assert asked(pair("A", "B"), "y", there, ("A",)) == {("A", "B"): ()}


def test_leads_in_two_directions_wait_for_nobody():
    there = directory_of(A="x", B="y", C="xy")
    three = pair("A", "B", "C")
    assert asked(three, "x", there, ("A", "B")) == {("A", "B", "C?"): ("A", "B"), ("A",): ()}
    assert asked(three, "y", there, ("A", "B")) == {("A", "B", "C?"): ("A", "B"), ("B",): ()}


def test_what_is_silent_stays_so_on_its_way():
    there = directory_of(A="x", B="y", C="y")
    assert asked(pair("A", "B", "C", silent=("A",)), "y", there, ()) == {("A", "B", "C"): ("A",)}
    assert asked(pair("A", "B", silent=("A",)), "x", there, ()) == {}


def test_who_knows_no_silent_keys_is_asked_for_more():
    plain = without_silent(pair("A", "B", silent=("A",)))
    assert ([key.name for key in plain.keys], plain.silent, plain.correlated) == (["B"], (), False)


def test_an_operator_whose_silent_keys_are_none_of_its_own_asks_for_all():
    odd = pair("A", "B", silent=("C",))
    assert heard(odd) != odd
    assert not heard(odd).correlated


def test_a_neighbour_that_does_not_tell_is_asked_for_all_that_waits():
    """It is of an earlier version; what waits for its word would never go."""
    wants = Want(pair("A", "B", silent=("A",)))
    for tells, silent in ((True, ("A",)), (False, ())):
        one = GrowingRouter(("n", "far"), HOLD_AND_PROBE)
        one.tells = lambda _, tells=tells: tells
        one.advertised("far", advertised("b", "B"))
        (asked,) = [send.message.operator for send in one.receive("n", wants) if send.to == "far"]
        assert asked.silent == silent
        assert one.led("far") == ({"A": {"n": True}} if tells else {})


# --- what leads -----------------------------------------------------------------------------


def chosen(powers, held=(), age_ms=DAY_MS, operator=None):
    directory = Directory([LOCAL, "x"])
    for name, power in powers.items():
        directory.put("x", advertised(name, name, power))
    rates = SourceRates()
    rates.look(list(powers), 0)
    rates.look(list(powers), age_ms)
    return leads_of(operator or pair(*sorted(powers)), held, rates, directory)


def test_what_is_eight_times_rarer_leads():
    assert RARER == 2**3
    assert chosen({"A": 1, "B": 4}) == ("A",)
    assert chosen({"A": 1, "B": 3}) == ()
    assert chosen({"A": 2, "B": 1, "C": 5}) == ("A", "B")
    assert chosen({"A": 1, "B": 4, "C": 7}) == ("A", "B")  # as many as can lead


def test_what_leads_goes_on_until_it_is_only_half_as_rare():
    assert STILL == 2**2
    assert chosen({"A": 1, "B": 3}, held=("A",)) == ("A",)
    assert chosen({"A": 1, "B": 2}, held=("A",)) == ()


def test_a_source_that_said_nothing_is_as_rare_as_it_has_been_known_for_long():
    often = 9  # more than 500 a day
    assert chosen({"A": None, "B": often}, age_ms=HOUR_MS // 2) == ()
    assert chosen({"A": None, "B": often}, age_ms=HOUR_MS) == ("A",)
    assert chosen({"A": 1, "B": None}) == ()  # of which nobody knows that it comes at all


def test_what_need_not_come_leads_nothing():
    keys = (Key("A", "A", optional=True), Key("B", "B"))
    assert chosen({"A": 9, "B": 1}, operator=Operator("o", keys, 1_000)) == ("B",)
    assert chosen({"A": 1, "B": 9}, operator=Operator("o", keys, 1_000)) == ()
    keys = (Key("A", "A"), Key("B", "B", optional=True), Key("C", "C", optional=True))
    assert chosen({"A": 1, "B": 1, "C": 9}, operator=Operator("o", keys, 1_000)) == ()


def test_rates_are_said_from_two_events_on_and_again_when_four_times_others():
    rates = SourceRates()
    rates.rated(advertised("s", "A"))

    def came(count, now):
        for number in range(count):
            rates.count([Seen(f"{now} {number}", "A", now, "s")])
        return rates.look(["s"], now), rates.rated(advertised("s", "A")).rates

    assert came(1, 0) == ([], ())  # what came before the first look came in no known time
    assert came(1, HOUR_MS) == ([], ())
    assert came(1, 2 * HOUR_MS) == (["s"], (("A", 5),))  # one an hour, 24 a day, or some 2 ** 5
    assert came(2, 4 * HOUR_MS) == ([], (("A", 5),))
    assert came(0, 8 * HOUR_MS)[0] == []
    assert came(0, 15 * HOUR_MS) == (["s"], (("A", 3),))  # at most
    assert came(50, 31 * HOUR_MS) == (["s"], (("A", 5),))
    rates.forget("s")
    assert rates.look(["s"], 90 * HOUR_MS) == []


# --- who hears of rates ---------------------------------------------------------------------


def rate_heard(*operators, types=("A",)):
    """Return whom a broker with a source of these types tells of a rate, and what x asks then."""
    one = Router(["x", "y"], HOLD_AND_PROBE)
    one.advertised(LOCAL, Advertisement("s", types))
    one.receive("y", Advertise(advertised("b", "B", 9)))
    for number, operator in enumerate(operators):
        one.operator_added("x", replace(operator, id=f"o{number}"))
    one.look_at_rates(0)
    for number in range(2):
        for name in types:
            one.events(LOCAL, [Seen(f"{number} {name}", name, number, "s")])
    return one, one.look_at_rates(HOUR_MS)


def test_a_rate_is_said_to_who_joins_events_of_the_source_with_others():
    rated = Advertise(Advertisement("s", ("A",), rates=(("A", 6),)))
    _, sends = rate_heard(pair("A", "B"))
    assert [send for send in sends if isinstance(send.message, Advertise)] == [Send("x", rated)]
    _, sends = rate_heard(Operator("o", (Key("A", "A"),), correlated=False, part=True))
    assert [send for send in sends if isinstance(send.message, Advertise)] == [Send("x", rated)]


def test_a_rate_is_not_said_where_nothing_is_joined_with_others():
    single = Operator("o", (Key("A", "A"),), correlated=False)
    for operators in ((), (single,), (pair("B", "C"),)):
        assert messages(rate_heard(*operators)[1], "x") == []
    assert messages(rate_heard(pair("A", "B"), types=("A", "B"))[1], "x") == []


def test_a_rate_is_said_to_who_asks_for_it_later():
    one, _ = rate_heard()
    sends = one.operator_added("x", pair("A", "B"))
    assert Advertise(Advertisement("s", ("A",), rates=(("A", 6),))) in messages(sends, "x")
    again = one.operator_added("x", replace(pair("A", "C"), id="p"))
    assert messages(again, "x") == []
    assert messages(one.neighbour_reset("y"), "y") == [
        Advertise(Advertisement("s", ("A",), rates=(("A", 6),)))
    ]


def test_what_is_asked_of_a_part_of_what_is_joined_says_so():
    there = directory_of(A="x", B="y")
    (part,) = asked_of(pair("A", "B"), "x", there, ()).values()
    assert (part.correlated, part.part) == (False, True)
    (whole,) = asked_of(pair("A", "B"), "y", directory_of(A="y", B="y"), ()).values()
    assert not whole.part
    (single,) = asked_of(Operator("o", (Key("A", "A"),)), "x", there, ()).values()
    assert not single.part


# --- what travels ---------------------------------------------------------------------------


def messages(sends, to):
    return [send.message for send in sends if send.to == to]


def leading_router(strategy=HOLD_AND_PROBE):
    """A broker with a subscription of its own, A rarely from x and B often from y."""
    one = Router(["x", "y"], strategy)
    one.receive("x", Advertise(advertised("a", "A", 1)))
    one.receive("y", Advertise(advertised("b", "B", 9)))
    one.operator_added(LOCAL, pair("A", "B"))
    return one


def test_what_comes_often_is_asked_for_anew_and_then_told_what_leads():
    one = leading_router()
    sends = one.look_at_rates(0)
    want, unwant = messages(sends, "y")
    assert isinstance(want, Want)
    assert want.operator.silent == ("A",)
    assert unwant == Unwant("o")
    assert messages(sends, "x") == []
    lead = Seen("1", "A", 5_000, "a")
    assert messages(one.events("x", [lead]), "y") == [LeadEvents([lead], 1)]
    assert one.look_at_rates(1) == []
    assert leading_router(FILTER_SPLIT_FORWARD).look_at_rates(0) == []


def test_who_begins_to_wait_is_told_what_came_before_behind_what_it_is_asked():
    one = leading_router()
    lead = Seen("1", "A", 5_000, "a")
    one.events("x", [lead])
    want, told, _ = messages(one.look_at_rates(0), "y")
    assert isinstance(want, Want)
    assert told == LeadEvents([lead], 1)


def test_an_operator_in_the_place_of_another_has_none_of_its_leads():
    one = leading_router()
    one.receive("y", Advertise(advertised("c", "C", 1)))
    one.look_at_rates(0)
    sends = one.operator_added(LOCAL, pair("A", "C"))
    (want,) = [each for each in messages(sends, "y") if isinstance(each, Want)]
    assert ([key.name for key in want.operator.keys], want.operator.silent) == (["C"], ())


def waiting_router(**more):
    """A broker with B of its own, which a neighbour wants with A, and beyond it another with B."""
    one = Router(["n", "m"], HOLD_AND_PROBE, **more)
    one.advertised(LOCAL, advertised("b", "B"))
    one.receive("n", Advertise(advertised("a", "A")))
    one.receive("m", Advertise(advertised("c", "B")))
    return one


def test_what_waits_goes_with_a_probe_and_the_probe_goes_on_and_not_back():
    one = waiting_router()
    operator = pair("A", "B", silent=("A",))
    (on,) = messages(one.receive("n", Want(operator)), "m")
    assert on.operator.silent == ("A",)
    early, late, far = (Seen(str(at), "B", at, "b") for at in (1, 1_500, 9_000))
    assert one.events(LOCAL, [early, far]) == []
    lead = Seen("0", "A", 900, "a")
    sends = one.receive("n", LeadEvents([lead], 1))
    assert messages(sends, "n") == [Events([early], 1)]
    assert messages(sends, "m") == [LeadEvents([lead], 1)]
    assert one.receive("n", LeadEvents([lead], 1)) == []  # once
    assert messages(one.events(LOCAL, [late]), "n") == [Events([late], 1)]  # though it came later


def test_who_needs_nothing_more_is_not_looked_at():
    one = waiting_router()
    one.receive("n", Want(pair("A", "B", silent=("A",))))
    assert one.releases.probing.asked
    one.receive("n", Unwant("o"))
    assert not one.releases.probing.asked


def test_who_asks_after_events_were_forgotten_early_is_told_what_may_match_with_them():
    one = waiting_router(held_max=2)
    three = Operator("o", tuple(Key(n, n) for n in "ABC"), 1_000, silent=("A", "C"))
    one.receive("n", Advertise(advertised("d", "C")))
    one.events("n", [Seen(str(at), "C", at, "d") for at in (1, 2, 3)])  # two are forgotten
    one.receive("n", Want(three))
    lead = Seen("0", "A", 1_001, "a")
    assert LeadEvents([lead], 1) in messages(one.events("n", [lead]), "m")


def test_a_probe_does_not_go_back_though_others_ask_there_as_well():
    one = waiting_router()
    one.receive("n", Advertise(advertised("d", "B")))
    (on,) = messages(one.receive("m", Want(pair("A", "B", silent=("A",)))), "n")
    assert on.operator.silent == ("A",)
    assert one.receive("n", LeadEvents([Seen("0", "A", 900, "a")], 1)) == []
