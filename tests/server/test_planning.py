"""Which offsets a batch reads: sharing, alignment in event time, brokers away, new and changed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.source.log import AwayError, EpochError, LogError, LogStanding
from server.source.options import SourceOptions
from server.source.places import Inherited, InheritedRun, LogPlace, offset_of, places_of
from server.source.planning import LostError, Planner, mark_of
from server.source.watch import KnownBroker


class Ends:
    """A log of which only the ends of its results are known, in the order of offsets."""

    def __init__(self, ends_ms, earliest=0):
        self.ends_ms = ends_ms
        self.earliest = earliest

    def ts_at(self, _epoch, offset):
        return max(self.ends_ms[self.earliest : offset + 1], default=None)

    def first_offset_after(self, _epoch, ts_ms):
        found = [at for at, end in enumerate(self.ends_ms) if end > ts_ms and at >= self.earliest]
        return min(found, default=len(self.ends_ms))

    def earliest_end(self, _epoch, offset, after_ms):
        return min([end for end in self.ends_ms[offset:] if end > after_ms], default=None)


def options(names="ab", **more):
    brokers = ",".join(f"{name}=http://127.0.0.1:1" for name in names)
    return SourceOptions.of({"brokers": brokers, **more})


def up(log, epoch="e", since_s=0.0, settled=()):
    standing = LogStanding(epoch, log.earliest, len(log.ends_ms), 10_000, *settled)
    return KnownBroker(standing, None, since_s)


def settled(log, until_ms, since_s=0.0):
    """It answers, and says up to when it is settled."""
    known = up(log, settled=(1, until_ms, "Frost: AirTemp of source s9"))
    return known._replace(settled_since_s=since_s)


def down(why="it is away", since_s=0.0):
    return KnownBroker(None, AwayError(why), since_s)


def planner(logs, clock_s=1000.0, names=None, **more):
    chosen = options(names or "".join(logs), **more)
    return Planner(chosen, logs.__getitem__, lambda: clock_s)


def pinned(logs):
    return {name: LogPlace("e", 0) for name in logs}


def next_of(places):
    return {name: place.next for name, place in places.items()}


def test_a_broker_seen_first_is_pinned_without_rows():
    """A batch that is planned again after retention went on must be the same."""
    logs = {"a": Ends([1, 2, 3], earliest=1), "b": Ends([5])}
    known = {name: up(log) for name, log in logs.items()}
    assert next_of(planner(logs).plan({}, known, None)) == {"a": 1, "b": 0}
    assert next_of(planner(logs, startingOffsets="latest").plan({}, known, None)) == {
        "a": 3,
        "b": 1,
    }


def test_nothing_is_read_past_what_the_broker_behind_has_reached():
    logs = {"a": Ends([100, 200, 700, 800]), "b": Ends([50, 250])}
    known = {name: up(log) for name, log in logs.items()}
    ends = planner(logs).plan(pinned(logs), known, None)
    assert next_of(ends) == {"a": 2, "b": 2}
    assert (ends["a"].reached_ms, ends["b"].reached_ms) == (200, 250)
    after = planner(logs).plan(ends, known, None)  # the one behind has nothing more
    assert next_of(after) == {"a": 4, "b": 2}


def test_without_alignment_all_is_read():
    logs = {"a": Ends([100, 200, 700, 800]), "b": Ends([50, 250])}
    known = {name: up(log) for name, log in logs.items()}
    assert next_of(planner(logs, align="false").plan(pinned(logs), known, None)) == {
        "a": 4,
        "b": 2,
    }


def test_slack_lets_others_go_so_much_further():
    logs = {"a": Ends([100, 1200, 1300]), "b": Ends([250])}
    known = {name: up(log) for name, log in logs.items()}
    ends = planner(logs, alignSlack="1").plan(pinned(logs), known, None)
    assert next_of(ends) == {"a": 2, "b": 1}


def test_a_broker_that_is_away_holds_the_others_where_it_was():
    logs = {"a": Ends([100, 200, 700]), "b": Ends([])}
    start = {"a": LogPlace("e", 0), "b": LogPlace("e", 5, 300)}
    known = {"a": up(logs["a"]), "b": down(since_s=990.0)}
    assert next_of(planner(logs).plan(start, known, None)) == {"a": 2, "b": 5}
    assert next_of(planner(logs, awayTimeout="20").plan(start, known, None))["a"] == 2
    assert next_of(planner(logs, awayTimeout="10").plan(start, known, None))["a"] == 3


def test_nobody_is_read_while_it_is_unknown_how_far_one_is():
    logs = {"a": Ends([100, 200]), "b": Ends([])}
    known = {"a": up(logs["a"]), "b": down()}
    assert next_of(planner(logs).plan({"a": LogPlace("e", 0)}, known, None)) == {"a": 0}


def test_a_broker_that_is_away_stops_the_stream_where_that_is_wanted():
    logs = {"a": Ends([1])}
    with pytest.raises(AwayError, match="unplugged"):
        planner(logs, onBrokerAway="fail").plan({}, {"a": down("unplugged")}, None)


def test_what_waiting_does_not_mend_stops_the_stream():
    """A wrong password, or a stranger at the address: nobody would ever see it."""
    refused = KnownBroker(None, LogError("it wants a user and a password"))
    with pytest.raises(LogError, match="password"):
        planner({"a": Ends([])}).plan({}, {"a": refused}, None)


def test_a_broker_that_is_quiet_holds_the_others_for_a_while():
    logs = {"a": Ends([100, 200, 700]), "b": Ends([300])}
    start = {"a": LogPlace("e", 0), "b": LogPlace("e", 1, 300)}
    known = {"a": up(logs["a"]), "b": up(logs["b"], since_s=995.0)}
    assert next_of(planner(logs, quietWait="6").plan(start, known, None))["a"] == 2
    assert next_of(planner(logs, quietWait="5").plan(start, known, None))["a"] == 3
    bounded = planner(logs, quietWait="6").plan(start, known, None, live=False)
    assert next_of(bounded)["a"] == 3  # a run that ends would leave the rest unread


def test_what_was_found_late_waits_for_nobody():
    """The watermark has passed it already: it moves nothing, and waiting makes it later still."""
    logs = {"a": Ends([100, 500, 510, 900]), "b": Ends([50, 700, 120, 130, 690, 950])}
    start = {"a": LogPlace("e", 1, 100), "b": LogPlace("e", 2, 700)}
    ends = planner(logs).plan(start, {name: up(log) for name, log in logs.items()}, None)
    assert next_of(ends) == {"a": 4, "b": 5}  # b's last one ends after all of a's
    assert (ends["a"].reached_ms, ends["b"].reached_ms) == (900, 700)
    away = planner(logs).plan(start, {"a": down(), "b": up(logs["b"])}, None)
    assert next_of(away) == {"a": 1, "b": 5}


def test_nothing_is_read_past_what_a_broker_still_owes():
    logs = {"a": Ends([100, 200, 700, 800]), "b": Ends([50])}
    known = {"a": settled(logs["a"], 900), "b": settled(logs["b"], 300)}
    start = {"a": LogPlace("e", 0), "b": LogPlace("e", 1, 50)}
    assert next_of(planner(logs, lateAfter="0").plan(start, known, None)) == {"a": 2, "b": 1}
    assert next_of(planner(logs).plan(start, known, None)) == {"a": 4, "b": 1}  # who does not care
    # The watermark stays behind by the delay.
    assert next_of(planner(logs, lateAfter="0.4").plan(start, known, None)) == {"a": 3, "b": 1}
    # One without subscriptions owes nothing, one that promised nothing yet may owe anything.
    known["b"] = up(logs["b"], settled=(0, None, ""))
    assert next_of(planner(logs, lateAfter="0").plan(start, known, None))["a"] == 4
    known["b"] = settled(logs["b"], None)
    assert next_of(planner(logs, lateAfter="0").plan(start, known, None))["a"] == 0


def test_what_the_watermark_has_passed_waits_for_no_promise():
    """One that was there by then no more, as a subscription came: it makes nothing wait longer."""
    logs = {"a": Ends([100, 500, 120, 505, 130, 520])}
    plans = planner(logs, lateAfter="0.01")
    for until_ms in (200, None):
        known = {"a": settled(logs["a"], until_ms)}
        ends = plans.plan({"a": LogPlace("e", 2, 500, 495)}, known, None)
        assert ends == {"a": LogPlace("e", 5, 505, 495)}


def test_a_promise_that_stands_still_holds_the_others_as_long_as_that_is_wanted():
    logs = {"a": Ends([100, 200, 700]), "b": Ends([50])}
    start = {"a": LogPlace("e", 0), "b": LogPlace("e", 1, 50)}
    known = {"a": settled(logs["a"], 900), "b": settled(logs["b"], 150, since_s=900.0)}
    for timeout, end in (("never", 1), ("101", 1), ("100", 3)):
        plans = planner(logs, lateAfter="0", settledTimeout=timeout)
        assert next_of(plans.plan(start, known, None))["a"] == end


def test_what_stands_behind_a_row_that_is_far_ahead_is_read_and_the_watermark_waits_for_it():
    """A log is read from its beginning: 120 cannot be had without 900, which is not settled."""
    logs = {"a": Ends([100, 110, 150, 200]), "b": Ends([90, 900, 120, 910])}
    known = {name: settled(log, 300) for name, log in logs.items()}
    late = {"lateAfter": "0"}
    ends = planner(logs, **late).plan(pinned(logs), known, None)
    assert next_of(ends) == {"a": 4, "b": 4}
    assert {one.mark_ms for one in ends.values()} == {300}
    # With fewer rows a batch, the mark stays behind what is left.
    ends = planner(logs, **late).plan(pinned(logs), known, 4)
    assert next_of(ends) == {"a": 2, "b": 1}
    ends = planner(logs, **late).plan(ends, known, 3)
    assert next_of(ends) == {"a": 3, "b": 3}
    assert mark_of(ends, 0) == 199


def test_what_is_far_ahead_is_left_where_nothing_stands_behind_it():
    logs = {"a": Ends([100, 900, 910])}
    for behind, end in (([], 1), ([350], 1), ([120], 4)):
        logs["a"].ends_ms[3:] = behind
        ends = planner(logs, lateAfter="0").plan(pinned(logs), {"a": settled(logs["a"], 300)}, None)
        assert next_of(ends) == {"a": end}
    # A watermark that cannot move is held by nothing.
    known = {"a": settled(logs["a"], None)}
    assert next_of(
        planner(logs, lateAfter="0").plan({"a": LogPlace("e", 1, 100, 100)}, known, None)
    ) == {"a": 1}


def test_the_watermark_follows_what_is_settled_where_no_more_is_found():
    """Rows were read ahead of it: their windows close although none comes that would do it."""
    logs = {"a": Ends([100, 90_000, 120])}
    plans = planner(logs, lateAfter="10")
    start = {"a": LogPlace("e", 3, 90_000, 200)}
    for until_ms, mark_ms in ((200, 200), (10_199, 200), (10_200, 10_200), (10**9, 80_000)):
        ends = plans.plan(start, {"a": settled(logs["a"], until_ms)}, None)
        assert ends == {"a": LogPlace("e", 3, 90_000, mark_ms)}
    assert plans.plan(ends, {"a": settled(logs["a"], 10**10)}, None) == ends


@pytest.mark.parametrize("late_s", [5, 30, 300])
@pytest.mark.parametrize("every_s", [5, 60, 200, 600])
def test_no_order_of_results_makes_a_stream_stand_still(every_s, late_s):
    """X is found at once, Y always late: at no time is there nothing behind the latest of X."""
    times = [(at, at) for at in range(0, 3600, 2)]
    times += [(at + late_s, at) for at in range(0, 3600, every_s)]
    times.sort()
    log, plans = Ends([]), planner({"a": Ends([])}, names="a", lateAfter="10")
    asked = []
    plans.times = lambda name: asked.append(name) or log
    places, batches = {"a": LogPlace("e", 0)}, 0
    for now_s in range(0, 3600, 10):
        log.ends_ms = [1000 * end_s + 1000 for found_s, end_s in times if found_s <= now_s]
        until_ms = 1000 * (now_s - late_s)
        for _ in range(3):  # as Spark does, until there is no more
            ends = plans.plan(places, {"a": settled(log, until_ms)}, None)
            before = mark_of(places, 10_000)
            assert all(
                before is None or end > before
                for end in log.ends_ms[places["a"].next : ends["a"].next]
            ), "a window would lack it"
            if ends == places:
                break
            places, batches = ends, batches + 1
        if now_s > late_s + 20:
            behind_ms = until_ms - mark_of(places, 10_000)
            assert behind_ms <= 22_000, "windows stay open for longer than that"
    assert len(log.ends_ms) - places["a"].next <= 0.5 * (late_s + 10)
    assert len(asked) < 8 * batches


def test_a_broker_that_cannot_promise_is_told_of_once(capsys):
    logs = {"a": Ends([1, 2])}
    plans = planner(logs, lateAfter="0")
    for _ in range(2):
        plans.plan(pinned(logs), {"a": up(logs["a"])}, None)
    assert capsys.readouterr().err.count("does not say up to when its log is settled") == 1


def test_what_retention_took_is_told_with_its_exact_range(capsys):
    logs = {"a": Ends(list(range(900)), earliest=720)}
    start, known = {"a": LogPlace("e", 120)}, {"a": up(logs["a"])}
    with pytest.raises(LostError, match=r"broker a: offsets 120 to 719 \(600 offsets\)"):
        planner(logs).plan(start, known, None)
    going_on = planner(logs, failOnDataLoss="false")
    assert next_of(going_on.plan(start, known, None)) == {"a": 900}
    going_on.plan(start, known, None)
    assert capsys.readouterr().err.count("offsets 120 to 719 (600 offsets)") == 1


def test_a_log_that_is_shorter_than_before_is_never_read():
    logs = {"a": Ends([1, 2])}
    for fail in ("true", "false"):
        with pytest.raises(LostError, match=r"broker a: offsets 2 to 2 \(1 offsets\) were read"):
            planner(logs, failOnDataLoss=fail).plan(
                {"a": LogPlace("e", 3)}, {"a": up(logs["a"])}, None
            )


def test_another_log_is_read_from_its_beginning_only_where_loss_is_accepted():
    logs = {"a": Ends([1, 2])}
    start, known = {"a": LogPlace("old", 7, 99)}, {"a": up(logs["a"], epoch="new")}
    with pytest.raises(EpochError, match="its disk was replaced"):
        planner(logs).plan(start, known, None)
    ends = planner(logs, failOnDataLoss="false").plan(start, known, None)
    assert ends == {"a": LogPlace("new", 0, 99)}


def test_a_broker_that_was_taken_out_keeps_its_place():
    logs = {"a": Ends([1, 2])}
    start = {"a": LogPlace("e", 0), "gone": LogPlace("x", 41, 7)}
    ends = planner(logs).plan(start, {"a": up(logs["a"])}, None)
    assert ends == {"a": LogPlace("e", 2, 2), "gone": LogPlace("x", 41, 7)}


def test_offsets_survive_the_checkpoint():
    places = {"b": LogPlace("e", 3, -5), "a": LogPlace("f", 0), "c": LogPlace("", 1, 7, -8)}
    places["d"] = LogPlace("e", 4, None, 9)
    assert places_of(offset_of(places)) == places
    assert list(offset_of(places)) == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="not of this source"):
        places_of({"a": 3})


ends_of = st.lists(st.integers(0, 60), max_size=12)


@given(st.lists(ends_of, min_size=1, max_size=4), st.integers(1, 10), st.integers(0, 5))
def test_everything_is_read_once_and_no_row_is_late_beyond_the_disorder_of_its_own_log(
    many, rows_max, slack_s
):
    """Lateness: how far a row ends before the greatest end of the batches before its own.

    Within a log rows are a little out of order; alignment must add nothing to that but the slack.
    """
    logs = {chr(97 + n): Ends([end * 1000 for end in ends]) for n, ends in enumerate(many)}
    known = {name: up(log) for name, log in logs.items()}
    plans = planner(logs, alignSlack=str(slack_s))
    places, newest = pinned(logs), None
    for _ in range(200):
        ends = plans.plan(places, known, rows_max)
        if ends == places:
            break
        rows = 0
        batch = []
        for name, log in logs.items():
            part = log.ends_ms[places[name].next : ends[name].next]
            rows += len(part)
            before = max(log.ends_ms[: places[name].next], default=None)
            for n, end in enumerate(part):
                own = max([x for x in [before, *part[:n]] if x is not None], default=end)
                if newest is not None:
                    assert newest - end <= max(0, own - end) + slack_s * 1000
            batch += part
        assert rows <= max(rows_max, len(logs))
        newest = max([*batch, *([] if newest is None else [newest])])
        places = ends
    assert next_of(places) == {name: len(log.ends_ms) for name, log in logs.items()}


STEPS = ("find", "look", "plan", "away", "back")


class Owing:
    """A broker that finds results in some order and promises no more than it then keeps."""

    def __init__(self, ends_ms, slow_ms):
        self.all = ends_ms
        self.slow_ms = slow_ms
        self.log = Ends([])
        self.away = False
        self.known = None
        self.promised = None

    def find(self, count):
        have = len(self.log.ends_ms)
        self.log.ends_ms = self.all[: have + count]

    def look(self):
        """As the stream knows it: an answer is older than what comes after it."""
        rest = self.all[len(self.log.ends_ms) :]
        until_ms = min(rest, default=10**6) - 1 - (self.slow_ms if rest else 0)
        self.promised = until_ms if self.promised is None else max(self.promised, until_ms)
        self.known = settled(Ends(list(self.log.ends_ms)), self.promised)


@given(
    st.lists(
        st.tuples(st.lists(st.integers(1, 400), max_size=14), st.sampled_from([0, 20, 150])),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([0, 1, 30, 90]),
    st.integers(1, 6) | st.none(),
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9))),
)
def test_no_row_is_late_however_late_it_is_found(many, delay_ms, rows_max, steps):
    """Delays far beyond `delay`, few rows a batch, brokers that are away: all is in time."""
    brokers = {chr(97 + n): Owing(*one) for n, one in enumerate(many)}
    logs = {name: one.log for name, one in brokers.items()}
    plans = planner(logs, lateAfter=f"{delay_ms / 1000:g}")
    places = pinned(logs)

    def plan():
        nonlocal places
        for one in brokers.values():
            if one.known is None:
                one.look()
        known = {name: down() if one.away else one.known for name, one in brokers.items()}
        ends = plans.plan(places, known, rows_max)
        read = [logs[name].ends_ms[places[name].next : ends[name].next] for name in logs]
        batch = [end for part in read for end in part]
        mark_ms = mark_of(places, delay_ms)
        if mark_ms is not None:
            assert all(end > mark_ms for end in batch), "a window would lack it"
            assert mark_of(ends, delay_ms) >= mark_ms
        moved, places = ends != places, ends
        return moved

    for step, number in steps:
        one = brokers[sorted(brokers)[number % len(brokers)]]
        if step == "find":
            one.find(number)
        elif step == "look":
            one.look()
        elif step == "plan":
            plan()
        else:
            one.away = step == "away"
    for one in brokers.values():
        one.away = False
        one.find(99)
        one.look()
    for _ in range(200):
        if not plan():
            break
    assert next_of(places) == {name: len(one.all) for name, one in brokers.items()}
    everything = [end for one in brokers.values() for end in one.all]
    if everything:
        assert mark_of(places, delay_ms) == max(everything) - delay_ms


# --- brokers that were taken over -----------------------------------------------------------------


def heir(log, *runs, first=0, end=10):
    """It has results of the lost log `lost` of broker a."""
    inherited = Inherited("a", "lost", first, end, tuple(InheritedRun(*run) for run in runs))
    known = up(log)
    return known._replace(standing=known.standing._replace(inherited=(inherited,)))


def read(plans, start, known, batches=9):
    """Plan until nothing moves; what was read, as (broker, offset), and where that ends."""
    rows = []
    for _ in range(batches):
        ends = plans.plan(start, known, None)
        for name, end in ends.items():
            begin = start.get(name, end)
            if begin.epoch == end.epoch:
                first = begin.next if end.first is None else max(end.first, begin.next)
                rows += [(name, offset) for offset in range(first, end.next)]
        start = places_of(offset_of(ends))
    return rows, start


@pytest.mark.parametrize("known_a", [down(), up(Ends([1] * 10), "lost"), up(Ends([7, 7]), "new")])
def test_what_was_read_of_a_lost_log_is_not_read_again_at_its_heir(known_a):
    """Be the lost broker away, back with its disk, or back with another one."""
    logs = {"a": Ends([1] * 10), "b": Ends([1] * 12)}
    start = {"a": LogPlace("lost", 6), "b": LogPlace("e", 1)}
    # Of the lost log's 4 to 9, 8 is one that nobody had: b has the others from its 3 on.
    known = {"a": known_a, "b": heir(logs["b"], (4, 3, 4), (9, 7, 1), first=4)}
    rows, ends = read(planner(logs), start, known)
    assert [row for row in rows if row[0] == "b"] == [
        ("b", at) for at in (1, 2, 5, 6, 7, 8, 9, 10, 11)
    ]
    expected = [("a", 0), ("a", 1)] if known_a.standing and known_a.standing.epoch == "new" else []
    assert [row for row in rows if row[0] == "a"] == expected
    if not expected:
        assert ends["a"].next == 10


def test_a_lost_broker_that_was_taken_over_holds_nobody():
    logs = {"a": Ends([]), "b": Ends([5] * 4)}
    start = {"a": LogPlace("lost", 10, 3), "b": LogPlace("e", 0, 3)}
    known = {"a": down(), "b": heir(logs["b"])}
    rows, _ = read(planner(logs), start, known)
    assert rows == [("b", at) for at in range(4)]


def test_what_the_heir_has_no_copy_of_is_told_with_its_exact_range(capsys):
    logs = {"a": Ends([]), "b": Ends([5] * 4)}
    start = {"a": LogPlace("lost", 2), "b": LogPlace("e", 0)}
    known = {"a": down(), "b": heir(logs["b"], (6, 1, 2), first=6, end=8)}
    with pytest.raises(LostError, match=r"offsets 2 to 5 \(4 offsets\) went with its disk"):
        planner(logs).plan(start, known, None)
    rows, ends = read(planner(logs, failondataloss="false"), start, known)
    assert rows == [("b", at) for at in range(4)]
    assert ends["a"].next == 8
    assert "offsets 2 to 5" in capsys.readouterr().err


def test_what_may_be_found_once_more_is_told(capsys):
    logs = {"a": Ends([]), "b": Ends([5] * 2)}
    start = {"a": LogPlace("lost", 9), "b": LogPlace("e", 0)}
    known = {"a": down(), "b": heir(logs["b"], (3, 0, 1), first=3, end=4)}
    rows, _ = read(planner(logs), start, known)
    assert rows == [("b", 1)]
    assert "of offsets 4 to 8 broker b had no copy" in capsys.readouterr().err
